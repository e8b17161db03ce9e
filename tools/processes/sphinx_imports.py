"""Import what takes Sphinx long to import; the server that forks runs of Sphinx does.

Nothing of this project: what is wrong with that, a run of Sphinx has to say.
"""

from importlib import import_module

from sphinx.application import builtin_extensions

OTHERS = ["sphinx.cmd.build", "furo", "myst_parser.sphinx_ext.main", "myst_parser.parsers.sphinx_"]

for name in [*builtin_extensions, *OTHERS]:
    import_module(name)

"""Import what Sphinx imports slowly, for the server that forks runs of Sphinx.

No module of this project is imported here: a run of Sphinx must report what is wrong there.
"""

from importlib import import_module

from sphinx.application import builtin_extensions

OTHERS = ["sphinx.cmd.build", "furo", "myst_parser.sphinx_ext.main", "myst_parser.parsers.sphinx_"]

for name in [*builtin_extensions, *OTHERS]:
    import_module(name)

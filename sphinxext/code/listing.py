"""Show a file of the project, or a part of it, as a listing::

    .. listing:: gallery/overview/rpc/rpc.py
       :part: table

The part is what stands between the lines with ``# [table]`` and ``# [/table]``, or ``//`` in
C++. The suffix of the file gives the language, its name is the caption, and indentation that
all lines share is removed. ``:no-caption:`` leaves out the name, for a listing that continues the
one before. The directive is a ``literalinclude`` with these defaults, and takes all its options.

Configuration: ``listing_root``, the folder from which the names of files count, relative to the
source folder. ``listing_include``, a folder whose files are named as C++ includes them: without it.
"""

from pathlib import PurePath
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.directives.code import LiteralInclude

# The language that belongs to a suffix, and the mark of its comments.
LANGUAGES = {
    ".py": ("python", "#"),
    ".toml": ("toml", "#"),
    ".cpp": ("cpp", "//"),
    ".hpp": ("cpp", "//"),
    ".txt": ("console", "#"),
    ".yml": ("yaml", "#"),
}


class Listing(LiteralInclude):
    arguments: list[str]
    options: dict[str, Any]
    option_spec = LiteralInclude.option_spec | {
        "part": directives.unchanged_required,
        "no-caption": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        [file] = self.arguments
        suffix = PurePath(file).suffix
        if suffix not in LANGUAGES:
            raise self.error(f"{file}: no language for {suffix!r}; use literalinclude")
        language, comment = LANGUAGES[suffix]
        defaults = {"language": language, "dedent": None}
        if "no-caption" not in self.options:
            defaults["caption"] = file.removeprefix(self.config.listing_include)
        if part := self.options.get("part"):
            if "start-after" in self.options:
                raise self.error(f"{file}: :part: begins the listing; remove :start-after:")
            defaults["start-after"] = f"{comment} [{part}]"
            defaults["end-before"] = f"{comment} [/{part}]"
        self.options = defaults | self.options
        self.arguments = [f"/{self.config.listing_root}/{file}"]
        return super().run()


def setup(app: Sphinx) -> dict:
    app.add_config_value("listing_root", ".", "env", types=[str])
    app.add_config_value("listing_include", "", "env", types=[str])
    app.add_directive("listing", Listing)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

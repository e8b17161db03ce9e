"""Offer the samples of a gallery for download, in the language of the page.

A sample is a page that sphinx-gallery made of a script. Its page ends with three links:
to the script, to a notebook, and to a zip file with both and everything needed to run
them. Their prose and comments are in the language of the page. Their code is that of the
script, token for token, with the parts that the page does not show. Only the catalog of its
page translates a text of the script. Any catalog of the language may translate a comment, in
the script or in another file of the zip. What no page shows is left unchanged.

Nothing is executed. The extension warns if the page does not show the present code of the
script. ``notebook`` writes the notebook. ``language_switcher`` knows the address of the language.

Configuration:

``sample_downloads``
    A dictionary from page to ``ZipFile``; default ``{}``.

The project must provide three templates, in a folder of ``templates_path``.
``sample-downloads.html`` makes the links, of ``downloads``, a list of dictionaries with
``type``, ``href`` and ``kilobytes``.
``sample-note.html`` and ``sample-readme.html`` make plain text: what the script and the
notebook say at the top, and ``README.txt``. They receive ``title``, ``address`` (of the
page), ``needed`` (what else the script needs, as seen from it), ``script`` and
``notebook`` (names without folder), ``folder`` (of both), ``files`` (names in the zip file)
and ``code``.
"""

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.locale import get_translation
from sphinx.transforms import SphinxTransform
from sphinx.transforms.i18n import Locale
from sphinx.util import logging
from sphinx.util.osutil import relative_uri

from ..addresses.language_switcher import own_address
from ..pages.counts import filled_in
from ..text.gallery_scripts import prose, split, visible, with_prose
from ..text.line_breaking import break_lines
from ..text.rest_source import translate_rest
from .notebook import notebook
from .translated_files import (
    catalogs_of,
    gettext_of_comment,
    language_of,
    translate_comments,
    zipped,
)

logger = logging.getLogger(__name__)

WIDTH = 88  # columns


@dataclass(frozen=True)
class ZipFile:
    """What the zip file of a sample contains, by the names in it."""

    script: str
    files: dict[str, str]  # The paths of the script and of what it needs.
    copies: dict[str, bytes]  # The contents of further files, which are left as they are.


# -- When a page is read -----------------------------------------------------------


class MarkCells(SphinxTransform):
    """Note at each listing which block of the script it shows, before it is translated."""

    default_priority = Locale.default_priority - 1

    def apply(self, **kwargs: Any) -> None:
        sample = self.config.sample_downloads.get(self.env.docname)
        if not sample:
            return
        for path in sample.files.values():
            self.env.note_dependency(path)
        source = sample.files[sample.script]
        blocks = [
            (number, visible(block))
            for number, (kind, block) in enumerate(split(_read(source)))
            if kind == "code" and visible(block)
        ]
        for listing in self.document.findall(nodes.literal_block):
            if blocks and listing.astext().strip("\n") == blocks[0][1]:
                listing["block_of_sample"] = blocks.pop(0)[0]
        if blocks:
            logger.warning(
                "%s has changed since this page was made from it",
                source,
                location=self.env.docname,
            )


# -- When a page is written --------------------------------------------------------


def add_downloads(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    sample = app.config.sample_downloads.get(docname)
    if not sample or app.builder.format != "html":
        return
    folder = Path(app.outdir, "_downloads", docname).parent
    folder.mkdir(parents=True, exist_ok=True)
    page = app.builder.get_target_uri(docname)
    links = []
    for name, content in Sample(app, docname, sample, doctree).downloads().items():
        (folder / name).write_bytes(content)
        target = posixpath.join("_downloads", posixpath.dirname(docname), name)
        links.append(
            {
                "type": PurePosixPath(name).suffix.removeprefix("."),
                "href": relative_uri(page, target),
                "kilobytes": max(1, round(len(content) / 1024)),
            }
        )
    html = app.builder.templates.render("sample-downloads.html", {"downloads": links})
    doctree += nodes.raw("", html, format="html")


class Sample:
    """One sample in the language of a build."""

    def __init__(self, app: Sphinx, docname: str, sample: ZipFile, doctree: nodes.document) -> None:
        self.app, self.docname, self.doctree = app, docname, doctree
        self.name = PurePosixPath(sample.script).stem
        self.script, self.copies = sample.script, sample.copies
        self.files = {name: _read(path) for name, path in sample.files.items()}
        self.blocks = split(self.files[self.script])
        self.address = own_address(app) + app.builder.get_target_uri(docname)
        self.needed = sorted({self._seen_from_script(x) for x in self.files} - {""})

    def downloads(self) -> dict[str, bytes]:
        """Return the contents of each file to offer, by name."""
        blocks = [
            (kind, self._translated_code(block) if kind == "code" else block)
            for kind, block in self.blocks
        ]
        name_of_notebook = str(PurePosixPath(self.script).with_suffix(".ipynb"))
        files = {
            name: self._script(blocks) if name == self.script else self._translated_comments(name)
            for name in self.files
        }
        files[name_of_notebook] = self._notebook(blocks)
        files["README.txt"] = self._rendered("readme")
        contents = {name: text.encode() for name, text in files.items()} | self.copies
        return {
            f"{self.name}.py": contents[self.script],
            f"{self.name}.ipynb": contents[name_of_notebook],
            f"{self.name}.zip": zipped(self.name, contents),
        }

    def _seen_from_script(self, name: str) -> str:
        """Return a file that the script needs, or its folder; for the script, an empty string."""
        if name == self.script:
            return ""
        path = posixpath.relpath(name, posixpath.dirname(self.script))
        return re.sub(r"^((\.\./)*[^/]+/?).*$", r"\1", path)

    def _rendered(self, template: str) -> str:
        return (
            self.app.builder.templates.render(
                f"sample-{template}.html",
                {
                    "title": self.app.env.titles[self.docname].astext(),
                    "address": self.address,
                    "needed": self.needed,
                    "folder": posixpath.dirname(self.script),
                    "script": f"{self.name}.py",
                    "notebook": f"{self.name}.ipynb",
                    "files": sorted(self.files),
                    "code": self.files[self.script],
                },
            ).strip()
            + "\n"
        )

    # Translations.

    def _gettext(self, message: str) -> str:
        """Return the translation of a text of the page."""
        catalog = catalogs_of(self.app).get(self.docname)
        return catalog.gettext(message) if catalog else message

    def _gettext_of_comment(self, message: str) -> str:
        translation = self._gettext(message)
        return translation if translation != message else gettext_of_comment(self.app, message)

    def _translated_code(self, code: str, language: str = "python") -> str:
        if language == "python":
            code = self._pointing_to_zip(code)
        gettext = self._gettext_of_comment
        return translate_comments(code, language, gettext, "translated sample", self.docname)

    def _pointing_to_zip(self, code: str) -> str:
        """Add, behind each import of a helper, a comment that says where to find the helper."""
        helpers = [re.escape(x[:-3]) for x in self.needed if x.endswith(".py")]
        if not helpers:
            return code
        comment = get_translation("sphinx")("in the zip file of this sample")
        pattern = rf"^((?:from|import) (?:{'|'.join(helpers)})\b[^#\n]*)$"
        return re.sub(pattern, rf"\1  # {comment}", code, flags=re.M)

    def _translated_comments(self, name: str) -> str:
        return self._translated_code(self.files[name], language_of(Path(name).suffix))

    def _translated_prose(self, kind: str, block: str) -> str:
        text = prose(kind, block)
        width = WIDTH - (len("# ") if kind == "text" else 0)
        translated = filled_in(self.app.config, translate_rest(text, self._gettext, width))
        try:
            return with_prose(kind, translated) if translated != text else block
        except ValueError as error:
            logger.warning("translated sample: %s", error, location=self.docname)
            return block

    # The script and the notebook.

    def _script(self, blocks: list[tuple[str, str]]) -> str:
        script = ""
        for line in self._rendered("note").strip().split("\n"):
            for part in break_lines(line, WIDTH - len("# "), narrow=1, wide=2):
                script += f"# {part}\n"
        for kind, block in blocks:
            script += block if kind == "code" else self._translated_prose(kind, block)
        return script

    def _notebook(self, blocks: list[tuple[str, str]]) -> str:
        return notebook(
            self.app.env,
            self.doctree,
            address=self.address,
            note=self._rendered("note").strip(),
            blocks={number: x for number, (kind, x) in enumerate(blocks) if kind == "code"},
        )


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.addresses.language_switcher")
    app.setup_extension("sphinxext.pages.counts")
    app.add_config_value("sample_downloads", {}, "env", types=[dict])
    app.add_transform(MarkCells)
    app.connect("doctree-resolved", add_downloads)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

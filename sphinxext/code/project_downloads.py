"""Offer projects for download, as zip files, in the language of the page.

In MyST-Parser's Markdown, ``[the project](acme.zip)`` is a link to the zip file, and in
reStructuredText ``:doc:`the project <acme.zip>` ``. Its comments have the translations that any
catalog of the language has for them, as those of ``sample_downloads``. Their code is unchanged.

Configuration: ``project_downloads``, a dictionary from the name of a zip file, without ``.zip``, to
its ``Project``; default ``{}``. ``language_switcher`` knows the address of the language.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sphinx.addnodes import download_reference, pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from ..addresses.language_switcher import own_address
from .translated_files import gettext_of_comment, language_of, translate_comments, zipped


@dataclass(frozen=True)
class Project:
    """The files of a zip file, by path."""

    sources: dict[str, str]  # texts whose comments are translated
    templates: dict[str, str]  # names of templates, of ``templates_path``
    copies: dict[str, bytes]  # contents that are left as they are
    address: str  # is replaced by the address of the language in sources and templates
    values: dict[str, str] = field(default_factory=dict)  # of variables in templates


class LinkToProjects(SphinxPostTransform):
    """Replace the links to zip files of projects, which lie beside no page."""

    default_priority = 8  # MyST-Parser's transform has 9, and warns of what it does not find.

    def run(self, **kwargs: Any) -> None:
        names = {f"{name}.zip" for name in self.config.project_downloads}
        for node in list(self.document.findall(pending_xref)):
            if node["reftarget"] in names:
                link = download_reference("", "", *node.children, filename=node["reftarget"])
                node.replace_self(link)


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    for name, project in app.config.project_downloads.items():
        path = Path(app.outdir, "_downloads", f"{name}.zip")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zipped(name, contents(app, project)))


def contents(app: Sphinx, project: Project) -> dict[str, bytes]:
    """Return the contents of each file of a project in the language of a build, by path."""
    texts = {path: _translated(app, path, text) for path, text in project.sources.items()}
    for path, template in project.templates.items():
        texts[path] = app.builder.templates.render(template, project.values).strip() + "\n"
    address = own_address(app)
    texts = {path: text.replace(project.address, address) for path, text in texts.items()}
    return {path: text.encode() for path, text in texts.items()} | project.copies


def _translated(app: Sphinx, path: str, text: str) -> str:
    what = f"{path} of a project to download"
    gettext = partial(gettext_of_comment, app)
    return translate_comments(text, language_of(Path(path).suffix), gettext, what)


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.addresses.language_switcher")
    app.add_config_value("project_downloads", {}, "", types=[dict])
    app.add_post_transform(LinkToProjects)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Offer projects for download, as zip files, in the language of the page.

In MyST-Parser's Markdown, ``[the project](acme.zip)`` is a link to the zip file. Its comments have
the translations that any catalog of the language has for them, as those of ``sample_downloads``.
Their code is unchanged.

Configuration:

``project_downloads``
    A dictionary from the name of a zip file, without ``.zip``, to a dictionary: ``files``, from
    names in the zip file to texts whose comments are translated; ``templates``, from such names
    to templates, in a folder of ``templates_path``, that make texts in the language; ``names``,
    from a word in any of these texts to what replaces it, after the translation; ``address``,
    the word that the address replaces at which the pages of the language are published; and
    ``texts``, from names to texts that are left as they are. Default ``{}``.
``project_downloads_addresses``
    A dictionary from language to that address; default ``{}``, which makes addresses relative.
"""

import re
from pathlib import Path

from sphinx.addnodes import download_reference, pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from .translated_files import (
    comments_of,
    gettext_of_comment,
    language_of,
    translate_comments,
    zipped,
)

logger = logging.getLogger(__name__)


class LinkToProjects(SphinxPostTransform):
    """Replace the links to zip files of projects, which lie beside no page."""

    default_priority = 8  # MyST-Parser's transform has 9, and warns of what it does not find.

    def run(self, **kwargs):
        names = {f"{name}.zip" for name in self.config.project_downloads}
        for node in list(self.document.findall(pending_xref)):
            if node["reftarget"] in names:
                link = download_reference("", "", *node.children, filename=node["reftarget"])
                node.replace_self(link)


def write(app, exception):
    if exception or app.builder.format != "html":
        return
    for name, project in app.config.project_downloads.items():
        path = Path(app.outdir, "_downloads", f"{name}.zip")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zipped(name, contents(app, project)))


def contents(app, project):
    """Return the contents of each file of a project in the language of a build, by name."""
    made = {name: _translated(app, name, text) for name, text in project["files"].items()}
    for name, template in project["templates"].items():
        made[name] = app.builder.templates.render(template, {}).strip() + "\n"
    address = app.config.project_downloads_addresses.get(app.config.language, "")
    made = renamed(made, project["names"] | {project["address"]: address})
    return {name: text.encode() for name, text in (made | project["texts"]).items()}


def renamed(files, names):
    """Return files with each word of ``names`` replaced, in their names and in their texts."""
    words = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))

    def new(text):
        return words.sub(lambda found: names[found[0]], text)

    return {new(name): new(text) for name, text in files.items()}


def _translated(app, name, text):
    language = language_of(Path(name).suffix)
    found = ((x, gettext_of_comment(app, x)) for x in comments_of(text, language))
    try:
        return translate_comments(text, language, tuple((x, y) for x, y in found if x != y))
    except ValueError as error:
        logger.warning("%s of a project to download: %s", name, error)
        return text


def setup(app):
    app.add_config_value("project_downloads", {}, "", types=[dict])
    app.add_config_value("project_downloads_addresses", {}, "", types=[dict])
    app.add_post_transform(LinkToProjects)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

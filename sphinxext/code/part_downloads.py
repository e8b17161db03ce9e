"""Offer the samples of a part in one zip file, in the language of the page.

A page whose toctree lists two samples or more gets a link to a zip file with all of them. It holds
what the zip files of the samples hold, which ``sample_downloads`` wrote, and a ``README.txt`` of
its own. A file that several samples need is in it once.

The project must provide two templates, in a folder of ``templates_path``.
``part-downloads.html`` makes the link, of ``href`` and ``count`` (of the samples).
``part-readme.html`` makes ``README.txt``, plain text, of ``title``, ``address`` (of the part's
page), ``samples`` (pairs of a title and the name of a script in the zip file) and ``files`` (all
names).
"""

import posixpath
import zipfile
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

from ..addresses.language_switcher import own_address
from .translated_files import zipped


def samples_of(app: Sphinx, docname: str) -> list[str]:
    """Return the pages of samples that the toctree of a page lists, if they are several."""
    listed = app.env.toctree_includes.get(docname, [])
    pages = [page for page in listed if page in app.config.sample_downloads]
    return pages if len(pages) > 1 else []


def zip_file_of(docname: str) -> PurePosixPath:
    """Return the path of a part's zip file in the output: ``right/index`` has ``right.zip``."""
    part = PurePosixPath(docname)
    return PurePosixPath("_downloads") / (part.parent if part.name == "index" else part)


def add_link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format == "html" and (pages := samples_of(app, docname)):
        href = relative_uri(app.builder.get_target_uri(docname), f"{zip_file_of(docname)}.zip")
        context = {"href": href, "count": len(pages)}
        html = app.builder.templates.render("part-downloads.html", context)
        doctree += nodes.raw("", html, format="html")


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    for docname in sorted(app.env.toctree_includes):
        if pages := samples_of(app, docname):
            path = Path(app.outdir, zip_file_of(docname))
            path.with_suffix(".zip").write_bytes(zipped(path.name, _contents(app, docname, pages)))


def _contents(app: Sphinx, docname: str, pages: list[str]) -> dict[str, bytes]:
    """Return the contents of a part's zip file, by name."""
    files: dict[str, bytes] = {}
    requirements: dict[bytes, None] = {}  # In the order of the samples, each once.
    for page in pages:
        sample = app.config.sample_downloads[page]
        name = PurePosixPath(sample.script).stem
        path = Path(app.outdir, "_downloads", posixpath.dirname(page), f"{name}.zip")
        with zipfile.ZipFile(path) as archive:
            contents = {x.removeprefix(f"{name}/"): archive.read(x) for x in archive.namelist()}
        requirements |= dict.fromkeys(contents.get("requirements.txt", b"").splitlines(True))
        files = contents | files
    context = {
        "title": app.env.titles[docname].astext(),
        "address": own_address(app) + app.builder.get_target_uri(docname),
        "samples": [
            (app.env.titles[page].astext(), app.config.sample_downloads[page].script)
            for page in pages
        ],
        "files": sorted(files),
    }
    readme = app.builder.templates.render("part-readme.html", context).strip() + "\n"
    return files | {"README.txt": readme.encode(), "requirements.txt": b"".join(requirements)}


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.code.sample_downloads")
    app.connect("doctree-resolved", add_link)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Write the files at the top of the site, beside the folders of the languages.

These are the start page, the page for dead links, the files for search engines, the licence,
and the packages for pip, with a page that lists them. Templates of docs/_root are filled in, and
its other files are copied. A page that has moved gets a file at its old address, in each
language, because a host of files cannot redirect.
"""

import hashlib
import shutil
import traceback
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from ..pages.packages import FOLDER, RELEASED, wheel
from ..project.errors import BuildError
from ..project.languages import LANGUAGES, SOURCE_LANGUAGE
from ..project.paths import ROOT, ROOT_FILES, relative
from .cards import card
from .template_texts import gettext_of

TEMPLATES = {"index.html", "404.html", "robots.txt", "sitemap.xml"}
MOVED = "moved.html"
PACKAGES = "packages.html"
NOT_PUBLISHED = {"card.svg"}


def write_root_files(folder, site):
    templates = Environment(
        loader=FileSystemLoader(ROOT_FILES),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    values = {
        "url": site.url,
        # A host shows 404.html at any address, so relative links would lead astray, and
        # absolute ones would leave a copy of the site.
        "mount": urlsplit(site.url).path,
        "languages": LANGUAGES,
        "texts": {language: gettext_of(language) for language in LANGUAGES},
        "card": card(SOURCE_LANGUAGE),
    }
    for name in TEMPLATES:
        (folder / name).write_text(_filled_in(templates, name, values))
    for language, (old, new) in product(LANGUAGES, site.moved.items()):
        top = "../" * (old.count("/") + 1)
        file = folder / language.url / f"{old}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        target = f"{top}{language.url}/{new}.html"
        of_page = {"page": f"{new}.html", "target": target, "top": top, "language": language}
        of_page["_"] = values["texts"][language]
        file.write_text(_filled_in(templates, MOVED, values | of_page))
    for path in ROOT_FILES.iterdir():
        if path.name not in TEMPLATES | {MOVED, PACKAGES} | NOT_PUBLISHED:
            shutil.copyfile(path, folder / path.name)
    shutil.copyfile(ROOT / "LICENSE", folder / "license.txt")
    packages = _write_packages(folder / FOLDER, site)
    page = _filled_in(templates, PACKAGES, values | {"packages": packages})
    (folder / FOLDER / "index.html").write_text(page)


def _write_packages(folder, site):
    """Write the wheels into a folder; return what its page says of each."""
    folder.mkdir()
    packages = []
    for project in RELEASED:
        name, content = wheel(project)
        (folder / name).write_bytes(content)
        changelog = site.file_address(relative(project / "CHANGELOG.md"))
        digest = hashlib.sha256(content).hexdigest()
        packages.append({"name": name, "digest": digest, "changelog": changelog})
    return packages


def _filled_in(templates, name, values):
    try:
        return templates.get_template(name).render(values)
    except TemplateError as error:
        stack = traceback.extract_tb(error.__traceback__)
        path = ROOT_FILES / name
        lines = [frame.lineno for frame in stack if Path(frame.filename) == path]
        raise BuildError(f"{relative(path)}:{lines[-1]}: {error}") from None

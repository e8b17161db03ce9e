"""Stage "render": the pages, in every language, into _build/render.

Executes nothing and needs neither PyTorch nor a compiler.
"""

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

from . import verified
from .digest import digest, files_below, is_made, note_made
from .errors import BuildError, readable
from .languages import LANGUAGES
from .paths import AUTO_GALLERY, BUILD, DOCS, GALLERY, LOCALES, LOGS, RENDERED, ROOT, relative
from .processes import run
from .root_files import write_root_files
from .site import PUBLISHED, SITE_FILE

TIMEOUT = 300  # seconds; it takes about 5
KEY_FILE = BUILD / "render.key"
# A change of what makes the pages is a change of the pages.
MACHINERY = ("cards", "catalogs", "render", "root_files", "samples", "site", "texts")
MACHINERY += ("translation_status", "verified")


def render():
    """Render what has changed; return the number of pages per language."""
    require_gallery_pages()
    key = inputs_key()
    if not is_made(KEY_FILE, key, files_below(RENDERED)):
        KEY_FILE.unlink(missing_ok=True)
        shutil.rmtree(RENDERED, ignore_errors=True)
        with ThreadPoolExecutor() as pool:
            failures = [x for x in pool.map(_render_language, LANGUAGES) if x]
        if failures:
            raise BuildError("\n".join(failures))
        write_root_files(RENDERED, PUBLISHED)
        note_made(KEY_FILE, key, files_below(RENDERED))
    return len(list((RENDERED / LANGUAGES[0].url).rglob("*.html")))


def require_gallery_pages():
    """Raise if nothing was executed yet: the pages link to what the samples make."""
    if not any(AUTO_GALLERY.glob("*.rst")):
        raise BuildError(
            f"{relative(AUTO_GALLERY)} holds no pages: run `make execute` first"
        )


def sphinx_command(builder, language, output, *options):
    """The sphinx-build command line that every use of Sphinx here shares."""
    command = [sys.executable, "-m", "sphinx", "-q", "-b", builder, "-c", ROOT]
    command += ["-D", f"language={language.gettext}"]
    return [*command, *options, DOCS, output]


def inputs_key():
    """A digest of all that the pages are made from."""
    files = [*files_below(DOCS), *files_below(LOCALES), *files_below(ROOT / "sphinxext")]
    files += files_below(GALLERY) + files_below(ROOT / "extension", ignore=["build"])
    files += files_below(ROOT / "requirements")
    files += [ROOT / name for name in ("conf.py", "languages.toml", "LICENSE")]
    files += [SITE_FILE, *(ROOT / "tools" / f"{name}.py" for name in MACHINERY)]
    facts = [verified.template_values(language) for language in LANGUAGES]
    return digest(files, *facts)


def _render_language(language):
    """Return a description of what went wrong, or None."""
    doctrees = BUILD / "doctrees" / language.url
    shutil.rmtree(doctrees, ignore_errors=True)
    log = LOGS / f"render-{language.url}.log"
    output = RENDERED / language.url
    options = ["-W", "--keep-going", "-d", doctrees]
    for name, value in verified.template_values(language).items():
        options += ["-A", f"{name}={value}"]
    command = sphinx_command("html", language, output, *options)
    done = run(command, timeout=TIMEOUT, log=log)
    if done.timed_out:
        return f"rendering {language.url} took longer than {TIMEOUT} s"
    if done.status != 0:
        return f"rendering {language.url} failed:\n{readable(done.text)}"
    (output / ".buildinfo").unlink(missing_ok=True)  # Sphinx's own, not for readers.
    return None

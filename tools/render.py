"""Stage "render": the pages, in every language, into _build/render.

Executes nothing and needs neither PyTorch nor a compiler.
"""

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

from jinja2 import Environment

from .digest import digest, files_below
from .errors import BuildError, readable
from .languages import LANGUAGES
from .paths import AUTO_GALLERY, BUILD, DOCS, GALLERY, LOCALES, LOGS, RENDERED, ROOT, relative
from .processes import run

TIMEOUT = 300  # seconds; it takes about 5
KEY_FILE = BUILD / "render.key"
START_PAGE = DOCS / "_root"


def render():
    """Render what has changed; return the number of pages per language."""
    require_gallery_pages()
    key = _inputs_key()
    if not (KEY_FILE.is_file() and KEY_FILE.read_text() == key):
        KEY_FILE.unlink(missing_ok=True)
        shutil.rmtree(RENDERED, ignore_errors=True)
        with ThreadPoolExecutor() as pool:
            failures = [x for x in pool.map(_render_language, LANGUAGES) if x]
        if failures:
            raise BuildError("\n".join(failures))
        _render_start_page()
        KEY_FILE.write_text(key)
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


def _inputs_key():
    files = [*files_below(DOCS), *files_below(LOCALES), *files_below(ROOT / "sphinxext")]
    files += files_below(GALLERY) + files_below(ROOT / "extension", ignore=["build"])
    files += files_below(ROOT / "requirements")
    files += [ROOT / x for x in ("conf.py", "languages.toml", "site.toml", "LICENSE")]
    files += [ROOT / "tools/render.py", ROOT / "tools/samples.py"]
    return digest(files)


def _render_language(language):
    """Return a description of what went wrong, or None."""
    doctrees = BUILD / "doctrees" / language.url
    shutil.rmtree(doctrees, ignore_errors=True)
    log = LOGS / f"render-{language.url}.log"
    output = RENDERED / language.url
    options = ["-W", "--keep-going", "-d", doctrees]
    command = sphinx_command("html", language, output, *options)
    done = run(command, timeout=TIMEOUT, log=log)
    if done.timed_out:
        return f"rendering {language.url} took longer than {TIMEOUT} s"
    if done.status != 0:
        return f"rendering {language.url} failed:\n{readable(done.text)}"
    (output / ".buildinfo").unlink(missing_ok=True)  # Sphinx's own, not for readers.
    return None


def _render_start_page():
    template = Environment(autoescape=True).from_string(
        (START_PAGE / "index.html").read_text()
    )
    page = template.render(languages=LANGUAGES)
    (RENDERED / "index.html").write_text(page + "\n")
    for name in ("start.css", "start.js"):
        shutil.copyfile(START_PAGE / name, RENDERED / name)

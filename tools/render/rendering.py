"""Stage "render": write the pages in every language into _build/render.

Executes nothing and needs neither PyTorch nor a compiler. A language is left as it is if nothing
that its pages show has changed; otherwise Sphinx writes it from nothing.
"""

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ..pages import provenance, versions
from ..pages.sources import lay_out_executed
from ..processes.one_build import stage
from ..processes.sphinx import counting_pages, run_sphinx
from ..project import git
from ..project.errors import BuildError
from ..project.languages import LANGUAGES, SOURCE_LANGUAGE, Language
from ..project.paths import BUILD, RENDERED
from ..project.published import PUBLISHED
from ..state.digests import digest, files_below, generated_pages, installed, project_files
from ..state.records import Record, record
from ..translate import credits
from ..translate import status as translation_status
from ..translate.catalogs import catalogs_of
from ..translate.laid_out import lay_out_catalogs
from .root_files import write_root_files

AT_A_TIME = 2  # languages; a run of Sphinx keeps one core busy
CATALOGS = BUILD / "locales"  # For Sphinx.


@stage("render")
def render() -> int:
    """Render the languages that have changed; return the number of pages per language."""
    before = keys()
    sources = lay_out_executed(BUILD / "sources")
    stale = [x for x in LANGUAGES if not _record(x).is_made(before[x.url], _pages(x))]
    for language in stale:
        _record(language).forget()
    names = ", ".join(language.url for language in stale)
    with (
        counting_pages(f"rendering {names}", sources, *map(_folders, stale)),
        ThreadPoolExecutor(AT_A_TIME) as pool,
    ):
        failures = list(filter(None, pool.map(partial(_render_language, sources), stale)))
    if failures:
        raise BuildError("\n".join(failures))
    _remove_other_files()
    write_root_files(RENDERED, PUBLISHED)
    provenance.write_for_readers()
    if stale:
        after = keys()
        for language in stale:
            # Pages may lack an edit that was made while Sphinx ran.
            if before[language.url] == after[language.url]:
                _record(language).note_made(after[language.url], _pages(language))
    return len(list((RENDERED / LANGUAGES[0].url).rglob("*.html"))) - len(PUBLISHED.moved)


def keys() -> dict[str, str]:
    """Return a digest of everything that the pages of a language show, by its url."""
    common = digest(
        [*project_files(), *generated_pages()],
        *(sys.version, installed(), git.commit(), versions.versions()),
        *(provenance.runs_for_pages(), translation_status.for_sphinx()),
        credits.translators(),
    )
    return {x.url: digest(catalogs_of(x), common) for x in LANGUAGES}


def _record(language: Language) -> Record:
    return record(f"render-{language.url}")


def _pages(language: Language) -> list[Path]:
    return files_below(RENDERED / language.url)


def _folders(language: Language) -> tuple[Path, Path]:
    """Return the folders of what Sphinx has read, and of the pages."""
    return BUILD / "doctrees" / language.url, RENDERED / language.url


def _render_language(sources: Path, language: Language) -> str | None:
    """Return a description of what went wrong, or None."""
    doctrees, output = _folders(language)
    for folder in (output, doctrees):
        shutil.rmtree(folder, ignore_errors=True)
    values = versions.template_values(language).items()
    options: list[str | Path] = [x for name, value in values for x in ("-A", f"{name}={value}")]
    what = f"rendering {language.url}"
    try:
        if language != SOURCE_LANGUAGE:
            lay_out_catalogs(language, CATALOGS)
            options += ["-D", f"locale_dirs={CATALOGS}"]
        run_sphinx(what, "html", language, sources, output, *options, doctrees=doctrees)
    except BuildError as error:
        return str(error)
    (output / ".buildinfo").unlink(missing_ok=True)  # Sphinx's own, not for readers.
    return None


def _remove_other_files() -> None:
    """Remove everything but the folders of languages; the files at the top are written again."""
    for path in RENDERED.iterdir():
        if path.is_file():
            path.unlink()
        elif path.name not in {language.url for language in LANGUAGES}:
            shutil.rmtree(path)

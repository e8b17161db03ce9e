"""Stage "render": write the pages in every language into _build/render.

Executes nothing and needs neither PyTorch nor a compiler. A language is left unchanged if none
of its inputs has changed. If only texts of some pages have changed, Sphinx reads just these
pages again. After any other change, and after an interrupted build, it starts from nothing. The
pages are the same either way. The commit is put into them after Sphinx has ended.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor

from ..pages import inputs as page_inputs
from ..pages import provenance, versions
from ..processes.one_build import stage
from ..processes.sphinx import require_gallery_pages, run_sphinx
from ..project import git
from ..project.errors import BuildError
from ..project.languages import LANGUAGES
from ..project.paths import BUILD, RENDERED
from ..project.published import PUBLISHED
from ..state.digests import digest, files_below
from ..state.records import record
from ..translate import status as translation_status
from . import footer
from .root_files import write_root_files

# Shown on every page: after a change, Sphinx must write all pages again.
FACTS = "facts"
# Shown on every page, but not written by Sphinx.
COMMIT = "commit"


def run(meanwhile=lambda: None):
    """Run the stage; return the number of pages per language."""
    with stage("render"):
        return render(meanwhile)


def render(meanwhile):
    """Render what has changed; return the number of pages per language.

    ``meanwhile`` is called while Sphinx runs.
    """
    require_gallery_pages()
    before = inputs()
    plans = [Plan(language, before[language.url]) for language in LANGUAGES]
    plans = [plan for plan in plans if not plan.is_current]
    for plan in plans:
        plan.record.forget()
    with ThreadPoolExecutor() as pool:
        carried_out = pool.map(Plan.carry_out, plans)
        meanwhile()
        failures = [x for x in carried_out if x]
    if failures:
        raise BuildError("\n".join(failures))
    _remove_what_is_of_no_language()
    write_root_files(RENDERED, PUBLISHED)
    provenance.write_for_readers()
    if plans:
        after = inputs()
        for plan in plans:
            # What was edited meanwhile may be on some of its pages only.
            if plan.inputs == after[plan.language.url]:
                plan.note()
    return len(list((RENDERED / LANGUAGES[0].url).rglob("*.html")))


def inputs():
    """Return digests of the inputs of the pages, by the url of each language.

    "pages" are digests of the sources and the catalog of each page. "listed" is for the page
    on translations, which covers all languages. "facts" and "commit" are shown on every page,
    and "shared" is everything else.
    """
    sources = page_inputs.digests()
    status = translation_status.for_sphinx()
    common = {
        "listed": digest([], status),
        FACTS: digest([], versions.template_values()),
        COMMIT: list(git.commit() or []),  # In the form that a record returns.
    }
    return {
        language.url: common | _inputs_of(language, sources, status.get(language.gettext, {}))
        for language in LANGUAGES
    }


def _inputs_of(language, sources, status):
    found = {_page_of(path, language): path for path in _catalogs(language, "po")}
    pages = sources["pages"]
    return {
        "pages": {
            page: digest([found[page]] if page in found else [], source, status.get(page))
            for page, source in pages.items()
        },
        "shared": digest(
            [path for page, path in found.items() if page not in pages], sources["shared"]
        ),
    }


def _catalogs(language, suffix):
    return sorted(language.catalogs.rglob(f"*.{suffix}"))


def _page_of(catalog, language):
    return catalog.relative_to(language.catalogs).with_suffix("").as_posix()


class Plan:
    """How to bring the pages of one language up to date."""

    def __init__(self, language, inputs):
        self.language, self.inputs = language, inputs
        self.record = record(f"render-{language.url}")
        self.output = RENDERED / language.url
        self.doctrees = BUILD / "doctrees" / language.url
        known = self.record.load()
        self.is_current = self.is_read = False
        self.changed = None  # The pages to read again; None is all of them.
        if not known or known["made"] != self._made():
            return
        old, compiled = known["inputs"], self._compiled()
        # Catalogs that somebody else compiled, or removed.
        foreign = {
            x for x in compiled | known["compiled"] if compiled.get(x) != known["compiled"].get(x)
        }
        self.is_current = old == inputs and not foreign
        # Only the commit on the pages has changed.
        self.is_read = old | {COMMIT: inputs[COMMIT]} == inputs and not foreign
        changed = page_inputs.changed(old, inputs)
        if changed is not None and inputs["pages"].keys() >= foreign:
            self.changed = changed | foreign
            self.same_facts = old[FACTS] == inputs[FACTS]

    def _made(self):
        """Return a digest of what Sphinx wrote."""
        return digest([*files_below(self.output), *files_below(self.doctrees)])

    def _compiled(self):
        return {_page_of(x, self.language): digest([x]) for x in _catalogs(self.language, "mo")}

    def carry_out(self):
        """Return a description of what went wrong, or None."""
        failure = None if self.is_read else self._run_sphinx()
        if not failure:
            self._note_commit()
        return failure

    def _run_sphinx(self):
        if self.changed is None:
            shutil.rmtree(self.output, ignore_errors=True)
            shutil.rmtree(self.doctrees, ignore_errors=True)
            for path in _catalogs(self.language, "mo"):
                path.unlink()
        else:
            if not self.same_facts:  # No page is left, so Sphinx writes them all.
                shutil.rmtree(self.output)
            for page in self.changed:  # Sphinx reads what is not there.
                (self.doctrees / f"{page}.doctree").unlink()
                catalog = self.language.catalogs / f"{page}.mo"
                catalog.unlink(missing_ok=True)
        return _render_language(self.language, self.output, self.doctrees)

    def _note_commit(self):
        note = footer.note_of(self.inputs[COMMIT], self.language)
        for path in self.output.rglob("*.html"):
            page = path.read_text()
            if (noted := footer.put_note(page, note)) != page:
                path.write_text(noted)

    def note(self):
        """Record the present state."""
        known = {"inputs": self.inputs, "made": self._made(), "compiled": self._compiled()}
        self.record.save(known)


def _render_language(language, output, doctrees):
    """Return a description of what went wrong, or None."""
    options = ["-d", doctrees]
    for name, value in versions.template_values().items():
        options += ["-A", f"{name}={value}"]
    try:
        run_sphinx(f"rendering {language.url}", "html", language, output, *options)
    except BuildError as error:
        return str(error)
    (output / ".buildinfo").unlink(missing_ok=True)  # Sphinx's own, not for readers.
    return None


def _remove_what_is_of_no_language():
    """Remove everything but the folders of languages; the files at the top are written again."""
    for path in RENDERED.iterdir():
        if path.is_file():
            path.unlink()
        elif path.name not in {language.url for language in LANGUAGES}:
            shutil.rmtree(path)

"""Stage "check": read the rendered site as a stranger would; fail on any finding."""

import posixpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..execute import run_seconds
from ..pages import packages
from ..processes.one_build import stage
from ..project.errors import BuildError
from ..project.languages import LANGUAGES, SOURCE_LANGUAGE, Language
from ..project.paths import RENDERED, ROOT, relative
from ..project.published import ADDRESSES_FILE, PUBLISHED, SITE_FILE
from ..state.digests import files_below
from ..translate import check as catalog_check
from . import findability
from .page_facts import PageFacts, facts_of_pages

Facts = dict[Path, PageFacts]  # of each page, by its path
# Relations of <link> that only name another page.
NAMING = {"canonical", "alternate", "author", "license", "next", "prev", "search"}


@stage("check")
def check() -> None:
    """Check the catalogs and every page. Raises BuildError with all findings."""
    messages = catalog_check.check()
    pages = _pages(SOURCE_LANGUAGE)
    if not pages:
        raise BuildError(f"{relative(RENDERED)} contains no pages: run `make render` first")
    facts = facts_of_pages(RENDERED)
    findings = run_seconds.findings() + _check_addresses(pages) + _check_pages(pages, facts)
    if not findings:  # This check would report the same faults again.
        findings = findability.findings(RENDERED, pages, facts)
    if findings:
        raise BuildError("the rendered site has faults:\n" + "\n".join(findings))
    print(
        f"    {len(pages)} pages in {len(LANGUAGES)} languages, {messages} messages: no findings",
        flush=True,
    )


def _pages(language: Language) -> set[str]:
    folder = RENDERED / language.url
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.html")}
    return files - PUBLISHED.moved_files


def _check_addresses(pages: set[str]) -> list[str]:
    """Return the addresses that would lead nowhere, now or when their page has gone."""
    if not ADDRESSES_FILE.is_file():  # A site that was never published.
        return []
    now, moved = {page.removesuffix(".html") for page in pages}, PUBLISHED.moved
    known, site = set(ADDRESSES_FILE.read_text().split()), SITE_FILE.name
    findings = [
        f'{x}: the page has gone; say where its readers go, below [moved] in {site}: "{x}" = "..."'
        for x in sorted(known - now - moved.keys())
    ]
    findings += [
        f"{site}: {old} moved to {new}, which is no page"
        for old, new in moved.items()
        if new not in now
    ]
    return findings + [
        f"{ADDRESSES_FILE.name}: lacks the line {x}" for x in sorted((now | moved.keys()) - known)
    ]


def _check_pages(pages: set[str], facts: Facts) -> list[str]:
    findings = []
    files = {x.relative_to(RENDERED).as_posix(): x for x in files_below(RENDERED)}
    for language in LANGUAGES:
        for page in sorted(pages ^ _pages(language)):
            findings.append(f"{language.url}/{page}: not in every language")
    for language in LANGUAGES:
        for page in sorted(pages & _pages(language)):
            findings += _check_page(language, page, facts, files)
        for page in sorted(PUBLISHED.moved_files):
            findings += _check_links(RENDERED / language.url / page, facts, files)
    for path in ("index.html", f"{packages.FOLDER}/index.html"):
        findings += _check_links(RENDERED / path, facts, files)
    return findings


def _check_page(language: Language, page: str, facts: Facts, files: dict[str, Path]) -> list[str]:
    path, name = RENDERED / language.url / page, f"{language.url}/{page}"
    here, source = facts[path], facts[RENDERED / SOURCE_LANGUAGE.url / page]
    findings = []
    if here.language != language.html:
        findings.append(f"{name}: lang is {here.language!r}")
    if here.sections != source.sections:
        findings.append(f"{name}: the anchors of its headings differ from the English page")
    if [code for *_, code in here.listings] != [code for *_, code in source.listings]:
        findings.append(f"{name}: a listing or an output differs from the English page")
    for position, (number, _) in enumerate(here.listings, 1):
        if number == 0:
            findings.append(
                f"{name}: its {position}. listing has no provenance: show it by a directive"
            )
    for markup, text in here.leaked_markup:
        findings.append(f"{name}: shows the markup {markup!r} in {text!r}")
    if str(ROOT) in path.read_text():
        findings.append(f"{name}: shows the path of the machine that built it")
    for element, address, relations in here.links:
        loads = element != "a" and not NAMING.intersection(relations)
        if loads and urlsplit(address).netloc:
            findings.append(f"{name}: loads {address} from another site")
    return findings + _check_links(path, facts, files)


def _check_links(path: Path, facts: Facts, files: dict[str, Path]) -> list[str]:
    """Return findings on relative addresses that lead to no file or no anchor in it."""
    findings, name = [], path.relative_to(RENDERED).as_posix()
    for address in dict.fromkeys(address for _, address, _ in facts[path].links):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        there = posixpath.join(posixpath.dirname(name), unquote(parts.path))
        target = files.get(posixpath.normpath(there)) if parts.path else path
        if target is None:
            findings.append(f"{name}: {address} leads nowhere")
        elif (
            parts.fragment
            and target.suffix == ".html"
            and unquote(parts.fragment) not in facts[target].anchors
        ):
            findings.append(f"{name}: {address} leads to no heading")
    return findings

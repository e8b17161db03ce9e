"""Stage "check": read the rendered site as a stranger would; fail on any finding."""

import re
from functools import cache
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, NavigableString

from sphinxext.translatable_comments import code_without_comments

from . import catalog_check, check_findability
from .digest import digest, files_below, is_made, note_made
from .errors import BuildError
from .languages import LANGUAGES, SOURCE_LANGUAGE
from .paths import BUILD, RENDERED, ROOT, relative
from .render import inputs_key

KEY_FILE = BUILD / "check.key"

# Attributes through which a page makes the browser load something.
LOADING = [("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")]
# Relations of <link> that only name another page.
NAMING = {"canonical", "alternate", "author", "license", "next", "prev", "search"}
# The class that Sphinx gives to the box around a listing.
# Markup of the sources, and of templates, as a reader would see it.
MARKUP = re.compile(
    r"`|\*\*|\]\(|:[a-z][\w:]*:(?=`)|\{[a-z:]+\}`|^\.\. |:::|^#+ |\\[ *_`]|"
    r"\{\{|\{%|\$\{|%\(\w+\)|&(?:lt|gt|amp|quot|#\d+);|</?[a-z]+[ >/]|\bmsg(?:id|str)\b",
    re.M,
)
CODE = {"code", "pre", "script", "style", "kbd", "samp"}
HIGHLIGHTED = re.compile(r"highlight-(\S+)")


def check_if_changed():
    """Check, unless everything is as it was when there was nothing to find."""
    files = files_below(RENDERED) + files_below(ROOT / "tools")
    key = digest(files, inputs_key())
    if is_made(KEY_FILE, key, []):
        print("    nothing has changed since there were no findings", flush=True)
        return
    KEY_FILE.unlink(missing_ok=True)
    check()
    note_made(KEY_FILE, key, [])


def check():
    """Check the catalogs and every page. Raises BuildError with all findings."""
    messages = catalog_check.check()
    findings = []
    pages = _pages(SOURCE_LANGUAGE)
    if not pages:
        raise BuildError(f"{relative(RENDERED)} holds no pages: run `make render` first")
    for language in LANGUAGES:
        for page in sorted(pages ^ _pages(language)):
            findings.append(f"{language.url}/{page}: not there in every language")
    for language in LANGUAGES:
        for page in sorted(pages & _pages(language)):
            findings += _check_page(language, page)
    findings += _check_links(RENDERED / "index.html", _parse(RENDERED / "index.html"))
    if not findings:  # Which would be found a second time there.
        findings = check_findability.findings(RENDERED, pages, _parse)
    if findings:
        raise BuildError("the rendered site has faults:\n" + "\n".join(findings))
    print(
        f"    {len(pages)} pages in {len(LANGUAGES)} languages, {messages} messages: "
        "no findings",
        flush=True,
    )


def _pages(language):
    folder = RENDERED / language.url
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.html")}


@cache
def _parse(path):
    return BeautifulSoup(path.read_text(), "html.parser")


@cache
def _anchors(path):
    return {tag["id"] for tag in _parse(path).find_all(id=True)}


def _check_page(language, page):
    path = RENDERED / language.url / page
    soup, name = _parse(path), f"{language.url}/{page}"
    source = RENDERED / SOURCE_LANGUAGE.url / page
    findings = []
    if soup.html.get("lang") != language.html:
        findings.append(f"{name}: lang is {soup.html.get('lang')!r}")
    if _section_ids(soup) != _section_ids(_parse(source)):
        findings.append(f"{name}: its headings have other anchors than in English")
    if _listings(path) != _listings(source):
        findings.append(f"{name}: a listing or an output differs from the English page")
    for tag in soup.select(".problematic, .system-message"):
        findings.append(f"{name}: markup that was not understood: {tag.get_text()!r}")
    for found, text in _leaked_markup(soup):
        findings.append(f"{name}: shows the markup {found!r} in {text!r}")
    if str(ROOT) in str(soup):
        findings.append(f"{name}: shows the path of the machine that built it")
    for tag_name, attribute in LOADING:
        for tag in soup.find_all(tag_name, **{attribute: True}):
            named = NAMING.intersection(tag.get("rel") or [])
            if not named and urlsplit(tag[attribute]).netloc:
                findings.append(f"{name}: loads {tag[attribute]} from another site")
    return findings + _check_links(path, soup)


def _leaked_markup(soup):
    """Yield source markup that stands in running text, and some text around it."""
    for text in soup.find_all(string=MARKUP):
        shown = type(text) is NavigableString
        if shown and not any(parent.name in CODE for parent in text.parents):
            found = MARKUP.search(text)
            yield (
                found[0],
                " ".join(text[max(found.start() - 30, 0) : found.end() + 30].split()),
            )


def _section_ids(soup):
    return [tag["id"] for tag in soup.find_all("section", id=True)]


@cache
def _listings(path):
    """The code of each listing, without comments: they are in the page's language."""
    listings = []
    for tag in _parse(path).find_all("pre"):
        box = tag.find_parent(class_=HIGHLIGHTED)
        language = HIGHLIGHTED.search(" ".join(box["class"]))[1] if box else "none"
        listings.append(code_without_comments(tag.get_text(), language))
    return listings


def _check_links(path, soup):
    """Every relative address has to lead to a file, and to an anchor in it."""
    findings = []
    for tag in soup.find_all(["a", "link", "script", "img"]):
        address = tag.get("href") or tag.get("src")
        parts = urlsplit(address or "")
        if not address or parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        name = path.relative_to(RENDERED).as_posix()
        if not target.is_file():
            findings.append(f"{name}: {address} leads nowhere")
        elif (
            parts.fragment
            and target.suffix == ".html"
            and unquote(parts.fragment) not in _anchors(target)
        ):
            findings.append(f"{name}: {address} leads to no heading")
    return findings

"""A page for reviewers: the messages that changed since a commit, side by side.

No rule can tell a dropped "not" or swapped roles. A reviewer can, who reads what a text was
before and what it is now, in both languages and in the order of the page.
"""

import difflib
import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from babel.messages.catalog import Catalog, Message

from ..project.errors import BuildError
from ..project.git import git
from ..project.languages import SOURCE_LANGUAGE, TRANSLATIONS, Language
from ..project.paths import BUILD, relative
from . import catalogs

REVIEW = BUILD / "review.html"
SIMILAR = 0.6
# Differences are marked by word, or by character in a script without spaces.
TOKEN = re.compile(r"[^\W\u3000-\u9fff]+|\s+|.", re.S)
STYLE = """
body { font: 1em/1.5 system-ui, sans-serif; margin: 1em; color-scheme: light dark; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; margin-bottom: 2em; }
th, td { border: 1px solid gray; padding: .4em; text-align: start; vertical-align: top; }
td { white-space: pre-wrap; overflow-wrap: anywhere; }
tbody th { font-weight: normal; font-size: .8em; border-bottom: 0; }
ins { background: #2a73; text-decoration: underline; }
del { background: #e443; }
.odd { outline: 1px solid red; }
"""


@dataclass(frozen=True)
class Change:
    """A message of a page now, at a path and line, and what it was before, if it was there."""

    page: str
    place: str
    now: Message
    before: Message | None


def review(since: str) -> dict[Language, int]:
    """Write the page; return how many messages of each language have changed."""
    commit = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}")
    if not commit:
        raise BuildError(f"SINCE={since!r}: git knows no such commit")
    changes = {language: list(_changes(language, commit)) for language in TRANSLATIONS}
    REVIEW.parent.mkdir(exist_ok=True)
    REVIEW.write_text(_page(changes, commit))
    return {language: len(of_language) for language, of_language in changes.items()}


def _changes(language: Language, commit: str) -> Iterator[Change]:
    """Yield the changes of a language, in the order of its pages."""
    folder = relative(language.catalogs)
    names = git("ls-tree", "-r", "--name-only", commit, "--", folder) or ""
    before = {name: catalogs.of_commit(commit, name) for name in names.splitlines()}
    everywhere = {entry.id: entry for catalog in before.values() for entry in catalog}
    now = catalogs.read_all(language)
    in_use = {entry.id for catalog in now.values() for entry in catalog}
    gone = {msgid: entry for msgid, entry in everywhere.items() if msgid not in in_use}
    for path, catalog in now.items():
        same_page = before.get(relative(path), Catalog())
        for entry in catalog:
            last = same_page.get(entry.id) or everywhere.get(entry.id) or _similar(entry, gone)
            if entry.id and (not last or _state(last) != _state(entry)):
                page, place = catalogs.page_of(language, path), f"{relative(path)}:{entry.lineno}"
                yield Change(page, place, entry, last)


def _similar(entry: Message, gone: dict[str, Message]) -> Message | None:
    """Return the gone message that a new one was made of, or that is like it."""
    source = entry.previous_id[0] if entry.previous_id else entry.id
    closest = difflib.get_close_matches(source, gone, 1, SIMILAR)
    return gone[closest[0]] if closest else None


def _state(entry: Message) -> tuple[str, str, bool]:
    return entry.id, entry.string, entry.fuzzy


# -- The page ----------------------------------------------------------------------


def _page(changes: dict[Language, list[Change]], commit: str) -> str:
    parts = [
        f'<!doctype html>\n<html lang="{SOURCE_LANGUAGE.html}">\n<meta charset="utf-8">',
        f"<title>Translations since {commit[:10]}</title>\n<style>{STYLE}</style>",
        f"<h1>Translations since {commit[:10]}</h1>",
    ]
    for language, of_language in changes.items():
        parts.append(f"<h2>{_visible(language.name)} ({language.gettext})</h2>")
        for page, of_page in groupby(of_language, key=lambda change: change.page):
            parts.append(_table(language, page, list(of_page)))
        if not of_language:
            parts.append("<p>Nothing has changed.</p>")
    return "\n".join(parts) + "\n"


def _table(language: Language, page: str, changes: list[Change]) -> str:
    rows = "\n".join(_row(language, change) for change in changes)
    heads = "".join(
        f"<th>{name} {when}</th>"
        for name in (SOURCE_LANGUAGE.name, language.name)
        for when in ("before", "now")
    )
    return (
        f"<h3>{_visible(page)}</h3>\n<table>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>"
    )


def _row(language: Language, change: Change) -> str:
    now, before = change.now, change.before
    state = " fuzzy" if now.fuzzy else "" if now.string else " untranslated"
    sources = _compared(before and before.id, now.id)
    translations = _compared(before and before.string, now.string)
    spoken = f'lang="{language.html}" dir="{language.direction}"'
    cells = "".join(f"<td>{text}</td>" for text in sources)
    cells += "".join(f"<td {spoken}>{text}</td>" for text in translations)
    return f'<tr><th colspan="4">{_visible(change.place + state)}</th></tr>\n<tr>{cells}</tr>'


def _compared(old: str | None, new: str) -> tuple[str, str]:
    """Return both texts in HTML, with the differences marked."""
    if old is None:
        return "<em>new</em>", _visible(new)
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    old_html = new_html = ""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        removed, added = _visible("".join(before[a:b])), _visible("".join(after[c:d]))
        is_same = kind == "equal"
        old_html += removed if is_same or not removed else f"<del>{removed}</del>"
        new_html += added if is_same or not added else f"<ins>{added}</ins>"
    return old_html, new_html


def _visible(text: str) -> str:
    """Return a text in HTML; invisible characters are shown by their codes."""
    return "".join(
        f'<span class="odd">U+{ord(x):04X}</span>'
        if unicodedata.category(x) in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp") and x != "\n"
        else html.escape(x)
        for x in text
    )

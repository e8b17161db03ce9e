"""A page for reviewers: the messages that changed since a commit, side by side.

No rule can tell a dropped "not" or swapped roles. Whoever reads what a text was before, and
what it is now, in both languages and in the order of the page, can.
"""

import difflib
import html
import re
import unicodedata
from dataclasses import dataclass

from babel.messages.pofile import PoFileError

from ..project.errors import BuildError
from ..project.git import git
from ..project.languages import SOURCE_LANGUAGE, TRANSLATIONS
from ..project.paths import BUILD, LOCALES, relative
from . import catalogs

REVIEW = BUILD / "review.html"
SIMILAR = 0.6
# What is marked as different: a word, or one character of a script without spaces.
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
    """A message before and now; ``old`` texts are None where there were none."""

    place: str
    state: str
    source: str
    translation: str
    old_source: str | None
    old_translation: str | None


def review(since):
    """Write the page; return how many messages of each language have changed."""
    commit = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}")
    if not commit:
        raise BuildError(f"SINCE={since!r}: git knows no such commit")
    found = {language: list(_changes(language, commit)) for language in TRANSLATIONS}
    REVIEW.parent.mkdir(exist_ok=True)
    REVIEW.write_text(_page(found, commit))
    return {language: sum(len(x) for _, x in pages) for language, pages in found.items()}


# -- What changed ------------------------------------------------------------------


def _changes(language, commit):
    """Yield each page of a language with its changes, if it has any."""
    folder = relative(language.catalogs)
    names = git("ls-tree", "-r", "--name-only", commit, "--", folder) or ""
    before = {name: _catalog_of(commit, name) for name in names.splitlines()}
    everywhere = {entry.id: entry for catalog in before.values() for entry in catalog}
    renamed = _renamed(commit)
    paths = catalogs.catalogs_of(language)
    now = {path: catalogs.read(path) for path in paths}
    in_use = {entry.id for catalog in now.values() for entry in catalog}
    for path, catalog in now.items():
        name = relative(path)
        old = before.get(renamed.get(name, name), [])
        gone = [entry for entry in old if entry.id and entry.id not in in_use]
        changes = []
        for entry in catalog:
            if entry.id:
                last = _last(entry, old, gone, everywhere)
                if not last or _texts(last) != _texts(entry):
                    changes.append(_change(f"{name}:{entry.lineno}", entry, last))
        if changes:
            yield catalogs.page_of(language, path), changes


def _catalog_of(commit, name):
    try:
        return catalogs.parse((git("show", f"{commit}:{name}") or "").encode())
    except (PoFileError, ValueError, LookupError, TypeError):
        return []  # Whatever it was, it was no catalog.


def _renamed(commit):
    """The former names of files that were renamed since a commit, by their names."""
    options = ["--name-status", "--diff-filter=R", "--find-renames=30%", "-z"]
    fields = (git("diff", *options, commit, "--", relative(LOCALES)) or "").split("\0")
    return dict(zip(fields[2::3], fields[1::3], strict=False))


def _last(entry, old, gone, everywhere):
    """What a message was, or None: the same, the same on another page, or one like it."""
    for known in ([x for x in old if x.id == entry.id], [everywhere.get(entry.id)]):
        if known and known[0]:
            return known[0]
    texts = [str(x.id) for x in gone]
    wanted = entry.previous_id[0] if entry.previous_id else str(entry.id)
    if closest := difflib.get_close_matches(wanted, texts, 1, SIMILAR):
        return gone[texts.index(closest[0])]
    return None


def _texts(entry):
    return entry.id, entry.string, entry.fuzzy


def _change(place, entry, last):
    is_open = not catalogs.is_translated(entry)
    state = "fuzzy" if entry.fuzzy else "untranslated" if is_open else ""
    old = (_shown(last.id), _shown(last.string)) if last else (None, None)
    return Change(place, state, _shown(entry.id), _shown(entry.string), *old)


def _shown(text):
    return "\n".join(text) if isinstance(text, tuple) else text or ""


# -- The page ----------------------------------------------------------------------


def _page(found, commit):
    parts = [
        f'<!doctype html>\n<html lang="{SOURCE_LANGUAGE.html}">\n<meta charset="utf-8">',
        f"<title>Translations since {commit[:10]}</title>\n<style>{STYLE}</style>",
        f"<h1>Translations since {commit[:10]}</h1>",
    ]
    for language, pages in found.items():
        parts.append(f"<h2>{_visible(language.name)} ({language.gettext})</h2>")
        parts += [_table(language, page, changes) for page, changes in pages]
        if not pages:
            parts.append("<p>Nothing has changed.</p>")
    return "\n".join(parts) + "\n"


def _table(language, page, changes):
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


def _row(language, change):
    spoken = f'lang="{language.html}" dir="{language.direction}"'
    sources = _compared(change.old_source, change.source)
    translations = _compared(change.old_translation, change.translation)
    cells = "".join(f"<td>{text}</td>" for text in sources)
    cells += "".join(f"<td {spoken}>{text}</td>" for text in translations)
    place = _visible(" ".join(filter(None, [change.place, change.state])))
    return f'<tr><th colspan="4">{place}</th></tr>\n<tr>{cells}</tr>'


def _compared(old, new):
    """Both texts in HTML, with the differences marked."""
    if old is None:
        return "<em>new</em>", _visible(new)
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    marked = "", ""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        texts = _visible("".join(before[a:b])), _visible("".join(after[c:d]))
        if kind != "equal":
            texts = f"<del>{texts[0]}</del>", f"<ins>{texts[1]}</ins>"
        marked = marked[0] + texts[0], marked[1] + texts[1]
    return tuple(re.sub("<(del|ins)></\\1>", "", text) for text in marked)


def _visible(text):
    """A text in HTML; what nobody would see is shown by its code."""
    return "".join(
        f'<span class="odd">U+{ord(x):04X}</span>'
        if unicodedata.category(x) in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp") and x != "\n"
        else html.escape(x)
        for x in text
    )

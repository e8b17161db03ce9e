"""How far each translation is: for each language and page, from catalogs and history.

Dates are those of commits, so they are the same in each clone; where there is no history,
as in a shallow clone, there are none.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from ..execute.samples import page_of, samples
from ..project.git import git, has_history, head_date, last_changes
from ..project.languages import SOURCE_LANGUAGE, TRANSLATIONS
from ..project.paths import DOCS, relative
from ..project.published import PUBLISHED
from ..state.digests import digest, files_below
from ..state.records import Results
from . import catalogs

FUZZY, UNTRANSLATED = "fuzzy", "untranslated"
# What `git blame --porcelain` says of a line.
COMMITTER = re.compile(r"^committer (.*)\ncommitter-mail .*\ncommitter-time (\d+)$", re.M)
NOT_COMMITTED = "Not Committed Yet"


@dataclass
class PageStatus:
    """A page in one language. ``open`` holds the messages that readers see in English.

    ``last_change`` is the day of the catalog's last commit. ``behind_since`` is the day on
    which the oldest open message came into the catalog.
    """

    catalog: str
    total: int = 0
    open: list = field(default_factory=list)
    last_change: date | None = None
    behind_since: date | None = None

    def count(self, state):
        return sum(message.state == state for message in self.open)

    @property
    def translated(self):
        return self.total - len(self.open)


@dataclass
class OpenMessage:
    state: str
    text: str
    line: int


def status_of(language):
    """Return a PageStatus for each catalog of a language, by the name of its page."""
    changes = last_changes()
    pages = {}
    results = Results(f"status-{language.gettext}")
    for path in catalogs.catalogs_of(language):
        status = PageStatus(relative(path), last_change=changes.get(relative(path)))
        total, found = results.get(digest([path]), lambda path=path: _read(path))
        status.total, status.open = total, [OpenMessage(*message) for message in found]
        status.behind_since = _oldest_line(path, [x.line for x in status.open])
        pages[catalogs.page_of(language, path)] = status
    results.save()
    return pages


def _read(path):
    """How many messages a catalog has, and those that are open, in a list."""
    messages = [message for message in catalogs.read(path) if message.id]
    found = [
        [FUZZY if x.fuzzy else UNTRANSLATED, x.id, x.lineno]
        for x in messages
        if x.fuzzy or not catalogs.is_translated(x)
    ]
    return [len(messages), found]


def for_sphinx():
    """Return the status of all pages, as sphinxext/translation/translation_status.py wants it."""
    built_on = head_date()
    result = {SOURCE_LANGUAGE.gettext: {page: {"edit": x} for page, x in _sources()}}
    for language in TRANSLATIONS:
        result[language.gettext] = {
            page: {
                "edit": PUBLISHED.edit_address(
                    status.catalog, status.open[0].line if status.open else None
                ),
                "translated": status.translated,
                "fuzzy": status.count(FUZZY),
                "untranslated": status.count(UNTRANSLATED),
                "open": [
                    {
                        "state": message.state,
                        "text": message.text,
                        "edit": PUBLISHED.edit_address(status.catalog, message.line),
                    }
                    for message in status.open
                ],
                "last_change": str(status.last_change or ""),
                "behind_since": str(status.behind_since or ""),
                "days_behind": _days(status.behind_since, built_on),
            }
            for page, status in status_of(language).items()
        }
    return result


def _sources():
    """Yield each English page with the address of the file that it is written in."""
    for path in files_below(DOCS):
        if path.suffix == ".md":
            page = path.relative_to(DOCS).with_suffix("").as_posix()
            yield page, PUBLISHED.edit_address(relative(path))
    for path in samples():
        yield page_of(path), PUBLISHED.edit_address(relative(path))


def _days(first, last):
    return (last - first).days if first and last else None


def _oldest_line(path, lines):
    """The day on which the oldest of some lines of a file was committed, or None."""
    if not lines or not has_history():
        return None
    ranges = [option for line in lines for option in ("-L", f"{line},{line}")]
    blame = git("blame", "--porcelain", *ranges, "--", path) or ""
    times = [int(time) for who, time in COMMITTER.findall(blame) if who != NOT_COMMITTED]
    return datetime.fromtimestamp(min(times), UTC).date() if times else None

"""How far each translation is: for each language and page, from catalogs and history.

Dates are those of commits, so they are the same in each clone; where there is no history,
as in a shallow clone, there are none.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from ..execute.samples import page_of, samples
from ..project.git import git, has_history, head_date, last_changes
from ..project.languages import SOURCE_LANGUAGE, TRANSLATIONS, Language
from ..project.paths import DOCS, relative
from ..project.published import PUBLISHED
from ..state.digests import digest, files_below
from ..state.records import Results
from . import catalogs

FUZZY, UNTRANSLATED = "fuzzy", "untranslated"
# What `git blame --porcelain` says of a line.
COMMITTER = re.compile(r"^committer (.*)\ncommitter-mail .*\ncommitter-time (\d+)$", re.M)
NOT_COMMITTED = "Not Committed Yet"


@dataclass(frozen=True)
class OpenMessage:
    """A message that readers see in English; ``state`` is fuzzy or untranslated."""

    state: str
    text: str
    line: int


@dataclass(frozen=True)
class PageStatus:
    """A page in one language.

    ``last_change`` is the day of the catalog's last commit. ``behind_since`` is the day on
    which the oldest open message came into the catalog.
    """

    catalog: str
    total: int
    open: list[OpenMessage]
    last_change: date | None
    behind_since: date | None

    def count(self, state: str) -> int:
        return sum(message.state == state for message in self.open)

    @property
    def translated(self) -> int:
        return self.total - len(self.open)


def status_of(language: Language) -> dict[str, PageStatus]:
    """Return the status of each catalog of a language, by the name of its page."""
    changes = last_changes()
    pages = {}
    results = Results(f"status-{language.gettext}")
    for path in catalogs.catalogs_of(language):
        total, messages = results.get(digest([path]), partial(_read, path, language))
        pages[catalogs.page_of(language, path)] = PageStatus(
            catalog=relative(path),
            total=total,
            open=[OpenMessage(**message) for message in messages],
            last_change=changes.get(relative(path)),
            behind_since=_oldest_line(path, [message["line"] for message in messages]),
        )
    results.save()
    return pages


def _read(path: Path, language: Language) -> list:
    """Return how many messages a catalog has, and a list of those that are open."""
    messages = [message for message in catalogs.read(path, language) if message.id]
    open_messages = [
        asdict(OpenMessage(FUZZY if x.fuzzy else UNTRANSLATED, x.id, x.lineno))
        for x in messages
        if x.fuzzy or not x.string
    ]
    return [len(messages), open_messages]


def for_sphinx() -> dict[str, dict[str, dict]]:
    """Return the status of all pages, as sphinxext/translation/translation_status.py wants it."""
    result: dict[str, dict[str, dict]] = {
        SOURCE_LANGUAGE.gettext: {page: {"edit": address} for page, address in _sources()}
    }
    built_on = head_date()
    for language in TRANSLATIONS:
        pages = status_of(language).items()
        result[language.gettext] = {page: _for_page(status, built_on) for page, status in pages}
    return result


def _for_page(status: PageStatus, built_on: date | None) -> dict:
    behind_since = status.behind_since
    first_open = status.open[0].line if status.open else None
    return {
        "edit": PUBLISHED.edit_address(status.catalog, first_open),
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
        "behind_since": str(behind_since or ""),
        "days_behind": (built_on - behind_since).days if built_on and behind_since else None,
    }


def _sources() -> Iterator[tuple[str, str]]:
    """Yield each English page with the address of the file that it is written in."""
    for path in files_below(DOCS):
        if path.suffix == ".md":
            page = path.relative_to(DOCS).with_suffix("").as_posix()
            yield page, PUBLISHED.edit_address(relative(path))
    for path in samples():
        yield page_of(path), PUBLISHED.edit_address(relative(path))


def _oldest_line(path: Path, lines: list[int]) -> date | None:
    """Return the day on which the oldest of some lines of a file was committed."""
    if not lines or not has_history():
        return None
    ranges = [option for line in lines for option in ("-L", f"{line},{line}")]
    blame = git("blame", "--porcelain", *ranges, "--", path) or ""
    times = [int(time) for who, time in COMMITTER.findall(blame) if who != NOT_COMMITTED]
    return datetime.fromtimestamp(min(times), UTC).date() if times else None

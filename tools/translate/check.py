"""Check the message catalogs: their form, their completeness, and each translation.

A finding that is no fault can be exempted: see ``exemptions``. The line to add follows the
finding.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from babel.messages.catalog import Catalog

from ..pages.commands import CATALOGS
from ..processes.progress import progress
from ..project.errors import BuildError
from ..project.languages import TRANSLATIONS, Language
from ..project.paths import DOCS, relative
from ..state.digests import digest
from ..state.records import Results
from . import catalogs
from .exemptions import Exemptions, advice
from .extract import EXTRACTION, extracted
from .losses import losses
from .rules import apply_rules
from .rules.message import Message
from .rules.terms import GLOSSARY, first_uses, glosses
from .update import updated_text

# What makes no difference in languages without articles and plurals.
ARTICLE = re.compile(r"\b(?:a|an|the)\b")
PLURAL = re.compile(r"[es]+\b")  # And whatever else ends like one.


@dataclass(frozen=True)
class Finding:
    """What a rule says of ``texts``, which stand at ``place``, a path and a line."""

    place: str
    rule: str
    phrase: str
    texts: list[str]


@dataclass
class CheckedPage:
    """A catalog: how many messages its page has, faults of form, translations, findings."""

    total: int = 0
    faults: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @classmethod
    def of_json(cls, value: dict) -> "CheckedPage":
        messages = [Message(**x) for x in value["messages"]]
        findings = [Finding(**x) for x in value["findings"]]
        return cls(value["total"], value["faults"], messages, findings)


def check() -> int:
    """Return how many messages there are; raise BuildError with all findings.

    What a catalog alone has is kept for as long as nothing changes that it depends on.
    """
    templates = extracted()
    checked: list[Path] = []

    def describe() -> str:
        return f"{len(checked)} of {len(TRANSLATIONS) * len(templates)} catalogs checked"

    with progress(describe):
        return _check(templates, checked)


def _check(templates: dict[str, Path], checked: list[Path]) -> int:
    """Do as ``check`` does; add each catalog to ``checked``."""
    plain = json.loads((EXTRACTION / "plain-messages.json").read_text())
    results = Results("catalogs")
    exemptions = Exemptions()
    faults = [*catalogs.foreign_files(), *exemptions.faults]
    total = 0
    for language in TRANSLATIONS:
        faults += _files_without_page(language, templates)
        pages = {}
        lost = _losses(language, templates.values())
        faults += lost.values()
        for page, template in templates.items():
            path = catalogs.path_of(language, page)
            checked.append(path)
            if path in lost:
                continue
            if not path.is_file():
                faults.append(f"{relative(path)}: missing; run `make i18n-update` and translate it")
                continue
            format = "myst" if (DOCS / f"{page}.md").is_file() else "rest"
            arguments = path, template, language, format, plain.get(page)
            key = digest([path, template, GLOSSARY], *arguments[2:])
            result = results.get(key, partial(_check_page, *arguments))
            pages[path] = CheckedPage.of_json(result)
            faults += pages[path].faults
        total = sum(page.total for page in pages.values())
        for finding in _findings(pages):
            if not exemptions.allow(language, finding.rule, finding.texts):
                texts = "".join(f"    {text!r}\n" for text in finding.texts)
                faults.append(
                    f"{finding.place}: {finding.rule}: {finding.phrase}\n{texts}"
                    f"    Mend it, {advice(language, finding.rule, finding.texts)}"
                )
    results.save()
    if faults := faults or exemptions.unused():
        raise BuildError("message catalogs:\n" + "\n".join(faults))
    return total


def _losses(language: Language, templates: Iterable[Path]) -> dict[Path, str]:
    try:
        return losses(language, lambda: {x.id for path in templates for x in catalogs.read(path)})
    except BuildError:
        return {}  # One of the catalogs is malformed, which is reported for itself.


def _files_without_page(language: Language, templates: Iterable[str]) -> Iterator[str]:
    expected = {catalogs.path_of(language, page) for page in templates}
    for path in catalogs.catalogs_of(language):
        if path not in expected:
            yield (
                f"{relative(path)}: its page is gone; once `make i18n-update` has taken "
                "over what was moved, remove it"
            )
        if not re.fullmatch(CATALOGS, relative(path)):
            yield (
                f"{relative(path)}: the expression in TRANSLATING.md, CATALOGS in "
                "tools/pages/commands.py, does not find it"
            )


def _check_page(
    path: Path, template_path: Path, language: Language, format: str, plain: dict | None
) -> dict:
    """Return the CheckedPage of a catalog for a record.

    ``plain`` are its messages without markup; None if all are so.
    """
    try:
        catalog, template = catalogs.read(path, language), catalogs.read(template_path)
    except BuildError as error:
        return asdict(CheckedPage(faults=[str(error)]))
    faults = list(_check_completeness(path, catalog, template, language))
    faults = faults or list(_check_form(path, template, language))
    messages = [
        Message(
            entry.id,
            entry.string,
            language.gettext,
            "plain" if plain is None or entry.id in plain else format,
            entry.lineno,
        )
        for entry in catalog
        if entry.id and entry.string and not entry.fuzzy
    ]
    phrases_of_rules = [
        (message, rule, "; ".join(dict.fromkeys(phrases)))
        for message in messages
        for rule, phrases in apply_rules(message).items()
    ]
    if plain is not None:
        # Readers meet prose, headings and descriptions on their way; labels are no first use, and
        # neither is the title, the first message, since it also stands in the menu.
        title = next((entry.id for entry in catalog if entry.id), None)
        titles = [message for message in messages if message.source == title]
        read = [x for x in messages if x not in titles and plain.get(x.source, True)]
        phrases_of_rules += [(message, "first-use", phrase) for message, phrase in first_uses(read)]
        phrases_of_rules += [(x, "title", phrase) for x in titles for phrase in glosses(x)]
    findings = [
        Finding(f"{relative(path)}:{message.line}", rule, phrase, list(message.texts))
        for message, rule, phrase in phrases_of_rules
    ]
    findings += _check_difference(path, messages)
    return asdict(CheckedPage(len(template), faults, messages, findings))


def _check_form(path: Path, template: Catalog, language: Language) -> Iterator[str]:
    if updated_text(catalogs.read(path), template, language).encode() != path.read_bytes():
        yield (
            f"{relative(path)}:1: its form is not that of the others; `make i18n-update` "
            "mends it and changes no translation"
        )


def _check_completeness(
    path: Path, catalog: Catalog, template: Catalog, language: Language
) -> Iterator[str]:
    name = relative(path)
    for entry in catalog:
        if not entry.id:
            continue
        place, text = f"{name}:{entry.lineno}", _short(entry.id)
        if template.get(entry.id, entry.context) is None:
            yield (
                f"{place}: not in the English text: {text}; msgids are not edited by "
                "hand; run `make i18n-update`"
            )
        elif not language.complete:
            continue
        elif entry.fuzzy:
            yield f"{place}: fuzzy: {text}; review it and remove the mark"
        elif not entry.string:
            yield f"{place}: not translated: {text}"
    new = [x.id for x in template if x.id and catalog.get(x.id, x.context) is None]
    if new:
        others = f" and {len(new) - 1} more messages" if len(new) > 1 else ""
        yield f"{name}: lacks {_short(new[0])}{others}; run `make i18n-update`"


def _findings(pages: dict[Path, CheckedPage]) -> Iterator[Finding]:
    """Yield those of each page; and the same text that two pages translate differently."""
    same_source: dict[str, list[tuple[str, Message]]] = defaultdict(list)
    for path, page in pages.items():
        yield from page.findings
        for message in page.messages:
            same_source[message.source].append((f"{relative(path)}:{message.line}", message))
    for source, [(first_place, first), *others] in same_source.items():
        for place, message in others:
            if message.translation != first.translation:
                phrase = f"{_short(source)} is translated in another way in {first_place}"
                texts = [message.translation, first.translation]
                yield Finding(place, "agreement", phrase, texts)


def _check_difference(path: Path, messages: list[Message]) -> Iterator[Finding]:
    """Yield texts of one page that say different things and are translated in the same way."""
    first_with: dict[str, Message] = {}
    for message in messages:
        first = first_with.setdefault(message.translation, message)
        if _words(first.source) != _words(message.source):
            phrase = f"says the same as {_short(first.source)} in line {first.line}"
            texts = [first.source, *message.texts]
            yield Finding(f"{relative(path)}:{message.line}", "difference", phrase, texts)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", PLURAL.sub("", ARTICLE.sub("", text.lower())))


def _short(text: str) -> str:
    line = text.replace("\n", " ")
    return repr(line if len(line) <= 60 else line[:59] + "…")

"""Check the message catalogs: their form, their completeness, and each translation.

A finding that is no fault can be exempted: see ``exemptions``. The line to add follows the
finding.
"""

import json
import re
from collections import defaultdict
from dataclasses import asdict, dataclass, replace

from ..pages.commands import CATALOGS
from ..project.errors import BuildError
from ..project.languages import TRANSLATIONS
from ..project.paths import DOCS, relative
from ..state.digests import digest
from ..state.records import Results
from . import catalogs
from .exemptions import Exemptions, advice
from .extract import EXTRACTION, extracted
from .rules import apply_rules
from .rules.message import Message
from .rules.terms import GLOSSARY, first_uses
from .rules.words import code_words, translated_words, word_counts
from .update import Memory, written

AGREEMENT, DIFFERENCE, FIRST_USE = "agreement", "difference", "first-use"
# What makes no difference in languages without articles and plurals.
ARTICLE = re.compile(r"\b(?:a|an|the)\b")
PLURAL = re.compile(r"[es]+\b")  # And whatever else ends like one.
HEADERS = ("Language", "Plural-Forms", "Content-Type")


@dataclass(frozen=True)
class Entry:
    """A translated message of a catalog, as far as the rules look at it."""

    id: str
    string: str
    lineno: int


def check():
    """Return how many messages there are; raise BuildError with all findings.

    What was found in a catalog is kept for as long as nothing changes that it depends on.
    """
    templates = extracted()
    plain = json.loads((EXTRACTION / "plain-messages.json").read_text())
    results = Results("catalogs")
    exemptions = Exemptions()
    findings = [*catalogs.foreign_files(), *exemptions.findings]
    for language in TRANSLATIONS:
        expected = {catalogs.path_of(language, page) for page in templates}
        for path in catalogs.catalogs_of(language):
            if path not in expected:
                findings.append(
                    f"{relative(path)}: its page is gone; once `make i18n-update` has taken "
                    "over what was moved, remove it"
                )
            if not re.fullmatch(CATALOGS, relative(path)):
                findings.append(
                    f"{relative(path)}: the expression in the guide for translators, CATALOGS in "
                    "tools/pages/commands.py, does not find it"
                )
        pages = {}
        for page, template in templates.items():
            path = catalogs.path_of(language, page)
            if not path.is_file():
                findings.append(
                    f"{relative(path)}: missing; run `make i18n-update` and translate it"
                )
                continue
            pages[path] = Page(path, page, template, language, plain, results)
            findings += pages[path].form
        everywhere = translated_words(x.counts for x in pages.values())
        found = [x for page in pages.values() for x in page.check_messages(everywhere)]
        found += _check_agreement({path: page.entries for path, page in pages.items()})
        found += [x for path, page in pages.items() for x in _check_difference(path, page)]
        for where, rule, phrases, texts in found:
            if not exemptions.allow(language, rule, texts):
                shown = "".join(f"    {text!r}\n" for text in texts)
                mend = f"{shown}    Mend it, {advice(language, rule, texts)}"
                findings += [f"{where}: {rule}: {phrase}\n{mend}" for phrase in phrases]
    total = sum(
        results.get(digest([x], "count"), lambda x=x: len(catalogs.read(x)))
        for x in templates.values()
    )
    results.save()
    if findings := findings or exemptions.unused():
        raise BuildError("message catalogs:\n" + "\n".join(findings))
    return total


class Page:
    """One catalog, and what is wrong with its form and its completeness."""

    def __init__(self, path, page, template, language, plain, results):
        self.path, self.language, self.results = path, language, results
        self.plain = plain.get(page)
        self.format = "myst" if (DOCS / f"{page}.md").is_file() else "rest"
        self.key = digest([path, template], language, self.plain, self.format)
        self.form, entries, self.counts = results.get(self.key, lambda: self._read(template))
        self.entries = [Entry(*entry) for entry in entries]

    def _read(self, template):
        try:
            catalog, template = catalogs.read(self.path), catalogs.read(template)
        except BuildError as error:
            return [[str(error)], [], [{}, {}]]
        findings = list(_check_completeness(self.path, catalog, template, self.language))
        findings = findings or _check_form(self.path, catalog, template, self.language)
        self.entries = [Entry(x.id, x.string, x.lineno) for x in _translated(catalog)]
        entries = [list(asdict(entry).values()) for entry in self.entries]
        return [list(findings), entries, word_counts(map(self._message, self.entries))]

    def _message(self, entry):
        """An entry with the markup that the messages of its page are written in."""
        is_plain = self.plain is None or entry.id in self.plain
        format = "plain" if is_plain else self.format
        return Message(entry.id, entry.string, self.language.gettext, format)

    def check_messages(self, everywhere):
        """Return where, which rule, what it says and of which texts, for each fault.

        ``everywhere`` are words that all catalogs translate.
        """
        key = digest([GLOSSARY], "rules", self.key, sorted(everywhere))
        return self.results.get(key, lambda: list(self._check_messages(everywhere)))

    def _check_messages(self, everywhere):
        messages = [self._message(entry) for entry in self.entries]
        words = everywhere - code_words(messages)
        for entry, message in zip(self.entries, messages, strict=True):
            where = f"{relative(self.path)}:{entry.lineno}"
            found = apply_rules(replace(message, translated_elsewhere=words))
            for rule, phrases in found.items():
                yield [where, rule, phrases, list(message.texts)]
        lines = {message: x.lineno for x, message in zip(self.entries, messages, strict=True)}
        for message, phrase in first_uses([x for x in messages if self._is_read(x)]):
            where = f"{relative(self.path)}:{lines[message]}"
            yield [where, FIRST_USE, [phrase], list(message.texts)]

    def _is_read(self, message):
        """Whether readers meet it on their way: prose, a heading, or a description."""
        return self.plain is not None and self.plain.get(message.source, True)


def _check_form(path, catalog, template, language):
    headers = dict(catalog.mime_headers)
    for name in HEADERS:
        if name not in headers:
            yield f"{relative(path)}:1: lacks the header {name}; run `make i18n-update`"
    if catalog.locale_identifier != language.gettext:
        wrong = catalog.locale_identifier
        yield f"{relative(path)}:1: is for {wrong!r}, not for {language.gettext}"
    if written(catalogs.read(path), template, language, Memory()) != path.read_bytes().decode():
        yield (
            f"{relative(path)}:1: its form is not that of the others; `make i18n-update` "
            "mends it and changes no translation"
        )


def _check_completeness(path, catalog, template, language):
    name = relative(path)
    for entry in catalog:
        if not entry.id:
            continue
        where, shown = f"{name}:{entry.lineno}", _short(entry.id)
        if template.get(entry.id, entry.context) is None:
            yield (
                f"{where}: not in the English text: {shown}; msgids are not edited by "
                "hand; run `make i18n-update`"
            )
        elif not language.complete:
            continue
        elif entry.fuzzy:
            yield f"{where}: fuzzy: {shown}; review it and remove the mark"
        elif not catalogs.is_translated(entry):
            yield f"{where}: not translated: {shown}"
    for entry in template:
        if entry.id and catalog.get(entry.id, entry.context) is None:
            yield f"{name}: lacks {_short(entry.id)}; run `make i18n-update`"


def _translated(catalog):
    for entry in catalog:
        if entry.id and isinstance(entry.id, str) and entry.string and not entry.fuzzy:
            yield entry


def _check_agreement(pages):
    """The same text is translated in the same way on all pages."""
    same_source = defaultdict(list)
    for path, page in pages.items():
        for entry in page:
            same_source[entry.id].append((path, entry))
    for source, entries in same_source.items():
        first_path, first = entries[0]
        for path, entry in entries:
            if entry.string != first.string:
                phrase = (
                    f"{_short(source)} is translated in another way in "
                    f"{relative(first_path)}:{first.lineno}"
                )
                where = f"{relative(path)}:{entry.lineno}"
                yield where, AGREEMENT, [phrase], [entry.string, first.string]


def _check_difference(path, page):
    """On one page, texts that say different things are translated in different ways."""
    first_with = {}
    for entry in page.entries:
        first = first_with.setdefault(entry.string, entry)
        if _words(first.id) != _words(entry.id):
            phrase = f"says the same as {_short(first.id)} in line {first.lineno}"
            where = f"{relative(path)}:{entry.lineno}"
            yield where, DIFFERENCE, [phrase], [first.id, entry.id, entry.string]


def _words(text):
    return re.findall(r"\w+", PLURAL.sub("", ARTICLE.sub("", text.lower())))


def _short(text):
    shown = str(text).replace("\n", " ")
    return repr(shown if len(shown) <= 60 else shown[:59] + "…")

"""The rules of the catalog check, by subject and by language.

A rule is a function that gets a ``Message`` and yields a phrase for the translator for each fault.
The rules of ``GENERAL`` hold for all languages. What the check knows of one language is in one
file, which has the language's name in gettext, in lower case: ``ko.py``, ``zh_cn.py``. A language
without a file gets the general rules only.

A rule looks for faults that a reader of one message can point at. No rule guesses whether a
sentence means the same as its source: that is for the readers of ``make i18n-review``.

To teach the check a language, add such a file. It defines ``RULES = LanguageRules(...)`` with any
of these names. A pattern is the text of a regular expression; where it is applied to a
translation, markup is removed, and ``LITERAL`` is in the place of each literal.

characters   the characters beside ASCII, as within the brackets of a pattern. For languages that
             are not written in Latin letters: a run of Latin words is then English
spacing      a pattern of places that lack a space or have one too many
endings      for the mark at the end of a source text, or "", the marks that a translation may
             end with
lengths      (n, least, most) from long to short: the number of characters for each character of
             a source text of n or more, where characters of East Asia count twice
rules        functions; one that has the name of a general rule adds findings to it
"""

from collections import defaultdict

from .language import Rule, language_rules
from .markup import html, link, markup, placeholder, symbol
from .message import Message
from .numbers import number
from .prose import doubled, length
from .punctuation import character, ending, punctuation, spacing
from .terms import glossary_term
from .words import english, identifier

MUCH = 500  # characters
GENERAL: tuple[Rule, ...] = (
    *(markup, symbol, number, identifier, link, placeholder, html),
    *(english, glossary_term),
    *(character, spacing, punctuation, ending),
    *(doubled, length),
)


def rules_of(language: str) -> dict[str, list[Rule]]:
    """Return the functions of each rule for a language, by the rule's name."""
    rules = defaultdict(list)
    for rule in GENERAL + language_rules(language).rules:
        rules[rule.__name__.replace("_", "-")].append(rule)
    return rules


def apply_rules(message: Message) -> dict[str, list[str]]:
    """Return what is wrong with a message: phrases, by the name of the rule that yields them."""
    if len(message.translation) > MUCH + 5 * len(message.source):
        return {"length": ["is many times longer than the source"]}  # Rules would take long.
    phrases = {
        name: [phrase for rule in rules for phrase in rule(message)]
        for name, rules in rules_of(message.language).items()
    }
    if phrases["markup"]:
        del phrases["symbol"]  # The same fault, character by character.
    return {name: of_rule for name, of_rule in phrases.items() if of_rule}

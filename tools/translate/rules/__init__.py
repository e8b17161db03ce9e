"""The rules of the catalog check, by subject and by language.

A rule is a function that gets a ``Message`` and yields a phrase for the translator for each fault.
The rules of ``GENERAL`` hold for all languages. What the check knows of one language is in one
file, which has the language's name in gettext, in lower case: ``ko.py``, ``zh_cn.py``. A language
without a file gets the general rules only.

To teach the check a language, add such a file. It defines ``RULES = LanguageRules(...)`` with any
of these names. A pattern is the text of a regular expression; where it is applied to a
translation, markup is removed, and ``LITERAL`` is in the place of each literal.

characters   the characters beside ASCII, as within the brackets of a pattern. For languages that
             are not written in Latin letters: Latin words must then be words of the source.
numbers      patterns of the numbers 1 to 9 in words; a number that is used idly is left out
one, two     patterns of all that may stand for these numbers, idly or not
numerals     a pattern of a number in words that may stand before a unit
units        patterns of what follows a digit, by the names of ``numbers.UNITS``
spacing      a pattern of places that lack a space or have one too many
endings      for the mark at the end of a source text, or "", the marks that a translation may
             end with
doubled      patterns of what is twice in a row by mistake, with a group for what is doubled
lengths      (n, least, most) from long to short: the number of characters for each character of
             a source text of n or more, where characters of East Asia count twice
joined       the least characters, as above, of a text with fewer sentences than its source
negations    a pattern that a text matches when its source says "not"
absences     a pattern of what says "without" beside the negations
obligations  a pattern that a text matches when its source says "must"
notes        a pattern of a translator's notes to others
rules        functions; one that has the name of a general rule adds findings to it
"""

from collections import defaultdict

from .language import language_rules
from .markup import html, link, markup, placeholder, symbol
from .numbers import number
from .prose import doubled, length, negation, note, wordless
from .punctuation import character, ending, punctuation, spacing
from .terms import glossary_term
from .words import english, identifier, word

MUCH = 500  # characters
GENERAL = (
    *(markup, symbol, number, identifier, link, placeholder, html),
    *(english, word, glossary_term),
    *(character, spacing, punctuation, ending),
    *(doubled, length, negation, note, wordless),
)


def rules_of(language):
    """The functions of each rule for a language, by the rule's name."""
    rules = defaultdict(list)
    for rule in GENERAL + language_rules(language).rules:
        rules[rule.__name__.replace("_", "-")].append(rule)
    return rules


def apply_rules(message):
    """What is wrong with a message: phrases, by the name of the rule that found them."""
    if len(message.translation) > MUCH + 5 * len(message.source):
        return {"length": ["is many times longer than the source"]}  # Rules would take long.
    found = {
        name: [phrase for rule in rules for phrase in rule(message)]
        for name, rules in rules_of(message.language).items()
    }
    return {name: phrases for name, phrases in found.items() if phrases}

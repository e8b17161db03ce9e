"""The site in a language that nobody speaks, to find what no translation can reach.

usage: python -m tools.translate.pseudo_locale

Every message is translated into itself: with accents, in brackets, 40 % longer. On its
pages, text without accents is text that translators cannot get at, and what breaks there
would break in a language of long words. Writes _build/pseudo.
"""

import math
import re
import shutil
from itertools import cycle, islice

from ..pages.sources import lay_out_executed
from ..processes.sphinx import run_sphinx
from ..project.errors import run_command
from ..project.languages import Language
from ..project.paths import BUILD
from . import catalogs
from .extract import extract

# "XA" is reserved for private use; pseudo-locales with accents go by it.
PSEUDO = Language(gettext="en_XA", url="en-xa", html="en-XA", name="Ƥşḗŭḓǿ")
FOLDER = BUILD / "pseudo"
PAGES = FOLDER / "html"
GROWTH = 0.4
ACCENTED = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "àƀçđéƒğĥîĵķļɱñöþɋŕšţüṽŵẋýžÀƁÇĐÉƑĞĤÎĴĶĻṀÑÖÞɊŔŠŢÜṼŴẊÝŽ",
)
PADDING = " lorem ipsum dolor sit amet".translate(ACCENTED)
# Markup and code: the same in each language.
KEPT = re.compile(
    r"""
    ``.+?``                             # literals in reST
    | [:{][\w:.+-]+[:}]` (?:[^`<]*`)?   # a role, and its target if it has no title
    | `(?:[^`<]|(?<=\S)<)+`_{0,2}       # literals in Markdown, references by name
    | \s<[^<>]+>`_{0,2}                 # the target behind a title
    | \]\([^)]*\)                       # the target of a link in Markdown
    | <[^<>]+> | &\#?\w+;               # HTML, addresses
    | %\(\w+\)[sd] | \$?\{\w*\}         # placeholders
    | https?://\S+
    | \\.
    """,
    re.S | re.X,
)


def pseudo(text):
    """Return the message in the pseudo-language, with the markup that it had."""
    markup = KEPT.findall(text)
    between = [part.translate(ACCENTED) for part in KEPT.split(text)]
    parts = [part for pair in zip(between, [*markup, ""], strict=True) for part in pair]
    missing = math.ceil(len(text) * GROWTH) - len("⟦⟧")
    padding = "".join(islice(cycle(PADDING), max(0, missing))).rstrip()
    return f"⟦{''.join(parts)}{padding}⟧"


def build():
    """Render the site in the pseudo-language, from catalogs made for it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for page, catalog in extract().items():
        catalog.locale = "en"  # Of real languages, what it is closest to.
        for message in catalog:
            if message.id:
                message.string = pseudo(message.id)
        path = FOLDER / "locales" / PSEUDO.gettext / "LC_MESSAGES" / f"{page}.po"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(catalogs.write(catalog))
    sources = lay_out_executed(FOLDER / "sources")
    options = ["-E", "-D", f"locale_dirs={FOLDER / 'locales'}"]
    doctrees, what = FOLDER / "doctrees", "rendering the pseudo-locale"
    run_sphinx(what, "html", PSEUDO, sources, PAGES, *options, doctrees=doctrees)


if __name__ == "__main__":
    run_command(build, __doc__)

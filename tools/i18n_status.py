"""List the catalogs that need a translator, and since when; then count what is translated.

usage: python -m tools.i18n_status
"""

from collections.abc import Iterator

from .project.errors import BuildError, run_command
from .project.languages import TRANSLATIONS, Language
from .translate.losses import losses
from .translate.status import FUZZY, UNTRANSLATED, PageStatus, status_of

LISTED = 8  # catalogs of each language, so that the whole is one page


def report(pages: dict[str, PageStatus]) -> Iterator[str]:
    """Yield a line for each catalog with the most to do, with the place of its first message."""
    to_do = sorted((x for x in pages.values() if x.open), key=lambda x: len(x.open), reverse=True)
    for status in to_do[:LISTED]:
        place = f"{status.catalog}:{status.open[0].line}:"
        line = f"{place:66} {status.count(FUZZY)} fuzzy, {status.count(UNTRANSLATED)} untranslated"
        if status.behind_since:
            line += f", behind since {status.behind_since}"
        yield line
    if rest := to_do[LISTED:]:
        yield f"{len(rest)} more catalogs: {sum(len(x.open) for x in rest)} fuzzy or untranslated"


def total(language: Language, pages: dict[str, PageStatus]) -> str:
    done, all_of_them = (
        sum(getattr(x, name) for x in pages.values()) for name in ("translated", "total")
    )
    complete = sum(not x.open for x in pages.values())
    return (
        f"{language.name} ({language.gettext}): {done} of {all_of_them} messages translated, "
        f"{complete} of {len(pages)} catalogs complete"
    )


def main() -> None:
    of_language = {language: status_of(language) for language in TRANSLATIONS}
    for pages in of_language.values():
        print("".join(f"{line}\n" for line in report(pages)), end="")
    for language, pages in of_language.items():
        print(total(language, pages))
    faults = [x for language in TRANSLATIONS for x in losses(language).values()]
    if faults:
        raise BuildError("\n".join(faults))


if __name__ == "__main__":
    run_command(main, __doc__)

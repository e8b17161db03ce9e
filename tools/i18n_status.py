"""List what is translated, fuzzy and untranslated, and since when.

usage: python -m tools.i18n_status
"""

from collections.abc import Iterator

from .project.errors import run_command
from .project.languages import TRANSLATIONS, Language
from .translate.status import FUZZY, UNTRANSLATED, status_of


def report(language: Language) -> Iterator[str]:
    pages = status_of(language)
    done, total = (
        sum(getattr(x, name) for x in pages.values()) for name in ("translated", "total")
    )
    yield f"{language.name} ({language.gettext}): {done} of {total} messages translated"
    for page, status in pages.items():
        line = f"  {page:60} {status.translated:4} translated"
        if status.open:
            line += f", {status.count(FUZZY)} fuzzy, {status.count(UNTRANSLATED)} untranslated"
        if status.behind_since:
            line += f", behind since {status.behind_since}"
        yield line
        for message in status.open:
            yield f"      {status.catalog}:{message.line}: {message.state}"


def main() -> None:
    for language in TRANSLATIONS:
        print("\n".join(report(language)))


if __name__ == "__main__":
    run_command(main, __doc__)

"""Check the message catalogs.

usage: python -m tools.i18n_check
"""

from .project.errors import run_command
from .project.languages import TRANSLATIONS
from .project.paths import relative
from .translate.check import check
from .translate.exemptions import FILE, Exemptions


def main() -> None:
    print(
        f"{check()} messages in {len(TRANSLATIONS)} translations: no findings, "
        f"{len(Exemptions().lines)} exemptions in {relative(FILE)}"
    )


if __name__ == "__main__":
    run_command(main, __doc__)

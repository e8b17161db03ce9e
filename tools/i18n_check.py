"""Check the message catalogs.

usage: python -m tools.i18n_check
"""

import sys

from .project.errors import ending_the_program
from .project.languages import TRANSLATIONS
from .project.paths import relative
from .translate.check import check
from .translate.exemptions import FILE, Exemptions


def main():
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    with ending_the_program():
        print(
            f"{check()} messages in {len(TRANSLATIONS)} translations: no findings, "
            f"{len(Exemptions().lines)} exemptions in {relative(FILE)}"
        )


if __name__ == "__main__":
    main()

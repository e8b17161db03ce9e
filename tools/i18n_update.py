"""Bring the message catalogs up to date with the English text.

usage: python -m tools.i18n_update
"""

import sys

from .project.errors import ending_the_program
from .translate.update import update


def main():
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    with ending_the_program():
        update()


if __name__ == "__main__":
    main()

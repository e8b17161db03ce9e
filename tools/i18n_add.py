"""Add a language to the site.

usage: python -m tools.i18n_add LANGUAGE
"""

import sys

from .project.errors import ending_the_program
from .translate.add import add


def main():
    if len(sys.argv) != 2 or not sys.argv[1]:
        sys.exit("error: name a language: make i18n-add LANGUAGE=ja")
    with ending_the_program():
        add(sys.argv[1])


if __name__ == "__main__":
    main()

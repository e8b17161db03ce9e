"""Show what changed in the translations since a commit, for those who review them.

usage: python -m tools.i18n_review COMMIT
"""

import sys

from .project.errors import ending_the_program
from .project.paths import relative
from .translate.review import REVIEW, review


def main():
    if len(sys.argv) != 2 or not sys.argv[1]:
        sys.exit("error: name a commit: make i18n-review SINCE=main")
    with ending_the_program():
        counts = review(sys.argv[1])
        for language, count in counts.items():
            print(f"{language.name} ({language.gettext}): {count} messages changed")
        print(f"Open {relative(REVIEW)}")


if __name__ == "__main__":
    main()

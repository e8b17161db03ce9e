"""Show what changed in the translations since a commit, for those who review them.

usage: python -m tools.i18n_review COMMIT
"""

from .project.errors import BuildError, run_command
from .project.paths import relative
from .translate.review import REVIEW, review


def main(commit: str) -> None:
    if not commit:
        raise BuildError("name a commit: make i18n-review SINCE=main")
    for language, count in review(commit).items():
        print(f"{language.name} ({language.gettext}): {count} messages changed")
    print(f"Open {relative(REVIEW)}")


if __name__ == "__main__":
    run_command(main, __doc__)

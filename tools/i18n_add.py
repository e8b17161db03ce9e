"""Add a language to the site, make its catalogs, and print what else it needs, and where.

usage: python -m tools.i18n_add LANGUAGE
"""

import subprocess
import sys

from .project.errors import run_command
from .translate.add import add, needed


def main(language: str) -> None:
    add(language)
    # In a process that reads the languages anew.
    status = subprocess.run([sys.executable, "-m", "tools.i18n_update"]).returncode
    if status:
        sys.exit(status)
    print(f"\n{needed(language)}")


if __name__ == "__main__":
    run_command(main, __doc__)

"""Bring the message catalogs up to date with the English text.

usage: python -m tools.i18n_update
"""

from .project.errors import run_command
from .translate.update import update

if __name__ == "__main__":
    run_command(update, __doc__)

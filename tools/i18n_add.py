"""Add a language to the site.

usage: python -m tools.i18n_add LANGUAGE
"""

from .project.errors import run_command
from .translate.add import add

if __name__ == "__main__":
    run_command(add, __doc__)

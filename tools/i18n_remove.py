"""Remove a language from the site.

usage: python -m tools.i18n_remove LANGUAGE
"""

from .project.errors import run_command
from .translate.remove import remove

if __name__ == "__main__":
    run_command(remove, __doc__)

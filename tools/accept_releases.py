"""Do what test_releases does, and accept the results.

usage: python -m tools.accept_releases [RELEASE]

RELEASE is one of releases.toml, or "oldest" for the oldest that the site is built with.
"""

import sys

from .check.releases import try_releases
from .project.errors import ending_the_program

if __name__ == "__main__":
    with ending_the_program():
        try_releases(sys.argv[1:], accept=True)

"""Do what test_releases does, and accept the results.

usage: python -m tools.accept_releases [RELEASE]

RELEASE is one of releases.toml; without it, all are tried.
"""

from .check.releases import try_releases
from .project.errors import run_command


def main(*versions: str) -> None:
    try_releases(list(versions), accept=True)


if __name__ == "__main__":
    run_command(main, __doc__)

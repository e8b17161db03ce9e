"""Compile the extension, run its tests and the samples with other releases of PyTorch.

usage: python -m tools.test_releases [RELEASE]

RELEASE is one of releases.toml; without it, all are tried.
"""

from .check.releases import try_releases
from .project.errors import run_command


def main(*versions: str) -> None:
    try_releases(list(versions), accept=False)


if __name__ == "__main__":
    run_command(main, __doc__)

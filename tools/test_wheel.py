"""Build one wheel of a new project for all releases of PyTorch, and use it with each.

usage: python -m tools.test_wheel
"""

from .check.one_wheel import try_wheel
from .project.errors import run_command


def main() -> None:
    try_wheel(accept=False)


if __name__ == "__main__":
    run_command(main, __doc__)

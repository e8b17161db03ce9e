"""Do what test_wheel does, and accept the results.

usage: python -m tools.accept_wheel
"""

from .check.one_wheel import try_wheel
from .project.errors import run_command


def main() -> None:
    try_wheel(accept=True)


if __name__ == "__main__":
    run_command(main, __doc__)

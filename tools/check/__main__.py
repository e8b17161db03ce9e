"""Run the stage "check" alone.

usage: python -m tools.check
"""

from ..processes.one_build import main
from .stage import run

if __name__ == "__main__":
    main(run, usage=__doc__)

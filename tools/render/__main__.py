"""Run the stage "render" alone.

usage: python -m tools.render
"""

from ..processes.one_build import main
from .stage import run

if __name__ == "__main__":
    main(run, usage=__doc__)

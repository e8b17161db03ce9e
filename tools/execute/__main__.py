"""Run the stage "execute" alone, after the stage "compile".

usage: python -m tools.execute
"""

from ..processes.one_build import main
from .stage import run

if __name__ == "__main__":
    main(run, usage=__doc__)

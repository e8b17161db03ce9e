"""Run the stage "execute" alone, after the stage "compile".

usage: python -m tools.execute
"""

from ..processes.one_build import main
from .execution import execute

if __name__ == "__main__":
    main(execute, usage=__doc__)

"""Run the stage "check" alone.

usage: python -m tools.check
"""

from ..processes.one_build import main
from .site import check

if __name__ == "__main__":
    main(check, usage=__doc__)

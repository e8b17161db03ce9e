"""Run the stage "check" alone.

usage: python -m tools.check
"""

from ..processes.one_build import main
from .site import check_if_changed

if __name__ == "__main__":
    main(check_if_changed, usage=__doc__)

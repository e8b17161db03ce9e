"""Run the stage "render" alone.

usage: python -m tools.render
"""

from ..processes.one_build import main
from .rendering import render

if __name__ == "__main__":
    main(render, usage=__doc__)

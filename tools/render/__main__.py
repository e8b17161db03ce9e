"""Run the stage "render" alone.

usage: python -m tools.render
"""

from ..processes.one_build import main
from ..processes.sphinx import loaded_sphinx


def render():
    with loaded_sphinx():
        from .stage import run

        run()


if __name__ == "__main__":
    main(render, usage=__doc__)

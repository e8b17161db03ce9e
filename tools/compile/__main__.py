"""Run the stage "compile" alone.

usage: python -m tools.compile
"""

from ..processes.one_build import main, stage
from .stage import compile_extension


def run():
    with stage("compile"):
        if not compile_extension():
            print("    the extension is up to date", flush=True)


if __name__ == "__main__":
    main(run, usage=__doc__)

"""Run the stage "compile" alone.

usage: python -m tools.compile
"""

from ..processes.one_build import main, stage
from .extensions import EXTENSIONS
from .stage import compile_extension


def run():
    with stage("compile"):
        for extension in EXTENSIONS:
            if not compile_extension(extension):
                print(f"    {extension.name} is up to date", flush=True)


if __name__ == "__main__":
    main(run, usage=__doc__)

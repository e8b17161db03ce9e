"""Run the stage "compile" alone.

usage: python -m tools.compile
"""

from ..processes.one_build import main, stage
from .compilation import compile_extension
from .extensions import EXTENSIONS


@stage("compile")
def compile_all() -> None:
    for extension in EXTENSIONS:
        if not compile_extension(extension):
            print(f"    {extension.name} is up to date", flush=True)


if __name__ == "__main__":
    main(compile_all, usage=__doc__)

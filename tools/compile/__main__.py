"""Run the stage "compile" alone.

usage: python -m tools.compile
"""

from ..processes.one_build import main, stage
from ..processes.progress import progress
from .compilation import compile_extension
from .extensions import EXTENSIONS


@stage("compile")
def compile_all() -> None:
    results: list[str] = []

    def describe() -> str:
        now = ", ".join(x.name for x in EXTENSIONS[len(results) :][:1])
        return f"{len(results)} of {len(EXTENSIONS)} extensions compiled; now {now}"

    with progress(describe):
        for extension in EXTENSIONS:
            result = "compiled" if compile_extension(extension) else "up to date"
            results.append(f"    {extension.name} is {result}")
    print("\n".join(results), flush=True)


if __name__ == "__main__":
    main(compile_all, usage=__doc__)

"""Accept what was last measured of each backend: copy it into the project.

usage: python -m tools.accept_bench_backend
"""

import shutil

from .project.errors import BuildError, run_command
from .project.paths import MEASURED, MEASUREMENTS, relative


def accept() -> None:
    measured = [path for path in MEASUREMENTS.values() if (MEASURED / path.name).is_file()]
    if not measured:
        raise BuildError(f"{relative(MEASURED)} has no results: run `make bench-backend` first")
    for path in measured:
        shutil.copyfile(MEASURED / path.name, path)
        print(f"wrote {relative(path)}")


if __name__ == "__main__":
    run_command(accept, __doc__)

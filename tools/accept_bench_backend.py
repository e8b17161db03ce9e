"""Accept what was last measured of the shared-memory backend: copy it into the project.

usage: python -m tools.accept_bench_backend
"""

import shutil

from .project.errors import BuildError, run_command
from .project.paths import BACKEND_MEASURED, MEASUREMENTS, relative


def accept() -> None:
    if not BACKEND_MEASURED.is_file():
        raise BuildError(f"{relative(BACKEND_MEASURED)} is missing: run `make bench-backend` first")
    shutil.copyfile(BACKEND_MEASURED, MEASUREMENTS)
    print(f"wrote {relative(MEASUREMENTS)}")


if __name__ == "__main__":
    run_command(accept, __doc__)

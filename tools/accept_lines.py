"""Accept what was last counted: which lines on pages no sample executes.

usage: python -m tools.accept_lines
"""

import shutil

from .pages.unexecuted_lines import COUNTED
from .project.errors import BuildError, run_command
from .project.paths import UNEXECUTED_LINES, relative


def accept() -> None:
    if not COUNTED.is_file():
        raise BuildError("nothing was counted: run `make test-lines` first")
    shutil.copyfile(COUNTED, UNEXECUTED_LINES)
    print(f"wrote {relative(UNEXECUTED_LINES)}")


if __name__ == "__main__":
    run_command(accept, __doc__)

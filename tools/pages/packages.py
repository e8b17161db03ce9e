"""The Python packages that projects of readers install: the frame and the suite, as wheels.

Until an index of packages has them, the site serves them at ``PACKAGES``, and the zip files that
need one contain it. A wheel has the same bytes each time.
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ..project.paths import FRAME, SUITE
from ..project.published import PUBLISHED

FOLDER = "packages"  # of the site, beside the languages
ADDRESS = f"{PUBLISHED.url}{FOLDER}/"  # for pip's --find-links
RELEASED = (FRAME, SUITE)


def wheels(*projects: Path) -> dict[str, bytes]:
    """Return the wheels of projects, by the paths that they have in a zip file."""
    return {f"wheels/{name}": content for name, content in map(wheel, projects)}


@cache
def wheel(project: Path) -> tuple[str, bytes]:
    """Return the name and the content of the wheel of a project."""
    with TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "flit_core.wheel", project, "--outdir", folder],
            # Otherwise the wheel would contain the times at which its files were written.
            env={**os.environ, "SOURCE_DATE_EPOCH": "0"},
            check=True,
            capture_output=True,
        )
        [path] = Path(folder).iterdir()
        return path.name, path.read_bytes()

"""Make the suite and the defective backend importable for processes that a check starts."""

import os
from pathlib import Path

from tools.project.paths import SUITE

os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent), str(SUITE), os.environ.get("PYTHONPATH", "")]
)

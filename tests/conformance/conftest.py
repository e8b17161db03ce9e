"""Make the suite and the defective backend importable."""

import os
import sys
from pathlib import Path

_HERE = Path(__file__).parent
for _path in (_HERE, _HERE.parents[1] / "conformance"):
    sys.path.insert(0, str(_path))
# Processes that a check starts need the same.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(_HERE), str(_HERE.parents[1] / "conformance"), os.environ.get("PYTHONPATH", "")]
)

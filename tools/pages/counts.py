"""Numbers of the project that pages print, so that no text has to change with them.

Lines are those of code, without blank lines and comments. They are rounded, because pages say
"about", and show no more digits than that promises.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from ..project.errors import BuildError
from ..project.paths import HEADERS, ROOT, SUITE, relative

# Pages are rendered without PyTorch, of which the suite needs only names until a check runs.
COUNT_CHECKS = """
import sys
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock

class Named:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            return ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return MagicMock(__path__=[], __spec__=spec)
    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Named())
from c10d_conformance.registry import load
print(len(load()))
"""


def counts() -> dict[str, int]:
    """Return the number of each name that a page may use."""
    extension = ROOT / "extension"
    store = [*(extension / "store_collectives/src").glob("*"), *(HEADERS / "store").glob("*")]
    return {
        "checks": checks(),
        "lines-of-device": round(_lines((extension / "simulated_accelerator/src").glob("*")), -2),
        "lines-of-frame": round(_lines((HEADERS / "frame").glob("*.hpp")), -2),
        "lines-of-store": round(_lines(store), -1),
        "lines-of-tcp": round(_lines((extension / "tcp_collectives/src").glob("*")), -1),
    }


def checks() -> int:
    """Return how many checks the suite has."""
    command = [sys.executable, "-c", COUNT_CHECKS]
    done = subprocess.run(command, cwd=SUITE, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{relative(SUITE)}: its checks cannot be counted:\n{done.stderr}")
    return int(done.stdout)


def _lines(files: Iterable[Path]) -> int:
    lines = [line.strip() for file in files for line in file.read_text().splitlines()]
    return len([line for line in lines if line and not line.startswith("//")])

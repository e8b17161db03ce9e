"""Compare shm, and the backend of this page, with our sketch of another Backend.hpp."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE = HERE.parents[2] / "conformance"  # with the package c10d_conformance
INCLUDE = Path(importlib.util.find_spec("torch").origin).parent / "include"
HEADER = "torch/csrc/distributed/c10d/Backend.hpp"
GUARD = "C10D_BACKEND_HAS_CAPABILITIES"


def write_sketch(folder):
    """Write the installed Backend.hpp with the sketch in place of what it replaces."""
    text = (INCLUDE / HEADER).read_text()
    sketch = Path(HERE, "sketch_of_capabilities.hpp").read_text()
    types, members = re.search(r"(.*)class Backend {\n public:\n(.*?)\n};", sketch, re.S).groups()
    names = "|".join(re.findall(r"bool (\w+)\(", members))
    text = re.sub(rf"  virtual bool (?:{names})\(\).*?\n  }}\n", "", text, flags=re.S)
    text = text.replace("namespace c10d {", f"{types}}}\nnamespace c10d {{", 1)
    text = text.replace("  int getRank() const", f"{members}\n  int getRank() const", 1)
    (folder / HEADER).parent.mkdir(parents=True)
    (folder / HEADER).write_text(text)


def audit(folder):
    """Print what shm notices of the header in the folder."""
    command = ["-m", "c10d_conformance", "audit", "--backend", "shm", "--headers", folder]
    command += ["--import", "shm_collectives", "--json", folder / "audit.json"]
    path = os.pathsep.join([str(SUITE), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    subprocess.run([sys.executable, *command], env=environment, **quiet)
    for change in json.loads(Path(folder, "audit.json").read_text())["headers"]["changes"]:
        if change["effect"]:
            print(f"{change['name']}, {change['kind']}: {change['effect']}")


def compiles(source, folder):
    """Tell whether a source compiles with the header in the folder."""
    paths = [folder, INCLUDE, INCLUDE / "torch/csrc/api/include", sysconfig.get_path("include")]
    flags = ["-std=c++20", "-fsyntax-only", "-DTORCH_EXTENSION_NAME=recent_backend"]
    command = [os.environ.get("CXX", "c++"), *flags, *(f"-isystem{path}" for path in paths), source]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode == 0


with tempfile.TemporaryDirectory() as name:
    write_sketch(Path(name))
    print("# shm")
    audit(Path(name))
    print("# recent_backend.cpp")
    source = Path(HERE, "recent_backend.cpp")
    print("compiles with the sketch:", compiles(source, name))
    without = Path(name, "without_the_guard.cpp")
    without.write_text(source.read_text().replace(GUARD, "NO_SUCH_MACRO"))
    print("compiles without the guard:", compiles(without, name))

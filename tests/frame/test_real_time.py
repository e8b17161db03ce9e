"""What the frame does with the time and the files of the system, so without a clock that moves."""

import os
import subprocess
from pathlib import Path

import pytest

from tools.project.paths import HEADERS

FOLDER = Path(__file__).with_name("real_time")


@pytest.mark.parametrize("name", sorted(x.stem for x in FOLDER.glob("*.cpp")))
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_program(name, sanitizer, tmp_path):
    program = tmp_path / name
    flags = ["-std=c++20", "-O0", "-g1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    flags += [f"-I{HEADERS}", f"-fsanitize={sanitizer}"]
    command = [os.environ.get("CXX", "c++"), *flags, FOLDER / f"{name}.cpp", "-o", program]
    subprocess.run(command, check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # calls may stay for ever
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr

"""The tests of the frame in C++, each as compiled for each sanitizer.

They are one program, in which the ranks of a group are threads. Its time stands still until all
of them sleep, and then moves (moved_time.hpp): so a test takes milliseconds, also one of a
deadline. PyTorch itself is not compiled for a sanitizer, and so its faults go unnoticed.
"""

import os
import re
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from torch.utils.cpp_extension import include_paths, library_paths

from tools.compile.toolchain import compiled_with
from tools.project.paths import BUILD, HEADERS
from tools.state.digests import digest, files_below

HERE = Path(__file__).parent
CASES = [
    name
    for source in sorted(HERE.glob("*.cpp"))
    for name in re.findall(r'TEST_CASE\(\s*"(.+?)"\)', source.read_text())
]
FLAGS = ["-std=c++20", "-O0", "-g1", "-Wall", "-Wextra", '-DC10D_FRAME_TIME="moved_time.hpp"']
FLAGS += [f"-iquote{HERE / 'stand_ins'}", f"-I{HEADERS}", f"-I{HERE}"]
FLAGS += [f"-isystem{sysconfig.get_path('include')}"]
FLAGS += [f"-isystem{path}" for path in include_paths()]
for path in library_paths():
    FLAGS += [f"-L{path}", f"-Wl,-rpath,{path}"]
LIBRARIES = ["-ltorch_cpu", "-lc10", "-pthread"]
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
    "thread": ["-fsanitize=thread"],
}
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",
    # Some tests fork. PyTorch's own synchronization is invisible.
    "TSAN_OPTIONS": "die_after_fork=0:ignore_noninstrumented_modules=1",
}


@dataclass
class Results:
    status: int
    output: str
    failures: dict  # What each case reports; nothing: it passed.


@pytest.fixture(scope="module")
def programs():
    """Return the program for each sanitizer. Compile those whose sources have changed."""
    sources = [*files_below(HEADERS), *files_below(HERE)]
    folder = BUILD / "frame-tests"
    folder.mkdir(parents=True, exist_ok=True)
    compilers, programs = {}, {}
    for name, flags in SANITIZERS.items():
        key = digest(sources, *compiled_with(), *FLAGS, *flags)
        programs[name] = program = folder / f"{name}-{key[:16]}"
        if program.exists():
            continue
        for old in folder.glob(f"{name}-*"):
            old.unlink()
        command = [os.environ.get("CXX", "c++"), *FLAGS, *flags, HERE / "main.cpp", *LIBRARIES]
        compilers[program] = subprocess.Popen([*command, "-o", program.with_suffix(".new")])
    statuses = [compiler.wait() for compiler in compilers.values()]
    assert not any(statuses)
    for program in compilers:
        program.with_suffix(".new").rename(program)
    return programs


@pytest.fixture(scope="module", params=SANITIZERS)
def results(request, programs, tmp_path_factory):
    """Run all cases."""
    report = tmp_path_factory.mktemp("report") / "cases.xml"
    done = subprocess.run(
        [programs[request.param], "--reporters=junit", f"--out={report}"],
        env={**os.environ, **OPTIONS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    failures = {
        case.get("name"): [part.get("message") for part in case]
        for case in ElementTree.parse(report).iter("testcase")
    }
    return Results(done.returncode, done.stdout, failures)


@pytest.mark.parametrize("case", CASES)
def test_case(results, case):
    assert case in results.failures, f"it was not run:\n{results.output}"
    assert not results.failures[case], f"{results.failures[case]}\n{results.output}"


def test_sanitizer_reports_nothing(results):
    assert results.status == 0, results.output

"""The sanitizers report nothing about the extensions.

The samples that load an extension, and the tests of the extensions, run in a copy of the
project whose extensions were compiled for the sanitizers. PyTorch and Python themselves were
not, and so their faults go unnoticed. Leaks are not looked for, because Python never returns
all of its memory. Only those data races are seen in which our code takes part, and none
between processes. Ranks that are threads of one process share one mapping for this run, so races
between them are seen.

The tests of the frame in C++ run with sanitizers in `make test`.
"""

import os
import subprocess
from dataclasses import dataclass

import pytest

from tools.execute.samples import extensions_of, samples
from tools.project.paths import EXTENSIONS, ROOT, relative

TIMEOUT = 1200  # seconds; each takes about 150 on a quiet machine
# The tests of `shm_collectives`, except a model in Python, measurements, and episodes of the soak,
# in which the address sanitizer hung three times in the start of a thread.
LEFT_OUT = {"test_step_protocol.py", "test_soak.py", "test_measurement.py"}
SHM_TESTS = [
    relative(x) for x in sorted(ROOT.glob("tests/shm/test_*.py")) if x.name not in LEFT_OUT
]
# Beside those of step 3, which compile the extension once more. Two measure time, one compiles
# for sanitizers itself, and two take minutes here: all features of PyTorch, with three backends.
LEFT_OUT_SAMPLES = {"wait_without_wasting", "measure", "ship_it"}
LEFT_OUT_SAMPLES |= {"test_your_backend", "training"}
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=300"]


@dataclass(frozen=True)
class Sanitizer:
    flags: list
    runtime: str  # The library that a process must load before all others.
    options: dict

    def environment(self, reports):
        """Return the variables that make the sanitizer write reports to a folder."""
        # A sample ends a process by SIGBUS, on purpose.
        common = f"handle_sigbus=0:log_path={reports}/of"
        options = {name: f"{x}:{common}" for name, x in self.options.items()}
        # Exceptions are thrown by the second.
        libraries = [library(self.runtime), library("libstdc++.so")]
        # UCX, which MPICH brings, patches calls that a thread makes after its sanitizer has ended.
        options["UCX_MEM_MMAP_HOOK_MODE"] = "none"
        return options | {"LD_PRELOAD": " ".join(libraries)}


SANITIZERS = {
    "addresses and undefined behaviour": Sanitizer(
        ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g1"],
        "libasan.so",
        {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
    ),
    "threads": Sanitizer(
        ["-fsanitize=thread", "-g1"],
        "libtsan.so",
        # Ranks are forked. PyTorch's own synchronization is invisible.
        {"TSAN_OPTIONS": "die_after_fork=0:ignore_noninstrumented_modules=1"},
    ),
}


def library(name):
    done = subprocess.run(
        [os.environ.get("CXX", "c++"), f"-print-file-name={name}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module", params=SANITIZERS)  # whose tests share a copy
def run(request, instrumented_copy, tmp_path_factory):
    """Run Python in a copy with a sanitizer, which must not report anything."""
    sanitizer, reports = SANITIZERS[request.param], tmp_path_factory.mktemp("reports")
    copy = instrumented_copy(sanitizer.flags, **sanitizer.environment(reports))
    for script in samples():
        left_out = script.stem.startswith("step_3_") or script.stem in LEFT_OUT_SAMPLES
        if left_out or not extensions_of(script):
            (copy.root / relative(script)).unlink()
    copy.python("-m", "tools.compile", timeout=TIMEOUT)
    for extension in EXTENSIONS:
        [module] = (copy.root / "_build/extension" / extension.name).glob("*.so")
        assert sanitizer.runtime.encode() in module.read_bytes(), f"{module}: without it"

    def run_clean(*arguments):
        try:
            return copy.python(*arguments, timeout=TIMEOUT)
        finally:
            found = [path.read_text()[:2500] for path in reports.iterdir()]
            assert not found, "\n\n".join(found)

    return run_clean


@pytest.mark.timeout(2 * TIMEOUT)
def test_samples(run):
    output = run("-m", "tools.execute")
    assert "executed gallery/tutorial/step_4_several_ranks.py" in output


@pytest.mark.timeout(2 * TIMEOUT)
@pytest.mark.parametrize(
    "tests",
    [
        ["tests/extension"],
        ["tests/store"],
        SHM_TESTS,
        ["tests/mpi"],
        ["tests/simulated_accelerator", "tests/stream"],
    ],
    ids=["dummy", "store", "shm", "mpi", "device"],
)
def test_tests_of_the_extensions(run, tests):
    assert "passed" in run(*PYTEST, *tests)

"""Give every process that a test starts the same environment."""

import os
import signal
import tempfile

from tools.project.paths import INSTALLED_EXTENSIONS

# pytest's own `pythonpath` does not reach the ranks, which are other processes.
os.environ["PYTHONPATH"] = str(INSTALLED_EXTENSIONS)
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The simulated accelerator lies beside the other extensions. Tests that want it ask for it.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

# PyTorch asks for the name of each host that uses a store. Where no server answers, it would wait
# five seconds for the name of this one.
os.environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")

# Programs end upon Ctrl-C, also when a shell runs the tests in the background: what it starts
# there ignores that, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Whatever the tests and their processes leave in temporary folders goes in the end. A worker
# of pytest-xdist has that of the process that started it: sockets need short paths.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _TEMPORARY = tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True)
    os.environ["TMPDIR"] = tempfile.tempdir = _TEMPORARY.name

    def pytest_unconfigure():
        _TEMPORARY.cleanup()

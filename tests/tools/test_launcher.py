"""The launcher says which rank failed and how, and leaves no process behind.

Importing PyTorch takes nearly all of the time of a launch. So most tests take the ranks from the
fork server, as the build does; what ``own_interpreters`` marks starts them as readers do.
"""

import os
import socket
import tempfile
import time
from types import SimpleNamespace

import launcher
import psutil
import pytest
from launcher import RankError, launch, run_program

from tools.execute.inside_sample import use_fork_server
from tools.processes import fork_server
from tools.project.paths import ROOT

ONLY_RANK_1 = "import os, sys, time\nif os.environ['RANK'] == '1':\n    "
WAIT = "\ntime.sleep(60)"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    folder, modules = tmp_path_factory.mktemp("server"), ["torch.distributed.run"]
    with fork_server.running(folder, modules=modules, env=environment) as address:
        yield address


@pytest.fixture(autouse=True)
def ranks(request, server, monkeypatch):
    if "own_interpreters" not in request.fixturenames:
        monkeypatch.setattr(launcher, "starters", [*launcher.starters])  # Put back after the test.
        monkeypatch.setenv(fork_server.ADDRESS, server)
        use_fork_server()


@pytest.fixture
def own_interpreters():
    """Mark a test whose ranks start as those of readers do."""


def write_worker(folder, code):
    path = folder / "worker.py"
    path.write_text(code)
    return path


def fail(folder, code, **options):
    with pytest.raises(RankError) as caught:
        launch(write_worker(folder, code), ranks=2, **options)
    return str(caught.value)


# A rank of a test whose time is up soon after all ranks have said this.
STARTED = "import os, pathlib; pathlib.Path(__file__).with_name(os.environ['RANK']).touch(); "


@pytest.fixture
def short_time(tmp_path, monkeypatch):
    """Let the launcher's time be up two seconds after two ranks have started."""

    def monotonic():
        now, started = time.monotonic(), [tmp_path / "0", tmp_path / "1"]
        if not all(path.exists() for path in started):
            return now
        since = max(path.stat().st_mtime for path in started)
        return now + 1e6 * (time.time() > since + 2)

    clock = SimpleNamespace(monotonic=monotonic, sleep=time.sleep)
    monkeypatch.setattr(launcher, "time", clock)


def test_output_is_labelled_and_in_rank_order(tmp_path, capfd, own_interpreters):
    code = (
        "import os, time\n"
        "rank = int(os.environ['RANK'])\n"
        "time.sleep(0.3 * (1 - rank))\n"
        "print('from Python')\n"
        "os.system('echo from a child process')\n"
    )
    launch(write_worker(tmp_path, code), ranks=2)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("$ torchrun --standalone --nproc-per-node=2 ")
    labels = [line[:8] for line in lines[1:]]
    assert labels == ["[rank 0]", "[rank 0]", "[rank 1]", "[rank 1]"]
    assert sum("from a child process" in line for line in lines) == 2


@pytest.mark.parametrize(
    "code, expected",
    [
        ("raise ValueError('no luck')", ["ended with exit status 1", "ValueError: no luck"]),
        ("import ctypes; ctypes.string_at(0)", ["killed by SIGSEGV", 'worker.py", line 3']),
        ("import warnings; warnings.warn('old')", ["exit status 1", "UserWarning: old"]),
    ],
    ids=["exception", "segmentation fault", "warning"],
)
def test_a_failure_of_one_rank(tmp_path, code, expected):
    message = fail(tmp_path, ONLY_RANK_1 + code + WAIT)
    assert "worker.py: rank 1 of 2: " in message
    assert all(text in message for text in expected), message
    assert "rank 0 of 2" not in message, "rank 0 was only stopped by torchrun"


def test_a_rank_that_hangs_is_stopped_and_shows_where(
    tmp_path, short_time, monkeypatch, own_interpreters
):
    # The path of a folder for temporary files may contain a link.
    link = tmp_path / "link"
    link.symlink_to(tempfile.gettempdir())
    monkeypatch.setattr(tempfile, "tempdir", str(link))
    code = STARTED + ONLY_RANK_1 + "time.sleep(60)  # hangs here"
    message = fail(tmp_path, code, timeout=60)
    assert "rank 1 of 2: still running after 60 s" in message
    assert "line 3" in message
    assert "rank 0 of 2" not in message
    assert not processes_of(tmp_path / "worker.py")


def processes_of(script):
    """Return the processes that have a script, or a text, in their command line."""
    running = psutil.process_iter(["cmdline"])
    return [process for process in running if str(script) in (process.info["cmdline"] or [])]


def test_stderr_has_to_be_expected(tmp_path, capfd):
    code = "import os\nos.write(2, b'a line from C++\\n')"
    message = fail(tmp_path, code)
    assert "rank 0 of 2: unexpected output on stderr" in message
    assert "a line from C++" in message
    launch(write_worker(tmp_path, code), ranks=2, expected_stderr="from C")
    assert "a line from C++" not in capfd.readouterr().out


def test_a_free_port_is_found_when_29500_is_taken(tmp_path, capfd):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 29500))
            taken.listen()
        except OSError:
            pass  # Somebody else has it, which is just as well.
        launch(write_worker(tmp_path, "print('up')"), ranks=1)
    assert "[rank 0] up" in capfd.readouterr().out


def test_the_output_is_returned_and_can_be_kept_from_the_page(tmp_path, capfd):
    worker = write_worker(tmp_path, "import os\nprint(os.environ['RANK'])")
    assert launch(worker, ranks=2, show=False) == ["0\n", "1\n"]
    assert capfd.readouterr().out == ""


def test_a_program_is_run_and_shown(tmp_path, capfd):
    program = write_worker(tmp_path, "print('hello')")
    assert run_program(program) == "hello\n"
    assert capfd.readouterr().out == f"$ python {program}\nhello\n"


def test_a_program_imports_from_the_folder_shared_and_beside_the_sample(tmp_path, monkeypatch):
    for folder in ("shared", "page"):
        (tmp_path / folder).mkdir()
    (tmp_path / "shared/ours.py").write_text("x = 7\n")
    (tmp_path / "common.py").write_text("y = 8\n")
    write_worker(tmp_path / "page", "import common, ours\nprint(ours.x, common.y)\n")
    monkeypatch.chdir(tmp_path)
    assert run_program("page/worker.py") == "7 8\n"
    assert launch("page/worker.py", ranks=1) == ["7 8\n"]


@pytest.mark.parametrize(
    "code, expected",
    [
        ("import sys; sys.exit(4)", "worker.py: ended with exit status 4"),
        ("import warnings; warnings.warn('old')", "UserWarning: old"),
        ("import os; os.write(2, b'C++')", "worker.py: unexpected output on stderr\nC++"),
        ("import time; time.sleep(60)", "worker.py: still running after 1 s"),
    ],
    ids=["exit", "warning", "stderr", "hang"],
)
def test_a_program_that_goes_wrong(tmp_path, code, expected):
    with pytest.raises(RankError) as caught:
        run_program(write_worker(tmp_path, code), timeout=1)
    assert expected in str(caught.value)


def test_the_children_of_a_hanging_program_end_with_it(tmp_path):
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(77)'])\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(RankError, match="still running"):
        run_program(write_worker(tmp_path, code), timeout=3)
    assert not processes_of("import time; time.sleep(77)")


def test_two_nodes_share_the_ranks(tmp_path, capfd):
    names = ["RANK", "GROUP_RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"]
    code = f"import os\nprint(*[os.environ[name] for name in {names}])"
    output = launch(write_worker(tmp_path, code), ranks=4, nodes=2)
    assert output == ["0 0 0 4 2\n", "1 0 1 4 2\n", "2 1 0 4 2\n", "3 1 1 4 2\n"]
    first, second = capfd.readouterr().out.splitlines()[:2]
    assert first == "$ torchrun --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d \\"
    assert second.startswith("    --rdzv-endpoint=$HOST:$PORT ")


def test_ranks_that_cannot_be_shared_out(tmp_path):
    with pytest.raises(ValueError, match="3 ranks .* 2 nodes"):
        launch(tmp_path / "worker.py", ranks=3, nodes=2)


def test_a_failure_on_one_node_ends_the_other(tmp_path):
    code = ONLY_RANK_1 + "raise ValueError('no luck')" + "\ntime.sleep(600)"
    message = fail(tmp_path, code, nodes=2, timeout=600)  # Longer than a test may run.
    assert "worker.py: rank 1 of 2: ended with exit status 1" in message
    assert "ValueError: no luck" in message
    assert "rank 0 of 2" not in message


def test_a_hang_on_two_nodes(tmp_path, short_time):
    message = fail(tmp_path, STARTED + "import time" + WAIT, nodes=2, timeout=60)
    assert "rank 0 of 2: still running after 60 s" in message
    assert "rank 1 of 2: still running after 60 s" in message
    assert message.count('worker.py", line 2') == 2


# Rank 1 waits until rank 0, which torchrun is going to stop, has said something.
FAIL_ONCE = """
import os, pathlib, sys, time
attempt, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
print("attempt", attempt, flush=True)
said = pathlib.Path(__file__).with_name("said")
if rank == "0":
    said.touch()
elif attempt == "0":
    while not said.exists():
        time.sleep(0.05)
    sys.exit("no luck")
"""


def test_all_ranks_are_started_again_when_one_fails(tmp_path, capfd):
    worker = write_worker(tmp_path, FAIL_ONCE + "time.sleep(60 * (attempt == '0'))")
    output = launch(worker, ranks=2, max_restarts=1)
    assert output == ["attempt 0\nattempt 1\n"] * 2
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].endswith(" --max-restarts=1 \\")
    assert lines[2:4] == ["[rank 0] attempt 0", "[rank 0] attempt 1"]


def test_the_last_attempt_has_to_be_silent_on_stderr(tmp_path):
    code = FAIL_ONCE + "if attempt == '1': os.write(2, b'a line from C++')"
    message = fail(tmp_path, code, max_restarts=1)
    assert "rank 0 of 2: unexpected output on stderr" in message
    assert "a line from C++" in message


def test_a_rank_that_fails_in_all_attempts(tmp_path):
    code = ONLY_RANK_1 + "sys.exit('no luck')" + WAIT
    message = fail(tmp_path, code, max_restarts=1)
    assert "rank 1 of 2: ended with exit status 1" in message
    assert message.count("no luck") == 2
    assert "rank 0 of 2" not in message

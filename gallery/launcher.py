"""Start programs that consist of several processes, and print what they wrote.

``launch`` is a thin layer over ``torchrun``. It collects the standard output and the
standard error of every rank in files, which includes the output of C++. It prints the
standard output in the order of the ranks, with ``[rank N]`` in front of each line.
``run_program`` runs a program that starts its processes itself, and prints its output
unchanged. Both set ``OMP_NUM_THREADS=1``, make Python warnings errors, and let the program
import the modules of the folder ``shared``, and those beside the sample. Both report a failure as
one exception that names the program, the rank if known, and the reason.
"""

import os
import re
import signal
import socket
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import psutil


# The profiler writes its start and its end to stderr. A build of PyTorch for CUDA also writes
# that there is no driver (35) or no device (100).
PROFILER = r"profiler_start$|profiler_stop$|gpuGetDeviceCount failed with code (35|100)$"

# PyTorch 2.13 logs this when it destroys a group whose argument names devices.
WARNING_OF_2_13 = "No backend of type 0 found for Process Group"
ALWAYS_EXPECTED = [WARNING_OF_2_13] if version("torch").startswith("2.13.") else []

# Functions that start a program. The build of the site adds a faster one, which imports less.
starters = [psutil.Popen]


class RankError(RuntimeError):
    """A rank failed, crashed, hung, or wrote to stderr unexpectedly."""


def launch(
    worker: str | Path,
    *,
    ranks: int,
    nodes: int = 1,
    max_restarts: int = 0,
    timeout: float = 60.0,
    expected_stderr: str | None = None,
    show: bool = True,
) -> list[str]:
    """Run ``worker`` on ``ranks`` processes and print their output by rank.

    Returns a list with the output of each rank. Without ``show``, nothing is printed, so
    that no page has an empty output where the next lines say what came back.

    ``worker`` is the path of a Python program. ``timeout`` is in seconds, of which each
    counts less while the machine is busy with other work. Each of the
    ``nodes`` is a torchrun on this machine and runs an equal share of the ranks. When a
    rank fails, all ranks are started again, up to ``max_restarts`` times. Every line on
    stderr must match the regular expression ``expected_stderr``. By default, stderr must
    be empty. Python warnings are errors in the ranks. After a restart, only what the last
    attempt wrote to stderr counts.

    Raises ``RankError`` when a rank fails, runs too long, or writes to stderr
    unexpectedly. No process outlives the call.
    """
    if ranks % nodes:
        raise ValueError(f"{ranks} ranks cannot be shared out evenly to {nodes} nodes")
    worker = Path(worker)
    options = [f"--nproc-per-node={ranks // nodes}"]
    options.insert(0, "--standalone" if nodes == 1 else f"--nnodes={nodes}")
    if max_restarts:
        options.append(f"--max-restarts={max_restarts}")
    if show:
        _print_command(worker, options, nodes)
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        logs = Path(folder).resolve()  # As the system names open files.
        failed, stuck = _run_torchruns(worker, options, nodes, timeout, logs)
        places = [divmod(rank, ranks // nodes) for rank in range(ranks)]
        output = ["".join(_read(logs, *place, "stdout.log")) for place in places]
        attempts = [_read(logs, *place, "stderr.log") for place in places]
        summary = "".join(log.read_text(errors="replace") for log in logs.glob("*.log"))
    errors = ["".join(texts) for texts in attempts]

    if stuck:
        reason = f"still running after {timeout:g} s"
        reasons = {places.index(place): reason for place in stuck}
        _fail(worker, ranks, reasons, errors, summary)
    if failed:
        _fail(worker, ranks, _failed_ranks(summary), errors, summary)
    noisy = {
        rank: "unexpected output on stderr"
        for rank, texts in enumerate(attempts)
        if _unexpected("".join(texts[-1:]), expected_stderr)
    }
    if noisy:
        _fail(worker, ranks, noisy, errors, summary)

    for rank, text in enumerate(output if show else []):
        for line in text.splitlines():
            print(f"[rank {rank}] {line}")
    return output


def run_program(
    program: str | Path, *, timeout: float = 60.0, expected_stderr: str | None = None
) -> str:
    """Run ``program``, which starts its processes itself, and print its output.

    Returns the output. Raises ``RankError`` when the program fails, runs longer than
    ``timeout`` seconds, or has a line on stderr that does not match ``expected_stderr``.
    """
    program = Path(program)
    print(f"$ python {program.as_posix()}")
    command = [sys.executable, "-W", "error", "-X", "faulthandler", str(program)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = _start(command, out, err)
        descendants = []
        try:
            [status] = _wait([process], timeout)
            reason = _describe_exit(status) if status else None
            if status is None:
                reason = f"still running after {timeout:g} s"
                descendants = process.children(recursive=True)
                process.send_signal(signal.SIGABRT)  # faulthandler prints the stack.
                psutil.wait_procs([process], timeout=5)
        finally:
            _end(process, descendants)
        out.seek(0)
        err.seek(0)
        output, errors = out.read(), err.read()
    if not reason and _unexpected(errors, expected_stderr):
        reason = "unexpected output on stderr"
    if reason:
        raise RankError(f"{program}: {reason}\n{errors or output}")
    print(output, end="")
    return output


def _start(command, out, err):
    # The session makes a process group, which _end() ends as a whole.
    return starters[-1](
        command, stdout=out, stderr=err, env=_environment(), start_new_session=True
    )


def _environment():
    # One thread for each process: the samples are small, and the machine may be small too.
    # By default, gloo and TensorPipe listen at the address of the host's name.
    loopback = next(x for _, x in socket.if_nameindex() if x.startswith("lo"))
    own = {"GLOO_SOCKET_IFNAME": loopback, "TP_SOCKET_IFNAME": loopback}
    # A program decides itself whether and when it loads a device that is installed.
    own["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    own_modules = [os.path.abspath(folder) for folder in ("shared", ".")]
    modules = [*own_modules, *filter(None, [os.environ.get("PYTHONPATH")])]
    path = {"PYTHONPATH": os.pathsep.join(modules)}
    return {**own, **os.environ, **path, "OMP_NUM_THREADS": "1"}


def _end(process, descendants):
    """Kill a process, its process group, and descendants that left the group."""
    try:
        descendants = [*descendants, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    for descendant in descendants:
        try:
            descendant.kill()
        except psutil.NoSuchProcess:
            pass
    psutil.wait_procs([process, *descendants], timeout=5)


def _print_command(worker, options, nodes):
    words = ["$ torchrun", *options]
    if nodes > 1:
        words += ["--rdzv-backend=c10d", "\\\n    --rdzv-endpoint=$HOST:$PORT"]
    elif len(options) > 2:  # Too much for one line of a page.
        words += ["\\\n   "]
    print(*words, worker.as_posix())


def _run_torchruns(worker, options, nodes, timeout, logs):
    """Return whether a torchrun failed, and the places of ranks that were stopped."""
    command = [sys.executable, "-m", "torch.distributed.run", *options]
    program = ["--no-python", sys.executable, "-W", "error", "-X", "faulthandler"]
    program += [str(worker)]
    addresses = ["localhost"]
    if nodes > 1:
        store = _meeting_place()  # Must live as long as the torchruns.
        command += ["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{store.port}"]
        command += ["--rdzv-conf=is_host=0"]
        # torchrun numbers the nodes in the order of their addresses.
        addresses = [f"127.0.0.{1 + node}" for node in range(nodes)]
    torchruns, descendants = [], []
    try:
        for node, address in enumerate(addresses):
            place = [f"--local-addr={address}", "--redirects=3"]
            place += [f"--log-dir={logs}/node_{node}"]
            with open(logs / f"torchrun_{node}.log", "wb") as log:
                torchruns.append(_start([*command, *place, *program], log, log))
        statuses = _wait(torchruns, timeout)
        running = [t for t, status in zip(torchruns, statuses) if status is None]
        if any(statuses):
            psutil.wait_procs(running, timeout=2)  # They may report the rank at fault.
            return True, []
        for torchrun in running:
            descendants += torchrun.children(recursive=True)
        return False, _show_where_ranks_hang(logs)
    finally:
        for torchrun in torchruns:
            _end(torchrun, descendants)


def _meeting_place():
    """Return a store in which torchruns find each other, already listening on its port."""
    from torch.distributed import TCPStore  # Slow to import, and rarely needed here.

    return TCPStore("localhost", 0, is_master=True, wait_for_workers=False)


def _wait(processes, timeout):
    """Wait until all have ended or one has failed, and return their exit statuses.

    The status of a process that still runs is None. While more processes want a processor
    than there are, a second counts as the part of it in which a process gets one.
    """
    now = time.monotonic()
    while True:
        statuses = [process.poll() for process in processes]
        if None not in statuses or any(statuses) or timeout < 0:
            return statuses
        time.sleep(0.05)
        before, now = now, time.monotonic()
        timeout -= (now - before) * min(1, os.cpu_count() / max(1, os.getloadavg()[0]))


def _show_where_ranks_hang(logs):
    """Make each running rank write its stack to its stderr; return their places."""
    running = {}
    for process in psutil.process_iter():
        try:
            files = {file.fd: Path(file.path) for file in process.open_files()}
        except psutil.Error:
            continue  # The process has just ended, or is another user's.
        stderr = files.get(2, logs)
        if stderr.name == "stderr.log" and logs in stderr.parents:
            node = stderr.relative_to(logs).parts[0].removeprefix("node_")
            running[int(node), int(stderr.parent.name)] = process
    for process in running.values():
        process.send_signal(signal.SIGABRT)  # faulthandler prints the stack.
    psutil.wait_procs(running.values(), timeout=5)
    return sorted(running)


def _read(logs, node, local_rank, name):
    """Return what a rank wrote, as a list with the text of each attempt."""
    files = logs.glob(f"node_{node}/*/attempt_*/{local_rank}/{name}")
    return [file.read_text(errors="replace") for file in sorted(files)]


def _failed_ranks(summary):
    """Return the failed ranks and their reasons, from torchrun's own summary."""
    pattern = r"rank\s*: (\d+) \(local_rank: \d+\)\s*exitcode\s*: (-?\d+)"
    codes = {int(rank): int(code) for rank, code in re.findall(pattern, summary)}
    # torchrun ends the other ranks with SIGTERM. They are not at fault.
    culprits = {r: code for r, code in codes.items() if code != -signal.SIGTERM}
    return {rank: _describe_exit(code) for rank, code in (culprits or codes).items()}


def _describe_exit(code):
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"ended with exit status {code}"


def _unexpected(text, expected_stderr):
    expected = ALWAYS_EXPECTED + ([expected_stderr] if expected_stderr is not None else [])
    lines = [line for line in text.splitlines() if line.strip()]
    return any(not any(re.search(x, line) for x in expected) for line in lines)


def _fail(worker, ranks, reasons, errors, summary):
    if not reasons:  # No rank is at fault: torchrun itself could not start.
        raise RankError(f"{worker}: torchrun failed\n{summary}")
    parts = []
    for rank, reason in sorted(reasons.items()):
        parts.append(f"{worker}: rank {rank} of {ranks}: {reason}")
        parts.append(errors[rank].rstrip() or "(nothing on stderr)")
    raise RankError("\n".join(parts))

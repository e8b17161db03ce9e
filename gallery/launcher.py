"""Start a worker program on several ranks and print what each rank wrote.

A thin layer over ``torchrun --standalone``: it collects the standard output and
the standard error of every rank at the level of file descriptors, so that what
C++ prints is caught too, and prints them in rank order. Whatever goes wrong in
a rank becomes one exception that names the worker, the rank and the reason.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil


class RankError(RuntimeError):
    """A rank failed, crashed, hung, or wrote to stderr unexpectedly."""


def launch(worker, *, ranks, timeout=60.0, expected_stderr=None):
    """Run ``worker`` on ``ranks`` processes and print their output by rank.

    ``worker`` is the path of a Python program and ``timeout`` is in seconds.
    Every line on stderr has to match the regular expression
    ``expected_stderr``; by default none may appear, and Python warnings are
    errors in the ranks. Raises ``RankError`` as soon as any rank misbehaves;
    no process outlives the call.
    """
    worker = Path(worker)
    print(f"$ torchrun --standalone --nproc-per-node={ranks} {worker.as_posix()}")
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        logs = Path(folder)
        status, stuck = _run_torchrun(worker, ranks, timeout, logs)
        output = [_read_rank(logs, rank, "stdout.log") for rank in range(ranks)]
        errors = [_read_rank(logs, rank, "stderr.log") for rank in range(ranks)]
        summary = (logs / "torchrun.log").read_text(errors="replace")

    if stuck:
        reasons = {rank: f"still running after {timeout:g} s" for rank in stuck}
        _fail(worker, ranks, reasons, errors, summary)
    if status != 0:
        _fail(worker, ranks, _failed_ranks(summary), errors, summary)
    noisy = {
        rank: "unexpected output on stderr"
        for rank, text in enumerate(errors)
        if _unexpected(text, expected_stderr)
    }
    if noisy:
        _fail(worker, ranks, noisy, errors, summary)

    for rank, text in enumerate(output):
        for line in text.splitlines():
            print(f"[rank {rank}] {line}")


def _run_torchrun(worker, ranks, timeout, logs):
    """Return torchrun's exit status and the ranks that had to be stopped."""
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += ["--standalone", f"--nproc-per-node={ranks}"]
    command += ["--local-addr=localhost", f"--log-dir={logs}", "--redirects=3"]
    command += ["--no-python", sys.executable, "-W", "error", "-X", "faulthandler"]
    command += [str(worker)]
    # One thread a rank: the samples are small and the machine may be, too.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(logs / "torchrun.log", "wb") as log:
        torchrun = psutil.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        return torchrun.wait(timeout), []
    except psutil.TimeoutExpired:
        return None, _show_where_ranks_hang(torchrun)
    finally:
        _kill_tree(torchrun)


def _show_where_ranks_hang(torchrun):
    """Make each running rank write its stack to its stderr; return the ranks."""
    running = {}
    for process in torchrun.children():
        try:
            running[int(process.environ()["RANK"])] = process
        except (psutil.Error, KeyError):
            continue  # It ended just now, or it is no rank.
    for process in running.values():
        process.send_signal(signal.SIGABRT)  # faulthandler prints the stack.
    psutil.wait_procs(running.values(), timeout=5)
    return sorted(running)


def _kill_tree(process):
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            pass
    psutil.wait_procs(family, timeout=5)


def _read_rank(logs, rank, name):
    files = sorted(logs.glob(f"*/attempt_*/{rank}/{name}"))
    return "".join(file.read_text(errors="replace") for file in files)


def _failed_ranks(summary):
    """Take each failed rank and its exit code from torchrun's own summary."""
    pattern = r"rank\s*: (\d+) \(local_rank: \d+\)\s*exitcode\s*: (-?\d+)"
    codes = {int(rank): int(code) for rank, code in re.findall(pattern, summary)}
    # torchrun ends the other ranks with SIGTERM; they are not to blame.
    culprits = {r: code for r, code in codes.items() if code != -signal.SIGTERM}
    return {rank: _describe_exit(code) for rank, code in (culprits or codes).items()}


def _describe_exit(code):
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"ended with exit status {code}"


def _unexpected(text, expected_stderr):
    lines = [line for line in text.splitlines() if line.strip()]
    if expected_stderr is None:
        return bool(lines)
    return any(not re.search(expected_stderr, line) for line in lines)


def _fail(worker, ranks, reasons, errors, summary):
    if not reasons:  # No rank to blame: torchrun itself could not start.
        raise RankError(f"{worker}: torchrun failed\n{summary}")
    parts = []
    for rank, reason in sorted(reasons.items()):
        parts.append(f"{worker}: rank {rank} of {ranks}: {reason}")
        parts.append(errors[rank].rstrip() or "(nothing on stderr)")
    raise RankError("\n".join(parts))

"""Start programs that consist of several processes, and print what they wrote.

``launch`` is a thin layer over ``torchrun --standalone``: it collects the standard
output and the standard error of every rank at the level of file descriptors, so
that what C++ prints is caught too, and prints them in rank order. ``run_program``
is for programs that start their processes themselves. Whatever goes wrong becomes
one exception that names the program, the rank and the reason.
"""

import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import psutil


class RankError(RuntimeError):
    """A rank failed, crashed, hung, or wrote to stderr unexpectedly."""


def launch(worker, *, ranks, timeout=60.0, expected_stderr=None, show=True):
    """Run ``worker`` on ``ranks`` processes and print their output by rank.

    Also returns it, as a list with the output of each rank. Without ``show`` only
    the command is printed.

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

    for rank, text in enumerate(output if show else []):
        for line in text.splitlines():
            print(f"[rank {rank}] {line}")
    return output


def run_program(program, *, timeout=60.0, expected_stderr=None):
    """Run ``program``, which starts its processes itself, and print its output.

    Fails like ``launch``, and returns the output.
    """
    program = Path(program)
    print(f"$ python {program.as_posix()}")
    command = [sys.executable, "-W", "error", "-X", "faulthandler", str(program)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = _start(command, out, err)
        descendants = []
        try:
            status = process.wait(timeout)
            reason = _describe_exit(status) if status else None
        except psutil.TimeoutExpired:
            descendants = process.children(recursive=True)
            process.send_signal(signal.SIGABRT)  # faulthandler prints the stack.
            psutil.wait_procs([process], timeout=5)
            reason = f"still running after {timeout:g} s"
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
    # One thread a process: the samples are small and the machine may be, too. The
    # session makes a process group, which _end() ends as a whole.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return psutil.Popen(
        command, stdout=out, stderr=err, env=environment, start_new_session=True
    )


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


def _run_torchrun(worker, ranks, timeout, logs):
    """Return torchrun's exit status and the ranks that had to be stopped."""
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += ["--standalone", f"--nproc-per-node={ranks}"]
    command += ["--local-addr=localhost", f"--log-dir={logs}", "--redirects=3"]
    command += ["--no-python", sys.executable, "-W", "error", "-X", "faulthandler"]
    command += [str(worker)]
    with open(logs / "torchrun.log", "wb") as log:
        torchrun = _start(command, log, log)
    descendants = []
    try:
        return torchrun.wait(timeout), []
    except psutil.TimeoutExpired:
        descendants = torchrun.children(recursive=True)
        return None, _show_where_ranks_hang(torchrun)
    finally:
        _end(torchrun, descendants)


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

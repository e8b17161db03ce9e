"""Stacks of ranks that hang or crash: Python's from faulthandler, those of C++ from c10."""

import faulthandler
import re
import resource
import signal
import sys
from collections import Counter

import torch

# Frames that every stack has, which say nothing about the backend.
_NOISE = re.compile(
    r"FatalSignalHandler|__libc_start|_start\b|omitting python frames|\bgsignal\b"
    r"|[/ ]libpython[^/]*\)$"
    r"|<unknown function>.*[/ ](libc\.so|libstdc\+\+|libtorch_python|python)[^/]*\)$"
)
# A thread with such frames only is idle.
_IDLE = re.compile(
    r"epoll_wait|ThreadPool|main_loop|blas_thread|gomp_|runLoop|Loop::run"
    r"|pthread_cond_|condition_variable"
)


def announce() -> None:
    """Make fatal signals of this process print all stacks to its standard error.

    c10 prints the frames of C++ of every thread; faulthandler, which is asked first, those of
    Python. Neither needs a debugger or the permission to trace a process.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch._C._set_print_stack_traces_on_fatal_signal(True)
    faulthandler.enable(file=sys.stderr, all_threads=True)


SIGNAL = signal.SIGABRT  # for a rank that hangs
_LINES = 60  # of a stack that a report shows


def shorten(text: str) -> str:
    """Return the frames that matter: Python's first, then those of C++ that do something."""
    python: list[str] = []
    blocks: list[list[str]] = []
    block: list[str] | None = None
    ours = False
    for line in text.splitlines():
        if line == "Fatal Python error: Aborted":
            continue  # the suite's own signal, or one that the exit status names
        if line.startswith(("Thread 0x", "Current thread 0x", "Fatal Python error")):
            python.append(re.sub(r"0x[0-9a-f]+ ?", "", line))
            ours = False
        elif line.startswith('  File "'):
            # From here on the frames are those of the suite and of pytest.
            ours = ours or line.endswith((" in case", " in _serve"))
            if not ours and not line.endswith(" in wrapper"):
                python.append(line)
        elif re.match(r"SIG[A-Z]+\(\d+\), PID", line):
            block = [re.sub(r", PID: \d+, Thread \d+:.*", ", a thread:", line)]
            blocks.append(block)
        elif block is not None and "frame #" in line and not _NOISE.search(line):
            block.append("  " + _frame(line))
    busy = [b for b in blocks if not all(_IDLE.search(frame) for frame in b[1:])]
    rest = [b for b in blocks if len(b) > 1 and b not in busy]
    # Threads of a pool, or of idle streams, all have the same frames.
    alike = Counter(tuple(block[1:]) for block in busy + rest)
    heads = {tuple(block[1:]): block[0] for block in reversed(busy + rest)}
    lines = python
    for frames, count in alike.items():
        head = heads[frames]
        lines += [head if count == 1 else head.replace("a thread:", f"{count} threads:"), *frames]
    if len(lines) > _LINES:
        lines = lines[:_LINES] + [f"… {len(lines) - _LINES} more lines in the rank's output"]
    return "\n".join(lines)


def _frame(line: str) -> str:
    """Return a frame without addresses: `function (library)`, or where `addr2line` finds it."""
    match = re.search(r"frame #\d+: (.*?)( \+ 0x[0-9a-f]+)? \(0x[0-9a-f]+ in (.*)\)", line)
    if not match:
        return line.strip()
    function, offset, library = match.groups()
    place = (offset or "") if function == "<unknown function>" else ""
    return f"{function[:160]}{place} ({library.rpartition('/')[2]})"

"""Run a function in several ranks, which are forks of this process."""

import contextlib
import ctypes
import functools
import inspect
import os
import resource
import signal
import struct
import tempfile
import time
import traceback
from datetime import timedelta
from multiprocessing.connection import Pipe
from pathlib import Path

import torch
import torch.distributed as dist


class Killed(Exception):
    """The rank ended without an answer; its argument is the exit code, or minus the signal."""


def run(
    function,
    size,
    *arguments,
    timeout=600,
    group_timeout=300,
    init=True,
    options=None,
    port=None,
    may_be_killed=False,
):
    """Return what `function(rank, *arguments)` returns in each rank of a group.

    An exception in a rank is raised here, with the traceback of that rank, unless the function
    returns it. A rank that a signal ends returns `Killed` if it may be killed, and is an error
    otherwise. All ranks are killed after `timeout` seconds. The ranks meet in a file, or with a
    port, in the TCPStore that listens there.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = port or Path(folder, "store")
        ranks = [
            _start(function, rank, size, arguments, store, group_timeout, init, options)
            for rank in range(size)
        ]
        answers = _collect(ranks, timeout)
    killed = [rank for rank, answer in enumerate(answers) if isinstance(answer, Killed)]
    assert may_be_killed or not killed, f"these ranks ended without an answer: {killed}"
    return answers


def in_ranks(size, **options):
    """Run a test by `run`, in each rank of a group: the first argument of the test is the rank."""

    def decorate(test):
        @functools.wraps(test)
        def run_test(**arguments):
            run(lambda rank: test(rank, **arguments), size, **options)

        # pytest looks here for the fixtures and parameters.
        _, *others = inspect.signature(test).parameters.values()
        run_test.__signature__ = inspect.Signature(others)
        return run_test

    return decorate


def _start(function, rank, size, arguments, store, group_timeout, init, options):
    receiving, sending = Pipe(duplex=False)
    process = os.fork()
    if process:
        sending.close()
        return process, receiving
    status = 1
    try:
        receiving.close()
        torch.set_num_threads(1)
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), STORE=str(store))
        try:
            if init:
                start_group(timeout=group_timeout, options=options)
            result = function(rank, *arguments)
            if dist.is_initialized():
                dist.destroy_process_group()
            answer = (True, result)
        except BaseException:
            answer = (False, traceback.format_exc())
        sending.send(answer)
        status = 0
    finally:
        os._exit(status)


def _collect(ranks, timeout):
    deadline = time.monotonic() + timeout
    answers = []
    try:
        for _, receiving in ranks:
            if not receiving.poll(deadline - time.monotonic()):
                raised = [text for ok, text in filter(None, answers) if not ok]
                late = f"rank {len(answers)} has not ended in {timeout} s"
                raise TimeoutError("\n".join([late, *raised]))
            try:
                answers.append(receiving.recv())
            except EOFError:
                answers.append(None)
    finally:
        codes = []
        for process, receiving in ranks:
            receiving.close()
            if len(answers) < len(ranks):
                os.kill(process, signal.SIGKILL)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    answers = [x or (True, Killed(code)) for x, code in zip(answers, codes, strict=True)]
    for rank, (good, answer) in enumerate(answers):
        if not good:
            others = [text for ok, text in answers[rank + 1 :] if not ok]
            raise AssertionError(f"in rank {rank}:\n{answer}" + "\n".join(others))
    return [answer for _, answer in answers]


def start_group(timeout=300, options=None, backend="shm"):
    """Initialize the default group from what `run` put into the environment."""
    size, store = int(os.environ["WORLD_SIZE"]), os.environ["STORE"]
    dist.init_process_group(
        backend,
        store=dist.TCPStore("127.0.0.1", int(store), wait_for_workers=False)
        if store.isdecimal()
        else dist.FileStore(store, size),
        rank=int(os.environ["RANK"]),
        world_size=size,
        timeout=timedelta(seconds=timeout),
        pg_options=options,
    )


@contextlib.contextmanager
def memory_limit(more):
    """Let this process map at most ``more`` bytes beyond what it has mapped."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def refuse(number, error, third_argument=None):
    """Let a system call of this thread, and of threads to come, fail with an error."""
    length, allow = (1, 3)[third_argument is not None], (6, 0, 0, 0x7FFF0000)
    lines = [(0x20, 0, 0, 0), (0x15, 0, length, number)]
    if third_argument is not None:
        lines += [(0x20, 0, 0, 32), (0x15, 0, 1, third_argument)]
    lines += [(6, 0, 0, 0x50000 | error), allow]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())  # a filter


def error_of(call, *arguments, **options):
    """Return the type's name, the text and the seconds of the error that a call raises."""
    start = time.monotonic()
    try:
        call(*arguments, **options)
    except Exception as error:
        return type(error).__name__, str(error), time.monotonic() - start
    raise AssertionError("nothing was raised")


@contextlib.contextmanager
def store_server():
    """Let a process have a TCPStore while the block runs, and yield the process and the port.

    In a file, a rank that is killed can leave half of a key, and no rank can read on from there.
    The process that forks the ranks cannot have the store: its thread may just hold a lock of the C
    library, which the new rank would never get.
    """
    receiving, sending = os.pipe()
    if not (process := os.fork()):
        try:
            store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            os.write(sending, str(store.port).encode())
            signal.pause()
        finally:
            os._exit(1)
    os.close(sending)
    try:
        yield process, int(os.read(receiving, 10))
    finally:
        os.close(receiving)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def run_by_server(start, function, size, *arguments, init=True, **group):
    """Return what `function(rank, *arguments)` returns in each rank, or `Killed`.

    The ranks meet in the server of a store that is no rank. With `init`, each begins with
    `start(**group)`.
    """

    def in_group(rank):
        if init:
            start(**group)
        return function(rank, *arguments)

    with store_server() as (server, port):
        os.environ["STORE_SERVER"] = str(server)
        return run(in_group, size, init=False, port=port, may_be_killed=True)


def store_of_rank_0(rank, path):
    """Return the store of a rank, of which rank 0 has the server and says in a file where it is."""
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        path.with_suffix(".new").write_text(str(store.port))
        path.with_suffix(".new").rename(path)
        return store
    while not path.exists():
        time.sleep(0.001)
    return dist.TCPStore("127.0.0.1", int(path.read_text()), is_master=False)


def client():
    """Return a connection to the store of the ranks, whose keys gate what they do."""
    return dist.TCPStore("127.0.0.1", int(os.environ["STORE"]), wait_for_workers=False)


def start_by_server(backend, options, seconds=300):
    """Make the default group in the store of the ranks, with a timeout of `seconds`."""
    dist.init_process_group(
        backend,
        store=dist.PrefixStore("group", client()),
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=timedelta(seconds=seconds),
        pg_options=options,
    )

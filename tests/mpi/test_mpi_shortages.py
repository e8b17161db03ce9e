"""What `mpich` says if this host is short of what MPI needs: it would end the process."""

import contextlib
import ctypes
import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from mpi_ranks import ChangedStore, backend, names_in_shared_memory, run, start, sum_in
from programs import CLONE3
from ranks import client, error_of, memory_limit, refuse

HERE = Path(__file__).parent

# Runs where nothing else is in /dev/shm, and prints what two ranks say for each size of it.
IN_SMALL_MEMORY = """
import json, os, subprocess, sys
from mpi_ranks import backend, run, start, sum_in
from ranks import error_of

def text(rank):
    try:
        return sum_in(backend("all", rank, 2), 1)
    except Exception as error:
        return str(error)

for size in sys.argv[1:]:
    subprocess.run(["mount", "-o", f"remount,size={size}", "/dev/shm"], check=True)
    print(json.dumps([*map(str, run(text, 2, init=False)), os.listdir("/dev/shm")]))
"""


def lines_of(program, *arguments, before=()):
    """Run a program in a Python of its own, and return what each of its lines is in JSON."""
    folders = [str(HERE), str(HERE.parent), *os.environ["PYTHONPATH"].split(os.pathsep)]
    done = subprocess.run(
        [*before, sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(
    not shutil.which("unshare")
    or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0,
    reason="this user cannot mount a folder of its own",
)
def test_little_shared_memory():
    """Too little, enough for one of the two ranks, and just enough."""
    mounted = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
    *short, enough = lines_of(IN_SMALL_MEMORY, "64k", "1m", "2m", "2100k", before=mounted)
    assert len(short) == 3 and enough == ["[2.0]", "[2.0]", []]
    for *texts, files in short:
        assert len(texts) == 2 and files == []
        for text in texts:
            assert text.startswith("Backend mpich: rank ")
            assert 'cannot join group "all": rank ' in text
            assert "/dev/shm is full: MPI needs 1.02 MiB there for each rank" in text


@contextlib.contextmanager
def few_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 6, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


LIMITS = {
    "files": (few_files, "raise `ulimit -n`"),
    "memory": (lambda: memory_limit(20 << 20), "raise `ulimit -v`"),
}


def short_of(rank, what):
    """Create a group while rank 1 is short of something, and then another one."""
    store = dist.PrefixStore("short", client())
    later = dist.PrefixStore("later", client())
    limit, _ = LIMITS[what]
    if rank == 0:
        text = error_of(backend, "short", rank, 2, store=store)[1]
    else:
        with limit():
            text = error_of(backend, "short", rank, 2, store=store)[1]
    return text, sum_in(backend("later", rank, 2, store=later), 1)


@pytest.mark.parametrize("what", LIMITS)
def test_a_rank_that_is_short_of_something(what):
    for text, total in run(short_of, 2, what, init=False):
        assert "rank 1: MPI needs" in text and LIMITS[what][1] in text, text
        assert total == [2.0]


CHANGES = {
    "junk": lambda value: b"?" * 40,
    "half": lambda value: value[: len(value) // 2],
    "line break": lambda value: value[:60] + b"\n" + value[60:],
    "longer": lambda value: value + b"00",
}


def with_changed_addresses(rank, change):
    def changed(key, value):
        return CHANGES[change](value) if "pmi/key/" in key else value

    store = dist.PrefixStore("group", client())
    if rank == 1:
        store = ChangedStore(store, changed)
    return error_of(backend, "group", rank, 2, store=store), names_in_shared_memory()


@pytest.mark.parametrize("way", ["network"], indirect=True)  # over memory, few addresses are needed
@pytest.mark.parametrize("change", CHANGES)
def test_addresses_that_another_program_has_changed(change, way):
    for (kind, text, _), names in run(with_changed_addresses, 2, change, init=False):
        assert kind == "DistStoreError" and names == []
        assert 'cannot join group "group"' in text
        assert "another program has changed an address of MPI in the store" in text


def without_an_address(rank):
    """Lose what rank 1 has put: MPI ends the process for that."""
    store = dist.PrefixStore("group", client())
    if rank == 1:
        store = ChangedStore(store, lambda key, value: b"" if "pmi/key/" in key else value)
    return error_of(backend, "group", rank, 2, store=store), names_in_shared_memory()


@pytest.mark.parametrize("way", ["network"], indirect=True)
def test_an_address_that_is_missing(way):
    for (kind, text, _), names in run(without_an_address, 2, init=False):
        assert kind == "DistStoreError" and names == []
        assert "MPI has ended itself with the exit code" in text


def starts_without_threads(rank):
    if rank == 1:
        refuse(CLONE3, errno.EAGAIN)
    return error_of(start)


def test_no_thread_for_the_watch():
    for kind, text, _ in run(starts_without_threads, 2, init=False):
        assert kind == "DistStoreError" and "Backend mpich: " in text, text
        assert "rank 1: cannot start a thread: Resource temporarily unavailable (see" in text, text


def reduces_with_little_memory(rank):
    """Leave memory for what MPI asks for in a reduction, but not for the frame's part of it."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.mallopt(-8, 1)  # M_ARENA_MAX: all threads have the same memory
    libc.mallopt(-3, 128 << 10)  # M_MMAP_THRESHOLD: what is larger goes back when it is freed
    start()
    dist.all_reduce(torch.ones(1000, dtype=torch.bfloat16))
    tensor = torch.ones(300_000, dtype=torch.bfloat16)
    dist.barrier()  # Until then, MPI may give memory back.
    with contextlib.ExitStack() as stack:
        if rank == 1:
            room, *small = [libc.malloc(x) for x in (700_000, *[8 << 10] * 400)]
            stack.enter_context(memory_limit(0))
            while libc.malloc(32 << 10):
                pass
            for block in (room, *small[::2]):
                libc.free(block)
        try:
            dist.all_reduce(tensor)
            dist.barrier()
        except dist.DistBackendError as error:
            return str(error)


# In a Python of its own: ranks that are forks of another would inherit memory that it has freed.
REDUCES = """
import json
from mpi_ranks import run
from test_mpi_shortages import reduces_with_little_memory

attempts = (run(reduces_with_little_memory, 2, init=False) for _ in range(5))
print(json.dumps(next((x for x in attempts if any(x)), None)))  # None: there was enough each time
"""


def test_a_reduction_without_memory():
    """No exception may pass through MPI, which may go on only on ranks that need no more of it."""
    [texts] = lines_of(REDUCES)
    if texts is None:
        pytest.skip("each time there was enough memory after all")
    for text in texts:
        assert "rank 1: a reduction has failed, and MPI with it: " in text, text
        assert "memory" in text

"""Errors of the backend `mpich`: each names what the reader must know, and nothing hangs."""

import contextlib
import ctypes
import os
import re
import signal
import time
from datetime import timedelta
from pathlib import Path

import mpi_collectives
import pytest
import torch.distributed as dist
from mpi_ranks import BOTH_WAYS, by_mpiexec, run, start
from programs import MISMATCHES, assert_described, mismatches, ones, without_rank_2
from ranks import client, error_of, store_of_rank_0
from stores import PassingStore, counting, lost_at, slow_at

# MPI tells the sender of a message nothing.
OF_COLLECTIVES = {x: y for x, y in MISMATCHES.items() if x != "message"}


@BOTH_WAYS
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("killed", "rank 2 has died (process "),
        ("destroys", "rank 2 has left the group"),
        ("aborts", "rank 2 has aborted the group"),
    ],
)
def test_a_rank_that_is_lost_is_named(how, reason, way):
    for errors in run(without_rank_2, 3, how)[:2]:
        for name, (_, text, _) in errors.items():
            assert reason in text, f"{name}: {text}"


def dies_while_others_wait(rank):
    """Return the errors of two ranks, of which one kills a third while both wait for it."""
    dist.all_reduce(ones(1000))
    store = client()
    if rank == 2:
        store.set("pid", str(os.getpid()))
        signal.pause()
    if rank == 1:
        process = int(store.get("pid"))
        work = dist.all_reduce(ones(1_000_000), async_op=True)
        os.kill(process, signal.SIGKILL)
        return error_of(work.wait)[1]
    return error_of(dist.all_reduce, ones(1_000_000))[1]


@BOTH_WAYS
def test_a_rank_that_dies_while_others_wait_is_named(way):
    assert all("rank 2 has died" in text for text in run(dies_while_others_wait, 3)[:2])


@BOTH_WAYS
def test_calls_that_do_not_agree_are_described(way):
    assert_described(run(mismatches, 2, OF_COLLECTIVES), OF_COLLECTIVES)


def message_of_another_size(rank):
    """Return what the receiver says. MPI tells the sender nothing; the receiver may be faster."""
    if rank == 0:
        with contextlib.suppress(dist.DistBackendError):
            dist.send(ones(3), 1)
        client().wait(["done"])
        return None
    errors = error_of(dist.recv, ones(2), 0), error_of(dist.barrier)
    client().set("done", "")
    return errors


@BOTH_WAYS
def test_a_message_of_another_size_is_described(way):
    received, later = run(message_of_another_size, 2)[1]
    assert "recv of 8 bytes of float32 with tag 0 from rank 0 of group" in received[1]
    for _, text, _ in (received, later):
        assert "MPI_Test: Message truncated" in text


def start_with(store, rank, seconds=300, options=None):
    """Make the default group of two ranks with a store of this rank's own."""
    return dist.init_process_group(
        "mpich",
        store=store,
        rank=rank,
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=timedelta(seconds=seconds),
        pg_options=options,
    )


def loses_the_store_when_all_have_come(rank):
    store = PassingStore(client(), lost_at("came/read")) if rank == 1 else client()
    return error_of(start_with, store, rank, seconds=2)


def test_a_rank_that_loses_the_store_in_the_rendezvous_keeps_all_from_starting():
    for kind, text, _ in run(loses_the_store_when_all_have_come, 2, init=False):
        assert kind == "DistStoreError" and 'cannot join group "' in text, text


@pytest.mark.parametrize("junk", [b"junk", b"7", b"-1 somewhere", b"7\xff x"], ids=repr)
def test_a_home_that_no_rank_has_written_is_refused(junk):
    def junk_from_rank_1(name, keys, answer):
        if name != "compare_set" or not keys[0].endswith("came"):
            return answer
        return re.sub(rb"(1 ready \d+ )[^\0]*", lambda line: line[1] + junk, answer)

    def read_it(rank):
        store = PassingStore(client(), junk_from_rank_1) if rank == 0 else client()
        return error_of(start_with, store, rank, seconds=2)

    for kind, text, _ in run(read_it, 2, init=False):
        assert kind == "DistStoreError" and 'cannot join group "' in text
        expected = 'in the key "came", which should be two numbers, and a host'
        assert "rank 0: the store has " in text and expected in text, text


def cannot_connect(rank, path):
    """Rank 0 hosts the store, and ends with its error. Rank 1, which has the reason, is slow."""
    store = store_of_rank_0(rank, path)
    options = mpi_collectives.Options()
    if rank == 1:
        options.interface = "none"
        store = PassingStore(store, slow_at("made/verdict", 0.3))
    return error_of(start_with, store, rank, options=options)


def test_the_store_stays_until_all_know_why_there_is_no_group(tmp_path):
    for kind, text, _ in run(cannot_connect, 3, tmp_path / "port", init=False):
        assert kind == "DistStoreError" and 'no network interface "none"' in text, text
        assert "the store is lost" not in text


def loses_the_store_and_has_a_reason(rank):
    options = mpi_collectives.Options()
    store = client()
    if rank == 1:
        options.interface = "none"
        store = PassingStore(store, lost_at("made/verdict"))
    return error_of(start_with, store, rank, options=options)


def test_a_rank_without_the_store_says_its_own_reason():
    _, text, _ = run(loses_the_store_and_has_a_reason, 2, init=False)[1]
    assert 'no network interface "none"' in text and "the connection is cut" in text


def late(rank, receives):
    """Return what a call of rank 1 does when it has failed on rank 0, long ago or just now."""
    group = dist.new_group(timeout=timedelta(seconds=0.5))
    dist.all_reduce(ones(), group=group)
    if rank == 1:
        if receives:
            dist.irecv(ones(), 0, group=group, tag=1)  # looks for failures while it waits
        client().wait(["rank 0 has failed"])
        first = error_of(dist.barrier, group=group)
        return first, error_of(dist.all_reduce, ones(), group=group)
    error = error_of(dist.barrier, group=group)
    client().set("rank 0 has failed", "")
    return (error,)


@BOTH_WAYS
@pytest.mark.parametrize("receives", [False, True])
def test_a_late_call_does_not_succeed_after_the_others_have_failed(receives, way):
    for errors in run(late, 2, receives):
        for kind, text, _ in errors:
            assert kind == "DistBackendError"
            assert "Timed out after 500 ms: rank 0 has waited in barrier" in text, text


def requests_of_a_watch(rank):
    """Return the requests that a waiting rank makes in a second."""
    counts = []
    start_with(PassingStore(client(), counting(counts)), rank)
    if rank == 3:
        client().wait(["0 has counted", "1 has counted", "2 has counted"])
        dist.barrier()
        return 0
    work = dist.barrier(async_op=True)
    time.sleep(0.5)
    before = len(counts)
    time.sleep(1)
    requests = len(counts) - before
    client().set(f"{rank} has counted", "")
    work.wait()
    return requests


def test_a_watch_asks_the_store_once_in_a_tick():
    # Ten ticks, whatever the number of ranks is.
    assert max(run(requests_of_a_watch, 4, init=False)) <= 15


def libmpi():
    name = next(x.split()[5] for x in Path("/proc/self/maps").open() if "/libmpi.so" in x)
    return ctypes.CDLL(name)


def ends_all_ranks(rank):
    """Let rank 1 do what MPICH does when it has a fatal error: all ranks are to exit."""
    dist.all_reduce(ones(1000))
    world, comm = 0x44000000, ctypes.c_int()
    libmpi().MPI_Comm_dup(world, ctypes.byref(comm))
    dist.all_reduce(ones(1000))
    if rank == 0:
        client().set("has the sum", "")
    if rank == 1:
        client().wait(["has the sum"])  # MPI may still have to send what it needs.
        libmpi().MPI_Abort(comm, 3)
    return error_of(dist.all_reduce, ones(1000))


@BOTH_WAYS
def test_an_exit_of_mpi_does_not_end_the_process(way):
    (kind, text, _), killed = run(ends_all_ranks, 2)
    assert kind == "DistBackendError" and "rank 1 has died" in text
    assert killed.args[0] == 3


def mpi_is_initialized(rank):
    libmpi().MPI_Init(None, None)
    return error_of(start)


def test_another_package_has_initialized_mpi():
    for kind, text, _ in run(mpi_is_initialized, 2, init=False):
        assert kind == "DistStoreError"
        assert "another package has initialized MPI for one process" in text


def test_mpiexec_starts_another_number_of_ranks():
    done = by_mpiexec("alone")
    assert done.returncode != 0
    assert re.search(r"mpiexec says PMI_(SIZE=2|RANK=1), but this rank of torch", done.stderr)


def test_a_start_removes_only_its_own_names():
    """Another one may use a name, in a container whose processes no rank can see."""
    other = Path("/dev/shm/mpich_shm_test_0")
    try:
        other.write_bytes(bytes(4096))
        os.utime(other, (0, 0))
        run(lambda rank: None, 2)
        assert other.exists()
    finally:
        other.unlink(missing_ok=True)

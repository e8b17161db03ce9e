"""How the frame uses the c10d store: requests, connections, the keys that stay, and junk."""

import os
import resource
import threading
import time
from datetime import timedelta

import pytest
import store_collectives  # noqa: F401
import torch
import torch.distributed as dist
from ranks import client, error_of, run_by_server
from store_ranks import run
from stores import PassingStore, counting, junk_at
from torch._C._distributed_c10d import _DistributedBackendOptions


def join(store, rank, size, backend="store", seconds=300.0):
    """Return the backend of a rank, which may be a thread."""
    options = _DistributedBackendOptions()
    options.store, options.group_rank, options.group_size = store, rank, size
    options.timeout, options.group_id = timedelta(seconds=seconds), "threads"
    return dist.Backend._plugins[backend.upper()].creator_fn(options, None)


def requests_of_a_start(size):
    """Return how many requests one second of waiting for the last rank takes, for each rank."""
    inner, counts = dist.HashStore(), [[] for _ in range(size)]
    stores = [PassingStore(inner, counting(count)) for count in counts]
    joined = [threading.Thread(target=join, args=(stores[r], r, size)) for r in range(size - 1)]
    for thread in joined:
        thread.start()
    time.sleep(1)  # what is measured
    requests = [len(count) for count in counts[:-1]]
    join(stores[-1], size - 1, size)
    for thread in joined:
        thread.join(300)
    return requests


def test_a_rank_that_waits_for_others_asks_the_store_seldom():
    first, *others = requests_of_a_start(5)
    # Rank 0 asks for each rank that is missing, the others ask for the verdict alone.
    assert max(others) < 150 and first < 400, (first, others)


def requests_while_waiting(rank, size=4):
    """Return the requests that a waiting collective makes in its second second."""
    counts = []
    backend = join(PassingStore(client(), counting(counts)), rank, size)
    if rank == size - 1:
        client().wait(["counted"])
        backend.allreduce([torch.ones(1)]).wait()
        return None
    work = backend.allreduce([torch.ones(1)])
    time.sleep(1)
    before = len(counts)
    time.sleep(1)
    requests = len(counts) - before
    if client().add("have counted", 1) == size - 1:
        client().set("counted", "")
    work.wait()
    return requests


def test_a_collective_that_waits_asks_the_store_seldom():
    requests = run(requests_while_waiting, 4, init=False)[:-1]
    # 50 looks for the notes, 20 for a failure and for ranks that have left, and a few for
    # the ranks that are missing.
    assert max(requests) < 150, requests


def sockets(process="self"):
    """Return how many connections a process has."""
    folder = f"/proc/{process}/fd"
    names = []
    for name in os.listdir(folder):
        try:
            names.append(os.readlink(f"{folder}/{name}"))
        except OSError:  # closed meanwhile
            pass
    return sum(name.startswith("socket:") for name in names)


def make_groups(rank, count):
    """Return the connections before and after some groups, of this process and of the server."""
    server = os.environ["STORE_SERVER"]
    dist.all_reduce(torch.ones(1))
    before = sockets(), sockets(server)
    groups = [dist.new_group() for _ in range(count)]
    for group in groups:
        dist.all_reduce(torch.ones(1), group=group)
    after = sockets(), sockets(server)
    dist.barrier()
    return before, after


def test_the_groups_of_a_process_share_a_connection():
    for before, after in run(make_groups, 2, 8):
        assert before == after


def start_in_a_full_server(rank):
    """Create a group whose server may not open another file."""
    store = client()
    dist.PrefixStore("all", store).add("here", 1)
    while store.add("all/here", 0) < 2:
        time.sleep(0.001)
    if rank == 0:
        server = int(os.environ["STORE_SERVER"])
        files = len(os.listdir(f"/proc/{server}/fd"))
        resource.prlimit(server, resource.RLIMIT_NOFILE, (files, files))
        store.set("full", "")
    store.wait(["full"])
    options = {"rank": rank, "world_size": 2, "timeout": timedelta(seconds=2)}
    return error_of(dist.init_process_group, "store", store=store, **options)


def test_a_server_without_descriptors_is_an_error_in_time():
    errors = run(start_in_a_full_server, 2, init=False)
    assert all(kind == "DistStoreError" for kind, _, _ in errors), errors
    assert any("the store" in text for _, text, _ in errors), errors


def in_a_fork(rank):
    """Let a fork use the store while its parent does; return what the fork exits with."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            alone = join(client(), 0, 1)
            for _ in range(100):
                alone.allreduce([torch.ones(1)]).wait()
            status = 0
        finally:
            os._exit(status)
    for _ in range(100):
        dist.all_reduce(torch.ones(1))
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_a_fork_does_not_read_the_answers_of_its_parent():
    assert run(in_a_fork, 2) == [0, 0]


def keys_after_groups(start, rank):
    """Return the keys of groups that all ranks have left."""
    start()
    for _ in range(2):
        group = dist.new_group()
        dist.all_reduce(torch.ones(1), group=group)
        dist.destroy_process_group(group)
    dist.destroy_process_group()
    store = client()
    if store.add("ends", 1) < 2:
        store.wait(["all have ended"])
    store.set("all have ended", "")
    # MPI asks for its own addresses only in the first group of a process.
    return [key for key in store.list_keys() if "//cpu//" in key and "/pmi/" not in key]


@pytest.mark.parametrize("backend", ["store", "shm", "mpich"])
def test_no_key_of_a_group_stays(backend):
    import mpi_collectives  # noqa: F401
    import shm_collectives  # noqa: F401
    from ranks import start_by_server

    def start():
        start_by_server(backend, None)

    for keys in run_by_server(start, lambda rank: keys_after_groups(start, rank), 2, init=False):
        assert keys == []


@pytest.mark.parametrize("junk", [b"", b"junk", bytes(range(256))])
def test_a_note_that_no_rank_has_written_is_refused(junk):
    store = PassingStore(dist.HashStore(), junk_at("/1/0", junk))
    backend = join(store, 0, 1)
    kind, text, _ = error_of(lambda: backend.allreduce([torch.ones(1)]).wait())
    assert kind == "DistBackendError"
    assert 'in the key "1/0", which should be the note of an operation' in text, text

"""How the frame uses the c10d store: requests, connections, the keys that stay, and junk."""

import os
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor
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


def requests_of_a_start(size, early):
    """Return the requests of each early rank: in a second of waiting, and in the whole start."""
    inner, counts = dist.HashStore(), [[] for _ in range(size)]
    stores = [PassingStore(inner, counting(count)) for count in counts]
    ranks = [threading.Thread(target=join, args=(stores[r], r, size)) for r in range(size)]
    for rank in ranks[:early]:
        rank.start()
    time.sleep(1)  # what is measured
    waiting = [len(count) for count in counts[:early]]
    for rank in ranks[early:]:
        rank.start()
    for rank in ranks:
        rank.join(300)
    return waiting, [len(count) for count in counts[:early]]


def test_a_rank_that_waits_for_others_asks_the_store_seldom():
    (first, *others), starts = requests_of_a_start(24, 3)
    # Rank 0 makes three requests in a look, however many ranks are missing; the others make one.
    assert first < 250 and max(others) < 120, (first, others)
    assert max(starts) < 500, starts


def collective(backend):
    return [backend.allreduce([torch.ones(1)])]


def messages(backend):
    """Begin what the other ranks end, each with one message to rank 0."""
    if backend.rank():
        return [backend.send([torch.ones(1)], 0, backend.rank() % 4)]
    tags = range(1, backend.size())
    return [backend.recv_anysource([torch.ones(1)], tag % 4) for tag in tags]


@pytest.mark.parametrize("begin", [collective, messages])
def test_a_rank_that_waits_in_a_group_asks_the_store_seldom(begin):
    size, counts = 16, []
    inner = dist.HashStore()
    stores = [PassingStore(inner, counting(counts)), *[inner] * (size - 1)]
    with ThreadPoolExecutor(size) as ranks:
        backends = list(ranks.map(join, stores, range(size), [size] * size))
    works = begin(backends[0])
    time.sleep(1)
    before = len(counts)
    time.sleep(1)
    requests = len(counts) - before
    for backend in backends[1:]:
        works += begin(backend)
    for work in works:
        work.wait()
    # In a second, 32 looks for what it waits for and 20 for the news, whatever the number of
    # ranks and of messages is.
    assert requests < 80, requests


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
        for tag in range(3):
            exchange = dist.recv if rank else dist.send
            exchange(torch.ones(1), 1 - rank, group=group, tag=tag)
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

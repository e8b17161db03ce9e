"""Checks of `simccl` that need one process, which tests/checks.py runs."""

import errno
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import shm_collectives  # noqa: F401
import stream_collectives
import torch
import torch.distributed as dist
from programs import CLONE3
from ranks import refuse

sim = torch.device("sim")


def make(timeout=timedelta(seconds=20), rank=0, size=1, store=None, **options):
    """Return a backend of its own, as the dispatcher of PyTorch makes it."""
    group = dist.distributed_c10d._DistributedBackendOptions()
    group.store, group.group_id = store or dist.HashStore(), "own"
    group.group_rank, group.group_size, group.timeout = rank, size, timeout
    given = stream_collectives.Options()
    for name, value in options.items():
        setattr(given, name, value)
    return dist.Backend._plugins["SIMCCL"].creator_fn(group, given)


def make_two(timeout, **options):
    """Return the backends of both ranks of a group."""
    store = dist.HashStore()
    with ThreadPoolExecutor(2) as ranks:
        return list(ranks.map(lambda rank: make(timeout, rank, 2, store, **options), range(2)))


def check_a_group_does_not_coalesce_for_an_earlier_one():
    """A thread begins to coalesce in groups that others destroy; new ones get their addresses."""
    with ThreadPoolExecutor(1) as other:
        for _ in range(20):
            group = [make()]
            group[0]._start_coalescing()
            other.submit(group.clear).result()
            assert make().allreduce([torch.ones(1, device=sim)]) is not None


def check_timeouts_that_clocks_cannot_count():
    for library in ("gloo", "shm"):
        for days in (109_500, 100_000_000):  # as many as PyTorch itself can pass
            timeout = timedelta(days=days)
            groups = make_two(timeout, library=library)
            for change in (False, True):
                works = []
                for group in groups:
                    if change:
                        group.set_timeout(timeout)
                    works.append(group.allreduce([torch.ones(1, device=sim)]))
                    time.sleep(0.2)  # the watchdog looks while the first one waits
                for work in works:
                    work.wait(timeout)


def check_a_timeout_that_is_changed_later():
    for library in ("gloo", "shm"):
        for message in (False, True):
            group, _ = make_two(timedelta(seconds=60), library=library)
            group.set_timeout(timedelta(milliseconds=300))
            number = [torch.ones(1, device=sim)]
            work = group.recv(number, 1, 0) if message else group.allreduce(number)
            with pytest.raises(dist.DistBackendError, match="not ended within 300 ms"):
                work.wait(timedelta(seconds=20))


def check_threads_change_the_timeout_while_another_splits():
    """The thread sanitizer, with which these checks run, too, reports what two threads write."""
    group, done = make(), threading.Event()

    def change(seconds):
        while not done.is_set():
            group.set_timeout(timedelta(seconds=seconds))

    with ThreadPoolExecutor(2) as threads:
        changes = [threads.submit(change, seconds) for seconds in (20, 30)]
        try:
            for number in range(10):
                store = dist.PrefixStore(str(number), dist.HashStore())
                own = group.split(store, [0], group.options)
                assert own.options._timeout in (timedelta(seconds=20), timedelta(seconds=30))
        finally:
            done.set()
        for one in changes:
            one.result()


def check_a_library_without_tags():
    """Messages are in the order of the calls, in the stream of the collectives, as with NCCL."""
    ones = [torch.ones(1, device=sim)]
    group = make_two(timedelta(seconds=20), tags=False)[0]
    for name in ("send", "recv"):
        with pytest.raises(ValueError, match=f"simccl: {name}: the library has no tags"):
            getattr(group, name)(ones, 1, 1)
    with pytest.raises(ValueError, match="cannot receive from any rank"):
        group.recv_anysource(ones, 0)
    groups = make_two(timedelta(seconds=20), tags=False)
    numbers = [torch.full((2,), 1.0 + i, device=sim) for i in range(2)]
    got, sums = torch.zeros(2, 2, device=sim), [torch.ones(1, device=sim) for _ in groups]
    torch.sim.start_trace()
    works = [groups[0].send([numbers[0]], 1, 0), groups[1].recv([got[0]], 0, 0)]
    works += [group.allreduce([sums[i]]) for i, group in enumerate(groups)]
    works += [groups[1].send([numbers[1]], 0, 0), groups[0].recv([got[1]], 1, 0)]
    for work in works:
        work.wait()
    torch.accelerator.synchronize()
    names = {"send", "recv", "all_reduce"}
    streams = {stream for _, name, _, stream in torch.sim.stop_trace() if name in names}
    assert len(streams) == 2, "one for each of the groups"
    assert got.tolist() == [[1, 1], [2, 2]] and [x.item() for x in sums] == [2, 2]


def check_messages_to_itself():
    group = make()
    numbers, got = [torch.full((2,), 1.0 + i, device=sim) for i in range(3)], torch.zeros(3, 2)
    got = list(got.to(sim))
    group._start_coalescing()
    group.recv([got[0]], 0, 1)
    for i, tag in enumerate((1, 2, 2)):
        group.send([numbers[i]], 0, tag)
    for i in (1, 2):
        group.recv([got[i]], 0, 2)
    group._end_coalescing().wait()
    assert torch.stack(got).tolist() == [[1, 1], [2, 2], [3, 3]]
    for call in (group.send, group.recv):
        with pytest.raises(ValueError, match="simccl: (send|recv): a message .* to itself needs"):
            call([numbers[0]], 0, 0)
    group._start_coalescing()
    group.send([numbers[0]], 0, 0)
    group.recv([got[0][:1]], 0, 0)
    with pytest.raises(ValueError, match="8 bytes do not fit the receive of 4"):
        group._end_coalescing()
    group.allreduce([numbers[0]]).wait()


def check_a_fork_lets_go_of_a_group():
    """The watchdog's thread, which waits all the time, is not in the fork."""
    group = [make()]
    group[0].allreduce([torch.ones(1, device=sim)]).wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        group.clear()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    group[0].allreduce([torch.ones(1, device=sim)]).wait()


def check_ranks_that_do_not_come_are_named():
    for library in ("gloo", "shm"):
        text = (
            'Backend simccl: rank 1 of 3 cannot join group "own": rank 0 did not come within 300 ms'
        )
        with pytest.raises(dist.DistStoreError, match=text):
            make(timedelta(milliseconds=300), 1, 3, library=library)


def check_a_rank_that_does_not_connect_is_named():
    gloo, end = dist.ProcessGroupGloo, threading.Event()

    def late_on_rank_1(store, rank, *rest):
        if rank == 1:
            end.wait(60)
        return gloo(store, rank, *rest)

    dist.ProcessGroupGloo = late_on_rank_1
    store, text = (
        dist.HashStore(),
        r"rank 1 did not come within 1000 ms; rank 0: its library gloo: ",
    )
    try:
        with ThreadPoolExecutor(2) as ranks:
            both = [ranks.submit(make, timedelta(seconds=1), rank, 2, store) for rank in range(2)]
            with pytest.raises(dist.DistStoreError, match=text):
                both[0].result()
            end.set()
            with pytest.raises(dist.DistStoreError, match=text):
                both[1].result()
    finally:
        dist.ProcessGroupGloo = gloo


def check_no_rank_begins_if_one_has_no_watchdog():
    gloo = dist.ProcessGroupGloo

    def without_threads_on_rank_1(store, rank, *rest):
        cpu = gloo(store, rank, *rest)
        if rank == 1:
            refuse(CLONE3, errno.EAGAIN)
        return cpu

    def error_of(rank):
        with pytest.raises(dist.DistStoreError) as error:
            make(timedelta(seconds=20), rank, 2, store)
        return str(error.value)

    dist.ProcessGroupGloo, store = without_threads_on_rank_1, dist.HashStore()
    try:
        with ThreadPoolExecutor(2) as ranks:
            for text in ranks.map(error_of, range(2)):
                assert "rank 1: cannot start a thread: Resource temporarily unavailable (" in text
    finally:
        dist.ProcessGroupGloo = gloo

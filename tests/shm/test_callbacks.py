"""Callbacks of the program: they may take long, wait for anything and hold nothing up."""

import random
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import in_ranks


def ones():
    return torch.ones(1)


def call_back(rank, count, callback):
    """Return the futures of the callbacks of all_reduces: ``callback(0)``, ``callback(1)``, ..."""
    if rank == 1:
        time.sleep(0.1)  # Then no work of rank 0 has ended when it asks for the future.
    works = [dist.all_reduce(ones(), async_op=True) for _ in range(count)]
    futures = [work.get_future() for work in works]
    return [future.then(lambda _, x=number: callback(x)) for number, future in enumerate(futures)]


@in_ranks(3)
def test_callbacks_of_all_ranks_call_the_group_in_the_same_order(rank):
    """Let the callbacks of several works use the group."""
    random.seed(rank)

    def callback(number):
        time.sleep(random.random() / 50)
        tensor = dist.all_reduce(number * ones(), async_op=True).get_future().wait()[0]
        time.sleep(random.random() / 50)
        dist.all_reduce(tensor)
        return float(tensor)

    results = [future.wait() for future in call_back(rank, 10, callback)]
    assert results == [9 * number for number in range(10)]


@in_ranks(2)
def test_what_a_callback_starts_calls_back_in_order_if_it_does_not_wait(rank):
    """Let callbacks start works and not wait; note the calls of the callbacks of these."""
    calls, second_stage = [], []

    def second(number):
        calls.append(("begins", number))
        time.sleep(0.2 * (1 - rank))  # Longer than the time until the next one ends.
        calls.append(("ends", number))

    def first(number):
        time.sleep(0.1 * rank)  # On rank 0, this has ended when what it starts ends.
        future = dist.all_reduce(ones(), async_op=True).get_future()
        second_stage.append(future.then(lambda _: second(number)))

    for stage in (call_back(rank, 5, first), second_stage):
        torch.futures.wait_all(stage)
    in_order = [(what, number) for number in range(5) for what in ("begins", "ends")]
    assert rank == 1 or calls == in_order


@in_ranks(2)
def test_other_works_go_on_beside_a_long_callback(rank):
    release = threading.Event()
    if rank == 1:
        time.sleep(0.1)
    long = dist.all_reduce(ones(), async_op=True).get_future()
    long = long.then(lambda _: release.wait(600) if rank == 0 else None)
    dist.barrier()
    for _ in range(100):
        dist.all_reduce(ones(), async_op=True).wait()
    assert rank == 1 or not long.done()
    release.set()
    long.wait()


@pytest.mark.parametrize("synchronous", [False, True], ids=["wait", "synchronous call"])
@in_ranks(2)
def test_a_thread_that_waits_runs_no_callbacks(rank, synchronous):
    """Wait while holding a lock that the callback of an earlier work takes."""
    lock, called = threading.Lock(), []

    def callback(_):
        with lock:
            called.append(threading.current_thread() is threading.main_thread())

    if rank == 1:
        time.sleep(0.1)
    first = dist.all_reduce(ones(), async_op=True)
    done = first.get_future().then(callback)
    with lock:
        if synchronous:
            dist.all_reduce(ones())
        else:
            dist.all_reduce(ones(), async_op=True).wait()
    done.wait()
    # Rank 1's first work has ended before it asks for a future.
    assert rank == 1 or called == [False]


@in_ranks(2)
def test_a_wait_whose_time_is_over_does_not_return(rank):
    """Wait until the time is over although only the future is late."""
    if rank == 1:
        time.sleep(0.05)
    works = [dist.all_reduce(ones(), async_op=True) for _ in range(2)]
    futures = [work.get_future() for work in works]
    if rank == 1:
        return
    go_on = threading.Event()
    done = futures[0].then(lambda _: go_on.wait(600))
    with pytest.raises(dist.DistBackendError, match="has not ended within the 150 ms"):
        works[1].wait(timedelta(seconds=0.15))
    go_on.set()
    works[1].wait()
    assert futures[1].done()
    done.wait()


@in_ranks(2)
def test_a_wait_keeps_its_timeout_beside_a_long_callback(rank):
    """Rank 1 begins the second collective when rank 0 has waited for it in vain."""
    store, go_on = dist.distributed_c10d._get_default_store(), threading.Event()
    if rank == 1:
        store.wait(["has asked for the callback"])
        first = dist.all_reduce(ones(), async_op=True)
        store.wait(["has waited in vain"])
        dist.all_reduce(ones())
        first.wait()
        return
    first = dist.all_reduce(ones(), async_op=True)
    done = first.get_future().then(lambda _: go_on.wait(600))
    store.set("has asked for the callback", "")
    second = dist.all_reduce(ones(), async_op=True)
    with pytest.raises(dist.DistBackendError, match="has not ended within the 400 ms"):
        second.wait(timedelta(seconds=0.4))
    store.set("has waited in vain", "")
    second.wait()
    go_on.set()
    done.wait()


@pytest.mark.parametrize("how", ["abort", "shutdown"])
@in_ranks(2)
def test_callbacks_close_their_groups_and_others(rank, how):
    """Let a callback of each of two groups close both groups."""
    groups = [dist.new_group(backend="shm") for _ in range(2)]
    both = threading.Barrier(2)

    def callback(_):
        both.wait(10)
        for group in groups:
            getattr(group._get_backend(torch.device("cpu")), how)()

    if rank == 1:
        time.sleep(0.1)
    works = [dist.all_reduce(ones(), group=group, async_op=True) for group in groups]
    if rank == 0:
        torch.futures.wait_all([work.get_future().then(callback) for work in works])
    dist.barrier()


@in_ranks(2)
def test_all_callbacks_run_although_one_blocks(rank):
    """Register two of them when their work has ended."""
    ran, hold = set(), threading.Event()

    def callback(_):
        if rank == 0:  # On rank 1, the work has ended, and the callback is called at once.
            hold.wait(5)
        ran.add(0)

    if rank == 1:
        time.sleep(0.1)
    works = [dist.all_reduce(ones(), async_op=True) for _ in range(3)]
    done = [works[0].get_future().then(callback)]
    dist.all_reduce(ones())  # All works have ended then.
    for number in (1, 2):
        future = works[number].get_future()
        done.append(future.then(lambda _, number=number: ran.add(number)))
    time.sleep(0.05)
    hold.set()
    torch.futures.wait_all(done)
    assert ran == {0, 1, 2}

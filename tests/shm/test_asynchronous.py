"""Works: completion, order, futures, callbacks, threads, and works that outlive their group."""

import os
import random
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import in_ranks, memory_limit, run
from shm_collectives import Options


def wakes(rank, message):
    """Return how long this rank is late, and how long everything takes."""
    start, late, tensor = time.monotonic(), 0, torch.ones(1)
    for number in range(40):
        if number % 2 == rank:
            before = time.monotonic()
            time.sleep(0.01)
            late += time.monotonic() - before
        if not message:
            dist.barrier()
        elif number % 2 == rank:
            dist.send(tensor, 1 - rank)
        else:
            dist.recv(tensor, 1 - rank)
    return late, time.monotonic() - start


@pytest.mark.parametrize("message", [False, True], ids=["step", "message"])
def test_a_post_wakes_a_rank_that_sleeps(message):
    options = Options()
    options.yield_for = timedelta(0)
    for _ in range(4):  # A busy machine may be late, too.
        late, took = zip(*run(wakes, 2, message, options=options), strict=True)
        if (slept := max(took) - sum(late)) < 0.8:
            return
    assert slept < 0.8  # 40 times 0.04 s, if no rank is woken


@in_ranks(2)
def test_a_future_is_complete_when_wait_returns(rank):
    """Let a thread end two receives at once, and call back for the first one for a while."""
    if rank == 1:
        time.sleep(0.1)
        dist.send(torch.ones(1), 0, tag=0)
        time.sleep(0.1)
        for work in [dist.isend(torch.ones(1), 0, tag=tag) for tag in (1, 2)]:
            work.wait()
        return
    works = [dist.irecv(torch.empty(1), 1, tag=tag) for tag in range(3)]
    futures = [work.get_future() for work in works]
    futures[0] = futures[0].then(lambda _: time.sleep(0.3))  # Meanwhile the others come in.
    futures[1] = futures[1].then(lambda _: time.sleep(0.5))
    time.sleep(0.6)
    assert not futures[1].done()
    works[2].wait()
    assert futures[2].done() and works[2].is_completed()
    torch.futures.wait_all(futures)


@in_ranks(2)
def test_a_callback_starts_something_while_another_thread_waits(rank):
    """Rank 0 waits for a message while a callback starts to wait for another one."""
    tensor = torch.ones(1)
    if rank:
        time.sleep(0.05)
        dist.all_reduce(torch.ones(1))
        for tag in (1, 2):
            time.sleep(0.2)
            dist.send(tensor, 0, tag=tag)
        return
    future = dist.all_reduce(torch.ones(1), async_op=True).get_future()
    own = future.then(lambda _: dist.irecv(tensor, 1, tag=2).get_future().wait())
    while not future.done():
        time.sleep(0.001)
    dist.recv(torch.ones(1), 1, tag=1)
    own.wait()


@in_ranks(2)
def test_callbacks_of_two_groups_use_each_other(rank):
    """The threads of two groups are in callbacks, each of which uses the other group."""
    groups = [dist.new_group() for _ in range(2)]
    if rank:
        time.sleep(0.1)
    both = threading.Barrier(2)

    def chain(own, other):
        def callback(_):
            if rank == 0:
                both.wait(10)
            else:
                time.sleep(0.1)
            return dist.all_reduce(torch.ones(1), group=other, async_op=True).get_future().wait()

        return dist.all_reduce(torch.ones(1), group=own, async_op=True).get_future(), callback

    chains = [chain(*groups), chain(*reversed(groups))]
    futures = [future.then(callback) for future, callback in chains]
    assert [float(future.wait()[0]) for future in futures] == [2, 2]


@in_ranks(2)
def test_a_group_is_aborted_while_a_callback_waits(rank):
    if rank:
        time.sleep(0.05)
        dist.all_reduce(torch.ones(1))
        time.sleep(0.5)  # Rank 0 must not see that this rank leaves.
        return
    started = threading.Event()

    def callback(_):
        future = dist.all_reduce(torch.ones(1), async_op=True).get_future()
        started.set()
        return future.wait()

    future = dist.all_reduce(torch.ones(1), async_op=True).get_future().then(callback)
    assert started.wait(10)
    dist.group.WORLD._get_backend(torch.device("cpu")).abort()
    with pytest.raises(RuntimeError, match="aborted"):
        future.wait()


@in_ranks(2)
def test_works_keep_their_inputs(rank):
    """Drop the input of a gather, which other tensors would then overwrite."""
    for _ in range(20):
        outputs = [torch.empty(50_000)[::2] for _ in range(2)]
        work = dist.all_gather(outputs, torch.ones(25_000), async_op=True)
        torch.zeros(25_000)  # in the memory of the input, if that was freed
        work.wait()
        assert all((output == 1).all() for output in outputs)


@in_ranks(2)
def test_what_a_work_says(rank):
    tensor, others = torch.ones(3), [torch.empty(3), torch.empty(3)]
    reduced = dist.all_reduce(tensor, async_op=True)
    gathered = dist.all_gather(others, tensor, async_op=True)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    together = backend.allreduce_coalesced([torch.zeros(1), torch.ones(2)])
    to_root = dist.reduce(torch.ones(1), 0, async_op=True)
    for work, outputs in ((reduced, 1), (gathered, 2), (together, 2), (to_root, 1)):
        work.wait()
        assert work.is_success() and work.exception() is None
        assert len(work.result()) == len(work.get_future().value()) == outputs
    assert [int(x[0]) for x in together.result()] == [0, 2]
    with pytest.raises(Exception, match="sourceRank"):
        reduced._source_rank()
    if rank == 0:
        dist.send(tensor, 1)
        time.sleep(0.3)
        return
    message = dist.irecv(torch.empty(3))
    message.wait()
    assert message._source_rank() == 0
    failed = dist.all_reduce(tensor, async_op=True)  # Rank 0 leaves.
    with pytest.raises(dist.DistBackendError):
        failed.wait()
    assert failed.is_completed() and not failed.is_success() and failed.exception()


@in_ranks(2)
def test_the_future_of_several_calls_waits_for_the_last_one(rank):
    tensor = torch.ones(1)
    if rank == 0:
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        backend.allreduce_coalesced([torch.zeros(1), tensor]).get_future().wait()
        assert float(tensor) == 2
        return
    dist.all_reduce(torch.zeros(1))
    time.sleep(0.2)
    dist.all_reduce(tensor)


@in_ranks(2)
def test_a_work_may_outlive_its_group(rank):
    tensor = torch.ones(100_000)
    work = dist.all_reduce(tensor, async_op=True)
    dist.destroy_process_group()  # waits for what has been called
    assert work.is_completed()
    work.wait()
    assert float(tensor[0]) == 2
    assert work.get_future().value()[0].sum() == 200_000


@in_ranks(2)
def test_the_finalizer_of_a_tensor_may_destroy_its_group(rank):
    """The thread of a group drops the last tensor, whose finalizer destroys the group."""
    destroyed, tensor = threading.Event(), torch.ones(100_000)
    weakref.finalize(tensor, lambda: (dist.destroy_process_group(), destroyed.set()))
    if rank == 1:
        time.sleep(0.1)
    dist.all_reduce(tensor, async_op=True)
    del tensor
    assert destroyed.wait(10)


@in_ranks(2)
def test_threads_may_make_the_same_calls_in_any_order(rank):
    def call():
        for _ in range(1000):
            dist.barrier()

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(call) for _ in range(8)]:
            future.result()


@in_ranks(2)
def test_several_threads_wait_in_one_group(rank):
    for _ in range(10):
        tensors = [torch.ones(50_000) for _ in range(10)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        waits = [
            threading.Thread(target=lambda order=order: [work.wait() for work in order])
            for order in (works, works[::-1], works[::2])
        ]
        for thread in waits:
            thread.start()
        for thread in waits:
            thread.join()
        assert all((tensor == 2).all() for tensor in tensors)


@in_ranks(2)
def test_a_call_returns_at_its_end_although_another_thread_coalesces(rank):
    world, device = dist.group.WORLD, torch.device("cpu")
    tensor = torch.ones(1)
    with ThreadPoolExecutor(1) as other:
        other.submit(world._start_coalescing, device).result()
        if rank == 1:
            time.sleep(0.1)
        dist.all_reduce(tensor)
        assert float(tensor) == 2
        other.submit(world._end_coalescing, device).result()


@in_ranks(2)
def test_a_new_group_does_not_coalesce_what_an_earlier_one_did(rank):
    """Let a thread begin to coalesce in groups that end; each is where the one before was."""
    device = torch.device("cpu")
    with ThreadPoolExecutor(1) as other:
        for _ in range(5):
            group = dist.new_group(backend="shm")
            other.submit(group._start_coalescing, device).result()
            dist.destroy_process_group(group)
            del group


@pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="it needs memory, too")
@in_ranks(2)
def test_works_end_although_there_is_no_thread_to_be_had(rank):
    """All works call back although there is no memory for the stack of a thread."""
    if rank == 1:
        for pause in (0.5, 0, 0.5):
            time.sleep(pause)
            dist.all_reduce(torch.ones(1))
        return
    called, ready = [], threading.Event()
    with memory_limit(2**21):
        with pytest.raises(RuntimeError, match="start new thread"):
            while True:  # The first ones may get stacks that earlier threads have left.
                threading.Thread(target=ready.wait).start()
        works = [dist.all_reduce(torch.ones(1), async_op=True) for _ in range(3)]
        for number, work in enumerate(works):
            work.get_future().then(lambda _, number=number: called.append(number))
        works[1].wait()
        assert called == [0, 1]
        dist.destroy_process_group()
    ready.set()
    assert called == [0, 1, 2]


@pytest.mark.filterwarnings("ignore")
@in_ranks(2)
def test_the_profiler_does_not_hold_up_who_asks_for_a_future(rank):
    """Ask for futures while a thread ends works with hooks that are Python's."""
    random.seed(rank)

    def same(tensor):
        return tensor

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        for _ in range(300):
            with torch.autograd.graph.saved_tensors_hooks(same, same):
                work = dist.all_reduce(torch.ones(1), async_op=True)
            ask_at = time.monotonic() + random.random() / 1000
            while time.monotonic() < ask_at:
                pass  # with the interpreter's lock
            work.get_future().wait()

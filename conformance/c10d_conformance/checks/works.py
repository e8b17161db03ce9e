"""Works and futures: completion, results, callbacks, threads, and what calls leave behind."""

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from c10d_conformance.inputs import compare, reduction, values
from c10d_conformance.operations import OPERATIONS, Call, for_all_ranks, in_threads, wait_all
from c10d_conformance.rank import Rank, require, require_equal
from c10d_conformance.registry import check

WORK = "torch/csrc/distributed/c10d/Work.hpp"


@check(
    "async",
    "A work is not complete while a rank that it needs has not called.",
    f"{WORK} (isCompleted)",
    quick=True,
    cases=lambda rank: [
        (f"{operation}, the last rank late", operation)
        for operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
    ],
)
def no_completion_before_arrival(rank: Rank, operation: str) -> None:
    rank.operation = operation
    late = rank.rank == rank.size - 1
    call = None if operation == "barrier" else OPERATIONS[operation](for_all_ranks(rank, operation))
    if late:
        # The ranks that came have time to look. A backend whose calls wait is right, too.
        time.sleep(0.2)
    began = time.monotonic()  # all processes of a host have one clock
    work = dist.barrier(async_op=True) if call is None else call.run(True)
    early = not late and work.is_completed()
    looked = time.monotonic()
    work.wait()
    if call:
        call.check()
    last = float(rank.share(str(began))[-1])
    require(not early or looked > last, "is_completed() was True although a rank had not called")


@check(
    "async",
    "After wait() has returned, is_completed() is True and wait() returns again.",
    f"{WORK} (wait, isCompleted)",
    minimum=1,
    quick=True,
    cases=lambda rank: [
        (f"{operation}, is_completed after wait", operation)
        for operation in [*OPERATIONS, "barrier"]
    ],
)
def completed_after_wait(rank: Rank, operation: str) -> None:
    rank.operation = operation
    if operation == "barrier":
        call = Call(lambda async_op: dist.barrier(async_op=async_op), [])
    else:
        call = OPERATIONS[operation](for_all_ranks(rank, operation, shape=(500,)))
    work = call.run(True)
    first, second = work.wait(), work.wait(timedelta(seconds=20))
    call.check()
    rank.synchronize()  # before that, a wait() of an accelerator promises nothing to the host
    require(first is not False and second is not False, f"wait() returned {first}, then {second}")
    require(work.is_completed(), "is_completed() is False after wait() has returned")


@check(
    "async",
    "Many operations follow each other, or are in flight at once and waited for in any order.",
    "torch.distributed (asynchronous operations)",
    cases=True,
)
def many_in_flight(rank: Rank) -> None:
    for order in ("first", "last"):
        rank.case(f"70 all_reduce, {order} waited first", _many, rank, order)
    rank.case("all operations in flight", _all_in_flight, rank)
    rank.case("300 all_reduce, one after another", _one_after_another, rank)
    for operation in ("broadcast", "reduce"):
        rank.case(f"20 {operation} of one tensor, ranks late", _ahead, rank, operation)


def _many(rank: Rank, order: str) -> None:
    contents = [
        [values(r, (1 + 997 * (n % 9),), torch.float32, n) for r in range(rank.size)]
        for n in range(70)
    ]
    tensors = [content[rank.rank].to(rank.device, copy=True) for content in contents]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    wait_all(works if order == "first" else reversed(works))
    for number, (tensor, content) in enumerate(zip(tensors, contents, strict=True)):
        compare(tensor, reduction(content, ReduceOp.SUM), f"tensor {number}")


def _one_after_another(rank: Rank) -> None:
    """More than the values of a byte, in case the backend counts its operations."""
    for number in range(300):
        tensor = rank.full(3, 1.0)
        dist.all_reduce(tensor)
        compare(tensor, torch.full((3,), float(rank.size)), f"all_reduce {number}")


def _all_in_flight(rank: Rank) -> None:
    calls = [
        OPERATIONS[operation](for_all_ranks(rank, operation, shape=(2000,), seed=seed))
        for seed in range(2)
        for operation in ("broadcast", "all_reduce", "all_gather", "reduce")
    ]
    works = [call.run(True) for call in calls]
    wait_all(works)
    for call in calls:
        call.check()


def _ahead(rank: Rank, operation: str) -> None:
    """A rank that waits for nobody runs ahead and writes to its tensor again."""
    sends = (rank.rank == 0) == (operation == "broadcast")
    call = dist.broadcast if operation == "broadcast" else dist.reduce
    if not sends:
        time.sleep(0.1)
    tensor, got = rank.full(5000, 0.0), []
    for number in range(20):
        tensor.fill_(number if sends else 0)
        call(tensor, 0)
        got.append(tensor.clone())
    factor = 1 if operation == "broadcast" else rank.size - 1
    for number, tensor in enumerate(got if not sends else []):
        compare(tensor, torch.full((5000,), float(number * factor)), f"{operation} {number}")


@check(
    "async",
    "get_future() of all_reduce has the list of its tensors as its value.",
    f"{WORK} (getFuture; DDP takes its gradients from it)",
    minimum=1,
    quick=True,
    cases=lambda rank: [
        (f"all_reduce shape {count}, value of the future", count) for count in (0, 1, 50_000)
    ],
)
def value_of_the_future(rank: Rank, count: int) -> None:
    content = [values(r, (count,), torch.float32) for r in range(rank.size)]
    tensor = content[rank.rank].to(rank.device, copy=True)
    work = dist.all_reduce(tensor, async_op=True)
    future = work.get_future()
    future.wait()
    require(future.done(), "done() is False after wait() has returned")
    value = future.value()
    if not isinstance(value, (list, tuple)) or len(value) != 1:
        require_equal(value, [tensor], "the value of the future")
    compare(
        value[0],
        reduction(content, ReduceOp.SUM),
        "the value of the future, as soon as it was complete",
    )
    compare(tensor, reduction(content, ReduceOp.SUM), "the tensor")
    work.wait()
    later, deadline = work.get_future(), time.monotonic() + 1
    while not later.done():
        require(
            time.monotonic() < deadline, "another future, taken after wait(), is not done in 1 s"
        )
        time.sleep(0.0005)


@check(
    "async",
    "A callback of a future runs once, after the data is there.",
    "torch.futures.Future.then",
    minimum=1,
    cases=lambda rank: [
        (f"then() on all_reduce shape {count}{', a rank late' if late else ''}", count, late)
        for count in (1, 300_000)
        for late in (False, True)
    ],
)
def callbacks(rank: Rank, count: int, late: bool) -> None:
    if late and rank.rank == 0:
        time.sleep(0.1)
    seen = []

    def callback(future):
        seen.append((float(future.value()[0][0]), float(future.value()[0][-1])))
        return 7

    tensor = rank.full(count, 1.0)
    result = dist.all_reduce(tensor, async_op=True).get_future().then(callback).wait()
    require_equal(result, 7, "the result of the callback")
    require_equal(seen, [(float(rank.size),) * 2], "what the callback saw, call for call")


@check(
    "async",
    "A work goes on to its end although nobody keeps it or waits for it.",
    "torch.distributed (asynchronous operations)",
)
def dropped_works(rank: Rank) -> None:
    tensor = rank.full(10_000, 1.0)
    for _ in range(20):
        dist.all_reduce(rank.full(10_000, 5.0), async_op=True)
        torch.full((10_000,), 3.0)  # takes memory that was given back too early
    dist.all_reduce(tensor, async_op=True).wait()
    compare(tensor, torch.full((10_000,), float(rank.size)))
    dist.barrier()


_WAITS = {
    "all_reduce": lambda tensor: dist.all_reduce(tensor),
    "work.wait": lambda tensor: dist.all_reduce(tensor, async_op=True).wait(),
    "future.wait": lambda tensor: dist.all_reduce(tensor, async_op=True).get_future().wait(),
    "barrier": lambda tensor: dist.barrier(),
}


@check(
    "async",
    "Waiting for another rank releases the GIL, so that other threads run.",
    "torch/csrc/distributed/c10d/init.cpp (call_guard<gil_scoped_release>)",
    cases=lambda rank: [(f"{name}, the last rank late", call) for name, call in _WAITS.items()],
)
def waiting_releases_the_gil(rank: Rank, call: Callable[..., Any]) -> None:
    if rank.rank == rank.size - 1:
        time.sleep(0.7)
        call(rank.full(3, 1.0))
        return
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    call(rank.full(3, 1.0))
    end = time.monotonic()
    stop.set()
    thread.join()
    gaps = [b - a for a, b in zip([start, *ticks], [*ticks, end], strict=False)]
    if end - start > 0.5:
        longest = max(gaps)
        require(longest < 0.45, f"no other thread ran for {longest:.2f} s while the rank waited")


@check(
    "async",
    "Works can be waited for by another thread than the one that called.",
    "torch.distributed (asynchronous operations)",
)
def wait_in_another_thread(rank: Rank) -> None:
    content = [values(r, (30_000,), torch.float32) for r in range(rank.size)]
    tensor = content[rank.rank].to(rank.device, copy=True)
    work = dist.all_reduce(tensor, async_op=True)
    in_threads(rank, work.wait)
    compare(tensor, reduction(content, ReduceOp.SUM))


@check(
    "async",
    "A group can be used from another thread than the one that made it.",
    "torch.distributed",
)
def call_in_another_thread(rank: Rank) -> None:
    def run():
        for operation in ("broadcast", "all_reduce", "all_gather"):
            call = OPERATIONS[operation](for_all_ranks(rank, operation))
            call.run(False)
            call.check()

    in_threads(rank, run)


def _all_gather(rank: Rank) -> None:
    mine = rank.full(16_384, 1.0)
    dist.all_gather([rank.full(16_384, 1.0) for _ in range(rank.size)], mine)


def _there_and_back(rank: Rank) -> None:
    """Rank 0 waits for an answer: data that it sends ahead may take memory."""
    dist.broadcast(rank.full(16_384, 1.0), 0)
    call = dist.send if rank.rank else dist.recv
    call(rank.full(16_384, 1.0), 1 - rank.rank)


def _all_reduce(rank: Rank, async_op: bool = False) -> None:
    work = dist.all_reduce(rank.full(16_384, 1.0), async_op=async_op)
    if work is not None:
        work.wait()


_CALLS = {
    "all_reduce": _all_reduce,
    "all_reduce async": lambda rank: _all_reduce(rank, True),
    "all_gather": _all_gather,
    "broadcast, send and recv": _there_and_back,
}
_ALLOWED = 8 << 20  # bytes; 400 calls of 64 KiB are 25 MiB


@check(
    "resources",
    "Calls do not use more and more memory, threads or descriptors.",
    "torch.distributed",
    quick=True,
    ranks=(2,),
    cases=lambda rank: [(f"memory of 400 calls of {name}", call) for name, call in _CALLS.items()],
)
def memory_stays(rank: Rank, call: Callable[..., Any]) -> None:
    for _ in range(50):
        call(rank)
    rank.synchronize()
    before, counts = _resident(), _counts()
    for number in range(400):
        call(rank)
        if number % 10 == 9:
            rank.synchronize()  # calls that the device has not begun hold memory
    grown = _resident() - before
    _compare_counts(counts, "400 calls")
    require(grown < _ALLOWED, f"the process has grown by {grown >> 20} MiB in 400 calls of 64 KiB")


def _resident() -> int:
    """Return the bytes of this process that are in memory; 0 where the system does not tell.

    Without those that are free between others: how many depends on when its threads run.
    """
    with contextlib.suppress(AttributeError):  # only the C library of GNU has this function
        ctypes.CDLL(None).malloc_trim(0)
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@check(
    "resources",
    "Groups that are destroyed give back their memory, threads and descriptors.",
    "torch.distributed.destroy_process_group",
)
def destroyed_groups_leave_nothing(rank: Rank) -> None:
    def make():
        group = rank.new_group()
        dist.all_reduce(rank.full(10, 1.0), group=group)
        rank.meet()
        dist.destroy_process_group(group)
        rank.meet()

    for _ in range(3):
        make()
    before, counts = _resident(), _counts()
    for _ in range(8):
        make()
    _compare_counts(counts, "8 groups made and destroyed")
    grown = _resident() - before
    require(grown < _ALLOWED, f"8 groups made and destroyed: {grown >> 20} MiB of memory stay")


def _counts() -> dict[str, int]:
    return {"threads": _count("task"), "descriptors": _count("fd")}


def _compare_counts(before: dict[str, int], text: str) -> None:
    deadline = time.monotonic() + 5  # idle threads, as of streams, may take a while to end
    while (after := _counts()) and any(after[what] >= before[what] + 8 for what in after):
        what = max(after, key=lambda what: after[what] - before[what])
        require(time.monotonic() < deadline, f"{text}: from {before[what]} {what} to {after[what]}")
        time.sleep(0.05)


def _count(what: str) -> int:
    try:
        return len(os.listdir(f"/proc/self/{what}"))
    except OSError:
        return 0

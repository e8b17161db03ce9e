"""Streams: what the host calls comes in the promised order on an accelerator.

A check holds a stream with a `Gate`, lets everything run that does not wait for that stream, and
opens the gate then. What should have waited, and did not, has read or written the memory by then,
so the values decide, and not the time.
"""

import contextlib
import ctypes
import dataclasses
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from c10d_conformance.gate import Gate
from c10d_conformance.inputs import compare
from c10d_conformance.operations import (
    OPERATIONS,
    Call,
    Expectation,
    Setting,
    for_all_ranks,
    total,
    wait_all,
)
from c10d_conformance.rank import Rank, Wrong, error_of, require, require_equal
from c10d_conformance.registry import ACCELERATOR, STREAMS, check
from c10d_conformance.verdicts import is_clear

NCCL = "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp"
WORK = "torch/csrc/distributed/c10d/Work.hpp"
FUTURE = "ATen/core/ivalue_inl.h"
GUARD = "c10/core/impl/DeviceGuardImplInterface.h"
Seen = list[tuple[Expectation, torch.Tensor]]


class Works(list[Any]):
    """Several works that are waited for as one, or some of them: the others have no outputs."""

    def __init__(self, works: list[Any], first: int = 0) -> None:
        super().__init__(works)
        self._waited = works[first:]

    def wait(self) -> None:
        wait_all(self._waited)

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self)


def _messages(start: Callable[[list[dist.P2POp]], Works]) -> Callable[[Setting], Call]:
    """Return a call that sends to the next rank and receives from the one before."""

    def ring(s: Setting) -> Call:
        sent, got = s.lay(s.of(s.me)), s.blank()
        source, target = (s.me - 1) % s.size, (s.me + 1) % s.size
        messages = [
            dist.P2POp(dist.isend, sent.tensor, target),
            dist.P2POp(dist.irecv, got.tensor, source),
        ]
        return Call(
            lambda async_op: start(messages),
            [
                Expectation("the message", got, s.of(source)),
                Expectation("the input", sent, s.of(s.me)),
            ],
        )

    return ring


def _one_by_one(messages: list[dist.P2POp]) -> Works:
    return Works([message.op(message.tensor, message.peer) for message in messages], first=1)


def _batch(messages: list[dist.P2POp]) -> Works:
    return Works(dist.batch_isend_irecv(messages))


def _coalesced(operation: str) -> Callable[[Setting], Call]:
    def several(s: Setting) -> Call:
        settings = [dataclasses.replace(s, seed=seed) for seed in range(3)]  # share what is laid
        calls = [OPERATIONS[operation](setting) for setting in settings]

        def run(_: bool) -> Works:
            with dist._coalescing_manager(async_ops=True) as manager:
                for call in calls:
                    call.run(True)
            return Works(manager.works)

        return Call(run, [x for call in calls for x in call.expectations])

    return several


MESSAGES = {
    "isend and irecv": _messages(_one_by_one),
    "batch_isend_irecv": _messages(_batch),
}
COALESCED = {
    f"coalesced {operation}": _coalesced(operation)
    for operation in ("all_reduce", "all_gather_single", "reduce_scatter_single")
}
CALLS = {**OPERATIONS, **MESSAGES, **COALESCED}
_IN_PLACE = {"broadcast", "all_reduce", "reduce", "coalesced all_reduce"}
_WITH_INPUTS = [name for name in CALLS if name not in _IN_PLACE]


def _cases(names: Any, *variants: Any) -> Callable[[Rank], list[tuple[Any, ...]]]:
    """Return the cases of each call: its name, and a variant of the check if there are some."""
    if not variants:
        return lambda rank: [(name, name) for name in names]
    return lambda rank: [(f"{x}, {variant}", x, variant) for x in names for variant in variants]


def _make(
    rank: Rank, name: str, device: torch.device | None = None, seed: int = 0
) -> tuple[Setting, Call]:
    """Return a call whose tensors are there: nothing of it is in a stream."""
    rank.operation = name.removeprefix("coalesced ").replace("isend and irecv", "send")
    setting = for_all_ranks(rank, rank.operation, seed=seed)
    setting = dataclasses.replace(setting, device=device or rank.device)
    call = CALLS[name](setting)
    rank.synchronize()
    return setting, call


def _hold(rank: Rank, gate: Gate, name: str = "", here: bool = True) -> list[Any]:
    """Let the communication stand, and not the current stream; return what must be kept.

    An all_reduce waits for a stream that stands, and later calls of the group wait for it, because
    collectives, and messages of one tag, keep their order.
    """
    makers = [OPERATIONS["all_reduce"]]
    if name == "isend and irecv":
        makers.append(MESSAGES[name])
    calls = [make(for_all_ranks(rank, "all_reduce", shape=(1,))) for make in makers]
    rank.synchronize()
    with rank.own_stream():
        if here:
            gate.hold()
        return [calls, [call.run(True) for call in calls]]


def _outputs(call: Call) -> list[Expectation]:
    return [x for x in call.expectations if not x.what.startswith("the input")]


def _look(call: Call) -> Seen:
    """Let a kernel in the current stream read the outputs."""
    return [(x, x.tensor.tensor.clone()) for x in _outputs(call)]


def _verify(seen: Seen, when: str) -> None:
    for x, copy in seen:
        compare(copy, x.content, f"{x.what}, read by a kernel {when}", x.tolerance)


@check(
    "streams",
    "A call sends what kernels that were launched before it write, however late they are.",
    f"{NCCL}:281-291; torch.distributed (Synchronous and asynchronous collective operations)",
    quick=True,
    device=ACCELERATOR,
    cases=_cases(CALLS, "in the default stream", "in another stream"),
)
def late_input(rank: Rank, name: str, place: str) -> None:
    setting, call = _make(rank, name)
    tensors = [x.tensor for x in setting.laid]
    contents = [tensor.clone() for tensor in tensors]
    for tensor in tensors:
        tensor.zero_()
    rank.synchronize()
    stream = rank.own_stream() if "another" in place else contextlib.nullcontext()
    with Gate(rank.device) as gate, stream:
        gate.hold()
        for tensor, content in zip(tensors, contents, strict=True):
            tensor.copy_(content)
        work = call.run(True)
        gate.settle()
        blocks = gate.timed_out
        gate.open()
        work.wait()
        call.check()
    require(not blocks, "the call has blocked the host until its input was there")


def _wait_orders(rank: Rank, name: str, mode: str = "async") -> None:
    setting, call = _make(rank, name)
    with Gate(rank.device) as gate:
        kept = _hold(rank, gate, name)
        work = call.run(mode == "async")
        if mode == "async":
            work.wait()
        seen = _look(call)
        inputs = setting.laid
        with contextlib.ExitStack() as stack:
            if name == "isend and irecv":
                stack.enter_context(rank.own_stream())  # which the receive does not order
                inputs[1:] = []
                work[0].wait()
            for x in inputs:
                x.tensor.zero_()  # what is written after wait() is not sent
        gate.settle()
        gate.open()
        _verify(seen, "after wait()")
    del kept


@check(
    "streams",
    "Kernels after wait(), or after a synchronous call, see the result, and may write the inputs.",
    f"{WORK}:86-96 (wait)",
    quick=True,
    device=STREAMS,
    cases=lambda rank: [
        *_cases(OPERATIONS, "async", "sync")(rank),
        ("isend and irecv", "isend and irecv"),
    ],
)
def wait_orders_the_stream(rank: Rank, name: str, mode: str = "async") -> None:
    _wait_orders(rank, name, mode)


@check(
    "streams",
    "One wait() for coalesced calls, or for a batch of messages, is enough for all their tensors.",
    "torch/csrc/distributed/c10d/Backend.hpp:333-347 (startCoalescing, endCoalescing)",
    device=STREAMS,
    cases=_cases([*COALESCED, "batch_isend_irecv"]),
)
def wait_for_coalesced_calls(rank: Rank, name: str) -> None:
    _wait_orders(rank, name)


@check(
    "streams",
    "wait() returns to the host while the communication runs.",
    "torch.distributed (Work.wait: “will not block the CPU”)",
    device=STREAMS,
    cases=_cases(CALLS),
)
def wait_returns(rank: Rank, name: str) -> None:
    _, call = _make(rank, name)
    with Gate(rank.device) as gate:
        kept = _hold(rank, gate, name)
        call.run(True).wait()
        require(gate.holds, "wait() has blocked the host until the communication ended")
        running = not torch.accelerator.current_stream(rank.device).query()
        require(running or not gate.holds, "the current stream does not wait for anything")
        gate.open()
        call.check()
    del kept


@check(
    "streams",
    "wait() orders the stream that is current then, whatever stream the call was made in.",
    f"{WORK}:91-93; {NCCL}:362",
    device=STREAMS,
    cases=_cases(CALLS),
)
def wait_in_other_streams(rank: Rank, name: str) -> None:
    _, call = _make(rank, name)
    with Gate(rank.device) as gate:
        gate.hold()
        work = call.run(True)
        seen = []
        streams = [torch.Stream(rank.device) for _ in range(2)]
        for stream in streams:
            with stream:
                work.wait()
                seen.append(_look(call))
        gate.settle()
        gate.open()
        for number, stream in enumerate(streams):
            with stream:
                _verify(seen[number], f"after wait() in stream {number + 1} of 2")


@check(
    "streams",
    "is_completed() is False until the communication has ended; then every stream sees the result.",
    f"{WORK}:69; {NCCL}:344-347",
    quick=True,
    device=ACCELERATOR,
    cases=_cases(CALLS),
)
def completion(rank: Rank, name: str) -> None:
    _, call = _make(rank, name)
    with Gate(rank.device) as gate:
        kept = _hold(rank, gate, name)
        work = call.run(True)
        gate.settle()
        early = work.is_completed()
        require(not early or not gate.holds, "is_completed() is True, and the communication waits")
        if not rank.host_waits:
            work.wait()
            early = work.is_completed()
            require(not early or not gate.holds, "wait() alone makes is_completed() True")
        gate.open()
        deadline = time.monotonic() + 5
        while not work.is_completed():
            require(time.monotonic() < deadline, "is_completed() is False 5 s after the end")
            time.sleep(0.0005)
        with rank.own_stream():  # which waits for no other one
            call.check()
    del kept


@check(
    "streams",
    "wait() of a future orders the current stream; the future may be done before.",
    f"{FUTURE}:886-893, 1197-1213",
    device=ACCELERATOR,
    cases=_cases(OPERATIONS, "in the stream of the call", "in another stream"),
)
def future_orders_the_stream(rank: Rank, name: str, place: str) -> None:
    _, call = _make(rank, name)
    same = "another" not in place
    with Gate(rank.device) as gate:
        kept = _hold(rank, gate) if same else []
        if not same:
            gate.hold()
        future = call.run(True).get_future()
        with contextlib.nullcontext() if same else rank.own_stream():
            future.wait()
            seen = _look(call)
            gate.settle()
            gate.open()
            _verify(seen, "after wait() of the future")
    del kept


@check(
    "streams",
    "then() runs a callback in a stream of its own, which sees the result; so does its own future.",
    f"{FUTURE}:1166-1192",
    device=ACCELERATOR,
    cases=_cases(OPERATIONS),
)
def callback_sees_the_result(rank: Rank, name: str) -> None:
    _, call = _make(rank, name)
    streams = []

    def callback(_):
        streams.append(torch.accelerator.current_stream(rank.device))
        return [tensor for _, tensor in _look(call)]

    with Gate(rank.device) as gate:
        kept = _hold(rank, gate)
        child = call.run(True).get_future().then(callback)
        with rank.own_stream():
            again = [tensor.clone() for tensor in child.wait()]
            gate.settle()
            gate.open()
            _verify(list(zip(_outputs(call), again, strict=True)), "after that of a callback")
    require_equal(len(streams), 1, "how often the callback ran")
    own = streams[0] != torch.accelerator.current_stream(rank.device)
    require(own, "the callback ran in the stream that was current when then() was called")
    del kept


def _take_memory(rank: Rank, sizes: list[int]) -> list[torch.Tensor]:
    """Return tensors of these sizes in bytes, which have the memory of others if it is free."""
    return [
        torch.full((size,), 0x77, dtype=torch.uint8, device=rank.device)
        for size in sizes
        for _ in range(2)
    ]


@check(
    "streams",
    "The memory of an input stays until it was sent, although the program drops the tensor.",
    f"{GUARD}:256-263 (recordDataPtrOnStream); {NCCL}:251-261",
    device=ACCELERATOR,
    cases=_cases(_WITH_INPUTS),
)
def freed_input(rank: Rank, name: str) -> None:
    _drop_tensors(rank, name, keep_work=True)


@check(
    "streams",
    "A call ends as it should although the program drops the work, which it never waited for.",
    f"{NCCL}:1453-1459",
    device=ACCELERATOR,
    cases=_cases(_WITH_INPUTS),
)
def dropped_work(rank: Rank, name: str) -> None:
    _drop_tensors(rank, name, keep_work=False)


def _drop_tensors(rank: Rank, name: str, keep_work: bool) -> None:
    setting, call = _make(rank, name)
    outputs = _outputs(call)
    kept_tensors = [x.tensor for x in outputs]
    sizes = [x.nbytes for x in setting.laid if x not in kept_tensors]
    with Gate(rank.device) as gate:
        kept = _hold(rank, gate, name)
        work = call.run(True)
        setting.laid.clear()
        del call
        if not keep_work:
            del work
        taken = _take_memory(rank, sizes)
        gate.settle()
        gate.open()
        if keep_work:
            work.wait()
        rank.synchronize()
        for x in outputs:
            x.tensor.check(x.content, x.what, x.tolerance)
    del kept, taken


@check(
    "streams",
    "Memory that the program drops during a call is free after it, and is not written before.",
    f"{NCCL}:1453-1459",
    device=ACCELERATOR,
    cases=lambda rank: [*_cases(CALLS)(rank), ("memory of 8 dropped works", "")],
)
def dropped_memory(rank: Rank, name: str) -> None:
    if not name:
        _memory_comes_back(rank)
        return
    setting, call = _make(rank, name)
    sizes = [x.nbytes for x in setting.laid]
    with Gate(rank.device) as gate:
        kept = _hold(rank, gate, name)
        call.run(True)
        setting.laid.clear()
        del call
        taken = _take_memory(rank, sizes)
        gate.settle()
        gate.open()
        rank.synchronize()
    for tensor in taken:
        compare(tensor, torch.full_like(tensor, 0x77, device="cpu"), "memory of another tensor")
    del kept


def _memory_comes_back(rank: Rank) -> None:
    count = 1 << 18

    def used() -> int:
        dist.all_reduce(rank.full(1, 1.0))  # a backend may let go of memory in its next call
        rank.synchronize()
        return torch.accelerator.memory_allocated(rank.device)

    before, deadline = used(), time.monotonic() + 5
    for _ in range(8):
        dist.all_reduce(rank.full(count, 1.0), async_op=True)
    while (after := used()) >= before + 4 * count:
        grown = (after - before) >> 20
        require(time.monotonic() < deadline, f"8 works of 1 MiB were dropped, {grown} MiB stay")


@check(
    "streams",
    "barrier() and its wait() return to the host when all ranks have come.",
    "torch.distributed.barrier",
    device=ACCELERATOR,
    cases=lambda rank: [
        (f"barrier {mode}, rank {late} late", mode, late)
        for mode in ("sync", "async")
        for late in range(rank.size)
    ],
)
def barrier_blocks_the_host(rank: Rank, mode: str, late: int) -> None:
    rank.operation = "barrier"

    def pass_barrier():
        rank.make_current()
        work = dist.barrier(async_op=mode == "async")
        if work is not None:
            work.wait()

    with Gate(rank.device) as gate:
        kept = _hold(rank, gate, here=rank.rank == late)
        thread = threading.Thread(target=pass_barrier)
        thread.start()
        gate.settle_thread(thread)
        early = not thread.is_alive() and gate.holds
        rank.meet()
        gate.open()
        thread.join()
    del kept
    require(not early, f"the host goes on although the device of rank {late} has not come")


@check(
    "streams",
    "Kernels that are launched after a call run while the communication does.",
    f"{NCCL}:285-288",
    device=ACCELERATOR,
    cases=_cases(CALLS),
)
def overlap(rank: Rank, name: str) -> None:
    _, call = _make(rank, name)
    numbers = rank.full(100, 1.0)
    rank.synchronize()
    with Gate(rank.device) as gate:
        kept = _hold(rank, gate, name)
        work = call.run(True)
        numbers.mul_(2)
        gate.settle()
        ended = torch.accelerator.current_stream(rank.device).query()
        require(ended or not gate.holds, "the kernel waits for the communication")
        gate.open()
        work.wait()
        call.check()
    del kept


@check(
    "streams",
    "Collectives from two streams of a rank keep the order of the host's calls.",
    f"{NCCL}:281-283",
    device=ACCELERATOR,
    cases=lambda rank: [
        (f"{operation}, the first stream of rank {late} late", operation, late)
        for operation in ("all_reduce", "all_gather")
        for late in (0, rank.size - 1)
    ],
)
def two_streams(rank: Rank, operation: str, late: int) -> None:
    calls = [_make(rank, operation, seed=seed)[1] for seed in (1, 2)]
    streams = [torch.Stream(rank.device) for _ in calls]
    with Gate(rank.device) as gate:
        works: list[Any] = []
        for call, stream in zip(calls, streams, strict=True):
            with stream:
                if not works and rank.rank == late:
                    gate.hold()
                works.append(call.run(True))
        gate.settle(peers=False)
        rank.meet()
        gate.open()
        wait_all(works)
        for call in calls:
            call.check()


@check(
    "streams",
    "A call takes the device of its tensors; the current device and the streams stay as they were.",
    f"{GUARD}:42-60",
    device=ACCELERATOR,
    cases=_cases(CALLS),
)
def another_device(rank: Rank, name: str) -> None:
    count = torch.accelerator.device_count()
    if count < 2:
        raise NotImplementedError(f"this host does not have a second device {rank.device.type}")
    other = torch.device(rank.device.type, (rank.device.index + 1) % count)

    def places() -> list[Any]:
        streams = [torch.accelerator.current_stream(device) for device in (rank.device, other)]
        return [torch.accelerator.current_device_index(), *streams]

    setting, call = _make(rank, name, device=other)
    tensors = [x.tensor for x in setting.laid]
    contents = [tensor.clone() for tensor in tensors]
    for tensor in tensors:
        tensor.zero_()
    torch.accelerator.synchronize(other)
    with Gate(other) as gate, rank.own_stream():
        with torch.accelerator.device_index(other.index):
            gate.hold()
        for tensor, content in zip(tensors, contents, strict=True):
            tensor.copy_(content)
        before = places()
        work = call.run(True)
        between = places()
        gate.settle()
        gate.open()
        work.wait()
        after = places()
        call.check()
    torch.accelerator.synchronize(other)
    require_equal(between, before, "the current device, and the current stream of both devices")
    require_equal(after, before, "the current device and streams after wait()")


@check(
    "streams",
    "wait() with a timeout blocks the host, and raises when the time is over.",
    f"{NCCL}:351-353",
    device=ACCELERATOR,
)
def wait_with_a_timeout(rank: Rank) -> None:
    group = rank.new_group()
    total(rank, group)
    tensor = rank.full(4, 1.0)
    rank.synchronize()
    with Gate(rank.device) as gate:
        gate.hold()
        work = dist.all_reduce(tensor, group=group, async_op=True)
        error, seconds = error_of(work.wait, timedelta(milliseconds=300))
    rank.synchronize()
    rank.meet()
    dist.destroy_process_group(group)
    if error is None:
        raise Wrong(f"wait() with a timeout of 0.3 s returned after {seconds:.1f} s, without error")
    require(str(error).strip(), f"{type(error).__name__} has no text")
    require(seconds > 0.25, f"the error came after {seconds:.2f} s, before the timeout of 0.3 s")


@check(
    "streams",
    "The backend reports a call that takes too long, also while the program holds the GIL.",
    f"{NCCL}:1453-1459 (the watchdog); torch.distributed.init_process_group (timeout)",
    group=False,
    ranks=(2,),
    device=ACCELERATOR,
)
def watchdog(rank: Rank) -> None:
    rank.init(timeout=2)
    total(rank)
    pipe, output = f"{rank.folder}/pipe", Path(rank.folder, "output-0")
    if rank.rank == 0:
        os.mkfifo(pipe)
        rank.synchronize()
    rank.meet()
    if rank.rank == 0:
        descriptor = os.open(pipe, os.O_RDWR)
        dist.all_reduce(rank.full(4, 1.0), async_op=True)
        rank.leave()
        ctypes.PyDLL(None).read(descriptor, ctypes.create_string_buffer(1), 1)  # with the GIL
        os._exit(0)
    before, deadline = output.stat().st_size, time.monotonic() + 6
    text = ""
    while not is_clear(text, rank.backend, "all_reduce") and time.monotonic() < deadline:
        time.sleep(0.02)
        text = output.read_text(errors="replace")[before:]
    os.write(os.open(pipe, os.O_RDWR), b"x")
    require(text.strip(), "6 s after a call with a timeout of 2 s, nothing is reported")
    require(is_clear(text, rank.backend, "all_reduce"), f"the report is unclear: {text[:300]}")

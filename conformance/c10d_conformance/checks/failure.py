"""What happens when a rank is lost, late, or calls something else, and with wrong arguments."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from c10d_conformance.inputs import GuardedTensor, values
from c10d_conformance.operations import total
from c10d_conformance.rank import Rank, Wrong, error_of, is_unsupported, require
from c10d_conformance.registry import ANY, CPU, check
from c10d_conformance.verdicts import ABSENT

TIMEOUT = 2  # seconds, of the groups of these checks
MARGIN = 4  # seconds that an error may come after its time, on a busy machine


def _wait(rank: Rank, work: Any) -> None:
    """Let the host learn how a call ends, which on a stream is after wait()."""
    work.wait()
    if not rank.host_waits:
        rank.synchronize()
        work.wait()


def _to_the_end(rank: Rank, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Make a call whose error reaches the host."""
    if rank.host_waits:
        call(*arguments, **options)
    else:
        _wait(rank, call(*arguments, async_op=True, **options))


def _all_reduce(rank: Rank, group: Any = None, count: int = 4) -> None:
    _to_the_end(rank, dist.all_reduce, rank.full(count, 1.0), group=group)


def _recv(rank: Rank) -> None:
    if rank.host_waits:
        dist.recv(rank.full(4, 0.0), rank.size - 1)
    else:
        _wait(rank, dist.irecv(rank.full(4, 0.0), rank.size - 1))


CALLS = {
    "all_reduce": _all_reduce,
    "all_reduce, large": lambda rank: _all_reduce(rank, count=1_000_000),
    "async and wait": lambda rank: _wait(rank, dist.all_reduce(rank.full(4, 1.0), async_op=True)),
    "future": lambda rank: dist.all_reduce(rank.full(4, 1.0), async_op=True).get_future().wait(),
    "broadcast": lambda rank: _to_the_end(rank, dist.broadcast, rank.full(4, 1.0), rank.size - 1),
    "all_gather": lambda rank: _to_the_end(
        rank, dist.all_gather, [rank.full(4, 0.0) for _ in range(rank.size)], rank.full(4, 1.0)
    ),
    "barrier": lambda rank: dist.barrier(),
    "recv": _recv,
}


def _device_of(name: str) -> str:
    """Return for which devices a call is: a future of streams is complete at once."""
    return CPU if name == "future" else ANY


def _expect_error(
    rank: Rank, call: Callable[..., Any], least: float = 0.0, most: float = TIMEOUT + MARGIN
) -> None:
    """Raise Wrong unless the call raises an error with a text between two times."""
    error, seconds = error_of(call)
    _require_error(rank, error, f"the call returned after {seconds:.1f} s and raised nothing")
    require(
        seconds >= least, f"the error came after {seconds:.1f} s, before {least:.1f} s: {error}"
    )
    require(
        seconds <= most, f"the error came after {seconds:.1f} s, later than {most:.0f} s: {error}"
    )


def _require_error(rank: Rank, error: Exception | None, missing: str) -> None:
    """Raise Wrong without an error with a text; raise the error itself if it is a refusal."""
    if error is None:
        raise Wrong(missing)
    if is_unsupported(error, rank.backend, rank.operation):
        raise error
    require(str(error).strip(), f"{type(error).__name__} has no text")


def _without_others(rank: Rank, call: Callable[[], Any]) -> str | None:
    """Let rank 0 make a call that waits for the other ranks, which do not come."""
    try:
        if rank.rank:
            return ABSENT
        call()
    finally:
        rank.meet()
    return None


def _start(rank: Rank, timeout: float = TIMEOUT) -> None:
    """Initialize the default group, and use it once: some backends connect only then."""
    rank.init(timeout)
    _all_reduce(rank)
    rank.meet()


def _lost(name: str, how: str) -> Callable[[Rank], None]:
    def lost(rank: Rank) -> None:
        _start(rank)
        if rank.rank == rank.size - 1:
            rank.leave()
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(0)
        time.sleep(0.2)
        rank.operation = name.partition(",")[0]
        _expect_error(rank, lambda: CALLS[name](rank))

    lost.__name__ = f"{how}_{''.join(x if x.isalnum() else '_' for x in name)}".replace("__", "_")
    lost.__module__ = __name__
    return lost


for _name in CALLS:
    check(
        "rank_lost",
        "When a rank is killed, the others get an error within the timeout.",
        "torch.distributed.init_process_group (timeout)",
        group=False,
        waits=True,
        ranks=(3,),
        quick=_name == "all_reduce",
        device=_device_of(_name),
    )(_lost(_name, "killed"))
for _name in ("all_reduce", "recv"):
    check(
        "rank_lost",
        "When the process of a rank ends, the others get an error in time.",
        "torch.distributed.init_process_group (timeout)",
        group=False,
        waits=True,
        ranks=(3,),
    )(_lost(_name, "exits"))


@check(
    "rank_lost",
    "After an error, the group can be destroyed in a bounded time.",
    "torch.distributed.destroy_process_group",
    group=False,
    waits=True,
    ranks=(3,),
)
def destroy_after_a_loss(rank: Rank) -> None:
    _start(rank)
    if rank.rank == rank.size - 1:
        rank.leave()
        os.kill(os.getpid(), signal.SIGKILL)
    _expect_error(rank, lambda: _all_reduce(rank))
    _, seconds = error_of(dist.destroy_process_group)
    require(seconds < MARGIN, f"destroy_process_group took {seconds:.1f} s")


@check(
    "rank_lost",
    "A rank that ends during a large operation is an error on the others.",
    "torch.distributed.init_process_group (timeout)",
    group=False,
    waits=True,
    ranks=(3,),
)
def killed_during_an_operation(rank: Rank) -> None:
    _start(rank)
    if rank.rank == rank.size - 1:
        rank.leave()
        dist.all_reduce(rank.full(3_000_000, 1.0), async_op=True)
        os.kill(os.getpid(), signal.SIGKILL)

    def repeat():
        for _ in range(50):
            _all_reduce(rank, count=3_000_000)

    _expect_error(rank, repeat, most=TIMEOUT + MARGIN + 1)


def _late(name: str) -> Callable[[Rank], str | None]:
    def late(rank: Rank) -> str | None:
        _start(rank)
        rank.operation = name.partition(",")[0]
        return _without_others(
            rank, lambda: _expect_error(rank, lambda: CALLS[name](rank), least=TIMEOUT - 0.5)
        )

    late.__name__ = f"timeout_of_{''.join(x if x.isalnum() else '_' for x in name)}"
    late.__module__ = __name__
    return late


for _name in (
    "all_reduce",
    "async and wait",
    "future",
    "broadcast",
    "all_gather",
    "barrier",
    "recv",
):
    check(
        "timeout",
        "A call that waits longer than the timeout of its group raises an error.",
        "torch.distributed.init_process_group (timeout)",
        group=False,
        waits=True,
        ranks=(2,),
        quick=_name == "all_reduce",
        device=_device_of(_name),
    )(_late(_name))


@check(
    "timeout",
    "A rank that comes late, but within the timeout, is waited for.",
    "torch.distributed.init_process_group (timeout)",
    group=False,
    waits=True,
    quick=True,
)
def late_within_the_timeout(rank: Rank) -> None:
    rank.init(timeout=30)
    for seconds in (0.5, 1.5):
        if rank.rank == 0:
            time.sleep(seconds)
        total(rank)


@check(
    "timeout",
    "wait() with a timeout raises when its own time is over.",
    "torch/csrc/distributed/c10d/Work.hpp (wait)",
    group=False,
    waits=True,
    ranks=(2,),
)
def timeout_of_wait(rank: Rank) -> str | None:
    _start(rank, 60)

    def wait():
        work = dist.all_reduce(rank.full(4, 1.0), async_op=True)
        # Less than a second: a timeout that is cut to seconds would be none.
        timeout = timedelta(milliseconds=900)
        _expect_error(rank, lambda: work.wait(timeout), least=0.5, most=1 + MARGIN)

    return _without_others(rank, wait)


@check(
    "timeout",
    "new_group has a timeout of its own.",
    "torch.distributed.new_group (timeout)",
    group=False,
    waits=True,
    ranks=(2,),
)
def timeout_of_a_group(rank: Rank) -> str | None:
    rank.init(timeout=60)
    group = rank.new_group([0, 1], timeout=timedelta(seconds=TIMEOUT))
    _all_reduce(rank, group)
    rank.meet()
    return _without_others(
        rank, lambda: _expect_error(rank, lambda: _all_reduce(rank, group), least=TIMEOUT - 0.5)
    )


@check(
    "timeout",
    "set_timeout changes the timeout of the calls that follow it.",
    "torch.distributed.ProcessGroup.set_timeout, torch.distributed.set_timeout",
    group=False,
    waits=True,
    ranks=(2,),
)
def timeout_that_is_changed(rank: Rank) -> str | None:
    _start(rank, 60)
    rank.world.set_timeout(timedelta(seconds=TIMEOUT))
    return _without_others(
        rank, lambda: _expect_error(rank, lambda: _all_reduce(rank), least=TIMEOUT - 0.5)
    )


@check(
    "timeout",
    "A rank that calls after the others have failed gets an error, too.",
    "torch.distributed.init_process_group (timeout)",
    group=False,
    waits=True,
    ranks=(2,),
)
def after_the_others_have_failed(rank: Rank) -> None:
    _start(rank)
    if rank.rank == 0:
        try:
            _expect_error(rank, lambda: _all_reduce(rank))
        finally:
            rank.meet()
    else:
        rank.meet()
        _expect_error(rank, lambda: _all_reduce(rank))
        _expect_error(rank, dist.barrier)


@check(
    "timeout",
    "A work that fails tells its future, which raises the error.",
    "torch.futures.Future.wait",
    group=False,
    waits=True,
    ranks=(2,),
    device=CPU,
)
def error_in_the_future(rank: Rank) -> str | None:
    _start(rank)

    def wait():
        future = dist.all_reduce(rank.full(4, 1.0), async_op=True).get_future()
        _expect_error(rank, future.then(lambda future: future.value()).wait)

    return _without_others(rank, wait)


@check(
    "timeout",
    "A rank that never comes makes init_process_group or the first call fail.",
    "torch.distributed.init_process_group (timeout)",
    group=False,
    waits=True,
    ranks=(2,),
    patience=2,
)
def a_rank_that_never_comes(rank: Rank) -> str | None:
    def start():
        rank.init(timeout=TIMEOUT)
        _all_reduce(rank)

    return _without_others(rank, lambda: _expect_error(rank, start, most=3 * TIMEOUT + MARGIN))


def _mismatch(rank: Rank, calls: Sequence[Callable[[], Any]], name: str) -> None:
    """Each rank makes its own call: an error on every rank, or results, but within the time."""
    _start(rank)
    call = calls[min(rank.rank, len(calls) - 1)]
    error, seconds = error_of(call)
    require(seconds < TIMEOUT + MARGIN, f"{name}: the call took {seconds:.1f} s")
    if error is not None:
        require(str(error).strip(), f"{type(error).__name__} has no text")
    # A rank that has its part may go on only when the others have theirs.
    rank.meet()


@check(
    "mismatch",
    "Ranks that call different operations end in time, without a crash.",
    "torch.distributed.init_process_group (timeout)",
    group=False,
    waits=True,
)
def other_operation(rank: Rank) -> None:
    calls = [lambda: dist.barrier(), lambda: _all_reduce(rank)]
    _mismatch(rank, calls, "barrier and all_reduce")


@check(
    "mismatch",
    "Ranks that give tensors of different sizes write nothing outside of them.",
    "torch.distributed.all_reduce",
    group=False,
    waits=True,
)
def other_size(rank: Rank) -> None:
    content = values(rank.rank, (3 if rank.rank else 100,), torch.float32)
    area = GuardedTensor(content, "offset", rank.device)

    def call():
        _to_the_end(rank, dist.all_reduce, area.tensor)

    _mismatch(rank, [call], "all_reduce of 100 and 3 elements")
    area.check(area.tensor.clone(), "the tensor")


@check(
    "mismatch",
    "Debug level DETAIL names the ranks' different operations in an error.",
    "torch.distributed (Debugging: TORCH_DISTRIBUTED_DEBUG)",
    group=False,
    waits=True,
    environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
    quick=True,
)
def detail_finds_another_operation(rank: Rank) -> None:
    rank.init(timeout=20)
    _all_reduce(rank)
    calls = [lambda: dist.barrier(), lambda: _all_reduce(rank)]
    error, _ = error_of(calls[min(rank.rank, 1)])
    rank.meet()
    require(error is not None, "the call raised nothing")
    require(
        "mismatch" in str(error).lower() or "collective" in str(error).lower(), f"text: {error}"
    )


@check(
    "abort",
    "abort ends the operations of a group that wait for others.",
    "torch/csrc/distributed/c10d/Backend.hpp (abort)",
    group=False,
    waits=True,
    ranks=(2,),
    quick=True,
)
def abort(rank: Rank) -> str | None:
    rank.operation = "abort"
    _start(rank, 60)

    def abort_and_wait():
        work = dist.all_reduce(rank.full(4, 1.0), async_op=True)
        time.sleep(0.2)
        rank.world._get_backend(rank.device).abort()
        error, seconds = error_of(work.wait, timedelta(seconds=4))
        require(error is not None, "wait() raised nothing after abort()")
        require(seconds < 3, f"wait() ended {seconds:.1f} s after abort(): {error}")

    return _without_others(rank, abort_and_wait)


@check(
    "abort",
    "abort between startCoalescing and endCoalescing returns, and ends the calls and the group.",
    "torch/csrc/distributed/c10d/Backend.hpp:793-795 (abort), 333-347 (startCoalescing)",
    group=False,
    waits=True,
    ranks=(2,),
)
def abort_while_coalescing(rank: Rank) -> str | None:
    rank.operation = "startCoalescing"
    _start(rank, 60)
    backend = rank.world._get_backend(rank.device)

    def end():
        work = backend._end_coalescing()
        if work is not None:
            work.wait(timedelta(seconds=4))

    def abort_and_end():
        backend._start_coalescing()
        dist.all_reduce(rank.full(4, 1.0), async_op=True)
        start = time.monotonic()
        backend.abort()
        ended, _ = error_of(end)
        again, _ = error_of(_all_reduce, rank)
        seconds = time.monotonic() - start
        require(ended is not None, "the coalesced calls raised nothing after abort()")
        require(again is not None, "another call raised nothing after abort()")
        require(seconds < MARGIN, f"the calls after abort() took {seconds:.1f} s")

    return _without_others(rank, abort_and_end)


@check(
    "abort",
    "An abort hook is called when an operation has failed, but not once it is unregistered.",
    "torch/csrc/distributed/c10d/Backend.hpp:271-298 (registerAbortHook); Hooks.hpp:71-81",
    group=False,
    waits=True,
    ranks=(2,),
)
def abort_hooks(rank: Rank) -> str | None:
    rank.operation = "registerAbortHook"
    _start(rank)
    backend = rank.world._get_backend(rank.device)
    if not hasattr(backend, "supports_abort_hooks"):
        raise NotImplementedError("this release does not support abort hooks")
    kept, removed = threading.Event(), threading.Event()
    first = 1 << 40  # PyTorch's own hooks have other numbers
    error, _ = error_of(backend.register_abort_hook, first, kept.set)
    if not backend.supports_abort_hooks:
        raise error or Wrong("supportsAbortHooks() is False, but registerAbortHook() returns")
    require(error is None, f"supportsAbortHooks() is True, but registerAbortHook() raises: {error}")
    backend.register_abort_hook(first + 1, removed.set)
    backend.unregister_abort_hook(first + 1)

    def fail():
        _expect_error(rank, lambda: _all_reduce(rank))
        require(kept.wait(MARGIN), f"the hook is not called within {MARGIN} s of the error")
        require(not removed.is_set(), "a hook is called that was unregistered before")

    return _without_others(rank, fail)


BAD = "torch.distributed (arguments of the collectives)"


def _bad(name: str, call: Callable[..., Any], operation: str) -> Callable[[Rank], None]:
    def bad(rank: Rank) -> None:
        rank.operation = operation
        error, _ = error_of(lambda: call(rank))
        _require_error(rank, error, "the call raised nothing")

    bad.__name__ = name
    bad.__module__ = __name__
    return bad


def _lists(
    rank: Rank, count: int, shape: int = 4, dtype: torch.dtype = torch.float32
) -> list[torch.Tensor]:
    return [rank.full(shape, 0.0, dtype) for _ in range(count)]


# PyTorch itself refuses much. These calls reach the backend.
_BAD_CALLS = {
    "too_few_outputs": (
        "all_gather",
        lambda rank: dist.all_gather(_lists(rank, rank.size - 1), rank.full(4, 1.0)),
    ),
    "too_many_outputs": (
        "all_gather",
        lambda rank: dist.all_gather(_lists(rank, rank.size + 1), rank.full(4, 1.0)),
    ),
    "too_small_an_output": (
        "all_gather_single",
        lambda rank: dist.all_gather_into_tensor(
            rank.full(4 * rank.size - 1, 0.0), rank.full(4, 1.0)
        ),
    ),
    "another_dtype": (
        "all_gather_single",
        lambda rank: dist.all_gather_into_tensor(
            rank.full(4 * rank.size, 0, torch.int32), rank.full(4, 1.0)
        ),
    ),
    "inputs_that_do_not_divide": (
        "reduce_scatter_single",
        lambda rank: dist.reduce_scatter_tensor(
            rank.full(4, 0.0), rank.full(4 * rank.size + 1, 1.0)
        ),
    ),
    "too_few_inputs": (
        "reduce_scatter",
        lambda rank: dist.reduce_scatter(rank.full(4, 0.0), _lists(rank, rank.size - 1)),
    ),
    "splits_that_do_not_fit": (
        "all_to_all_single",
        lambda rank: dist.all_to_all_single(
            rank.full(rank.size, 0.0),
            rank.full(rank.size, 0.0),
            [2] * rank.size,
            [1] * rank.size,
        ),
    ),
    "a_rank_that_does_not_exist": (
        "broadcast",
        lambda rank: rank.world.broadcast(rank.full(4, 1.0), rank.size + 3),
    ),
}
for _name, (_operation, _call) in _BAD_CALLS.items():
    check(
        "bad_input",
        "A call whose arguments do not fit raises an error with a text.",
        BAD,
        quick=_name == "too_few_outputs",
    )(_bad(_name, _call, _operation))


@check("bad_input", "After a call that was refused, the group works as before.", BAD, quick=True)
def works_after_a_refusal(rank: Rank) -> str | None:
    error_of(lambda: dist.all_gather(_lists(rank, rank.size + 1), rank.full(4, 1.0)))
    rank.meet()
    total(rank)
    return ABSENT if rank.size == 1 else None

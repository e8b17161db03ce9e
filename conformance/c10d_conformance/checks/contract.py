"""What PyTorch asks a backend beside operations: works, numbers, splits, devices and records."""

import contextlib
import inspect
import json
import math
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from c10d_conformance.gate import Gate
from c10d_conformance.inputs import GuardedTensor, compare, values
from c10d_conformance.operations import OPERATIONS, finish, for_all_ranks, total, wait_all
from c10d_conformance.rank import Rank, Wrong, error_of, require, require_equal
from c10d_conformance.registry import ACCELERATOR, check

PYTHON = "torch/distributed/distributed_c10d.py"
BACKEND = "torch/csrc/distributed/c10d/Backend.hpp"
WORK = "torch/csrc/distributed/c10d/Work.hpp"
HOOKS = "torch/csrc/distributed/c10d/Hooks.hpp"


def _lacks(what: str) -> NotImplementedError:
    """Return the refusal of a check that this release of PyTorch cannot run."""
    return NotImplementedError(f"this release does not support {what}")


def _backend(rank: Rank, group: Any = None) -> Any:
    return (group or rank.world)._get_backend(rank.device)


@contextlib.contextmanager
def _destroyed(rank: Rank, *groups: Any) -> Iterator[None]:
    """Destroy groups after a block, when all ranks have left it: also those that raise an error."""
    try:
        yield
    finally:
        rank.meet()
        for group in groups:
            dist.destroy_process_group(group)


_COALESCED = {
    "coalesced all_reduce": False,
    "coalesced all_gather_single": False,
    "coalesced reduce_scatter_single": False,
    "broadcast between startCoalescing and endCoalescing": True,
}


@check(
    "coalescing",
    "A coalescing manager has exactly one work, and its wait() is enough for all calls.",
    f"{PYTHON}:3721-3834 (_coalescing_manager); {BACKEND}:333-347",
    cases=lambda rank: [(f"{name}, one work", name) for name in _COALESCED],
)
def one_work_for_a_batch(rank: Rank, name: str) -> None:
    operation = name.removeprefix("coalesced ").partition(" ")[0]
    rank.operation = "startCoalescing" if _COALESCED[name] else f"{operation}_coalesced"
    # A group of its own: if startCoalescing is refused, PyTorch goes on collecting its calls.
    group = rank.new_group()
    with _destroyed(rank, group):
        settings = [for_all_ranks(rank, operation, group=group, seed=seed) for seed in range(3)]
        calls = [OPERATIONS[operation](setting) for setting in settings]
        device = rank.device if _COALESCED[name] else None
        with dist._coalescing_manager(group, device, async_ops=True) as manager:
            for call in calls:
                call.run(True)
        require_equal(len(manager.works), 1, "the number of works of 3 coalesced calls")
        manager.works[0].wait()
        for call in calls:
            call.check()


@check(
    "async",
    "wait() takes a work out of the registry of works in flight, which else keeps it for ever.",
    "torch/csrc/distributed/c10d/ProcessGroup.hpp:31-51 (unregister_work); "
    "test/distributed/test_c10d_process_group.py (test_wait_unregisters_work)",
    cases=lambda rank: [(f"{operation}, unregistered", operation) for operation in OPERATIONS],
)
def wait_unregisters(rank: Rank, operation: str) -> None:
    from torch.distributed import _functional_collectives as functions

    rank.operation = operation
    if not hasattr(functions, "allow_inflight_collective_as_graph_input_ctx"):
        raise _lacks("the registry of works")
    call = OPERATIONS[operation](for_all_ranks(rank, operation))
    before = c10d._get_work_registry_size()
    with functions.allow_inflight_collective_as_graph_input_ctx():
        call.run(True).wait()
    left = c10d._get_work_registry_size() - before
    require_equal(left, 0, "the number of works in the registry that were waited for")


@check(
    "debug",
    "The works of a group have rising numbers, alike on all ranks; other groups do not count.",
    f"{WORK}:136 (getSequencenumber); {BACKEND}:616-637 (getSequenceNumberForGroup)",
)
def numbers_of_works(rank: Rank) -> None:
    rank.operation = "getSequencenumber"
    if not hasattr(dist.Work, "_get_sequence_number"):
        raise _lacks("numbers of works")
    before, numbers = rank.world._get_sequence_number_for_group(), []
    group = rank.new_group()
    with _destroyed(rank, group):
        for _ in range(3):
            work = dist.all_reduce(rank.full(3, 1.0), group=group, async_op=True)
            work.wait()
            numbers.append(work._get_sequence_number())
    alike = rank.share(str(numbers))
    require_equal(numbers, sorted(set(numbers)), "the numbers of the works of 3 all_reduce")
    require_equal(alike, [str(numbers)] * rank.size, "these numbers on all ranks")
    after = rank.world._get_sequence_number_for_group()
    require_equal(after, before, "the number of the default group after calls of another group")


@check(
    "debug",
    "A work tells its duration in milliseconds once timing is on, or refuses.",
    f"{WORK}:134 (getDuration); {HOOKS}:88-91; {BACKEND}:690 (enableCollectivesTiming)",
)
def durations(rank: Rank) -> None:
    rank.operation = "getDuration"
    group = rank.new_group()
    with _destroyed(rank, group):
        group._enable_collectives_timing()
        start = time.monotonic()
        work = dist.all_reduce(rank.full(1000, 1.0), group=group, async_op=True)
        work.wait()
        rank.synchronize()
        passed = 1000 * (time.monotonic() - start)
        duration = work._get_duration()
    right = math.isfinite(duration) and 0 <= duration <= passed
    require(right, f"the duration is {duration} ms, of a call that took {passed:.3f} ms in all")


@check(
    "gather",
    "gather_single joins the tensors of all ranks at the destination, or stacks them.",
    "torch.distributed.gather_single",
    cases=lambda rank: [
        (f"gather_single {form} {mode} root {root}", form, mode, root)
        for form in ("joined", "stacked")
        for root in (0, rank.size - 1)
        for mode in ("sync", "async")
    ],
)
def gather_single(rank: Rank, form: str, mode: str, root: int) -> None:
    rank.operation = "gather_single"
    if not hasattr(dist, "gather_single"):
        raise _lacks("gather_single")
    parts = [values(r, (3, 5), torch.float32, root) for r in range(rank.size)]
    content = torch.stack(parts) if form == "stacked" else torch.cat(parts)
    source = GuardedTensor(parts[rank.rank], "offset", rank.device)
    output = GuardedTensor(torch.full_like(content, -9.0), "offset", rank.device)
    target = output.tensor if rank.rank == root else None
    finish(lambda async_op: dist.gather_single(source.tensor, target, root, None, async_op), mode)
    output.check(content if rank.rank == root else torch.full_like(content, -9.0))
    source.check(parts[rank.rank], "the input")


def _split(rank: Rank, ranks: list[int], seconds: int, **options: Any) -> Any:
    """Return a group that is split from all ranks, each of which is in it."""
    rank.operation = "split"
    return dist.split_group(split_ranks=[ranks], timeout=timedelta(seconds=seconds), **options)


@check(
    "sub_groups",
    "split_group numbers the ranks of the new group in the order in which they are given.",
    "torch.distributed.split_group (“The order of ranks within each split is preserved”)",
)
def split_in_another_order(rank: Rank) -> None:
    ranks = list(reversed(range(rank.size)))
    group = _split(rank, ranks, 30)
    with _destroyed(rank, group):
        gathered = [rank.full(1, -9.0) for _ in ranks]
        dist.all_gather(gathered, rank.full(1, float(rank.rank)), group=group)
        got = [int(tensor) for tensor in gathered]
        require_equal(got, ranks, "the ranks that all_gather has gathered, in its order")
        require_equal(dist.get_rank(group), ranks.index(rank.rank), "get_rank")
        require_equal(_backend(rank, group).rank(), ranks.index(rank.rank), "rank() of its backend")


@check(
    "sub_groups",
    "Groups that are split with the same options share no state with each other or the parent.",
    f"{BACKEND}:98-108 (Options::clone)",
    cases=lambda rank: [
        (f"two splits with options {whose}", whose == "given") for whose in ("given", "left out")
    ],
)
def options_of_splits(rank: Rank, given: bool) -> None:
    parent = _backend(rank).options

    def state(options: Any) -> tuple[Any, ...]:
        return options._timeout, options.group_name, list(options.global_ranks_in_group)

    before, ranks = state(parent), list(range(rank.size))
    groups = [
        _split(rank, ranks, seconds, **({"pg_options": parent} if given else {}))
        for seconds in (31, 32)
    ]
    with _destroyed(rank, *groups):
        require_equal(state(parent), before, "the options of the parent after the splits")
        for group, seconds in zip(groups, (31, 32), strict=True):
            got = _backend(rank, group).options._timeout
            require_equal(got, timedelta(seconds=seconds), "the timeout of a split's options")
            total(rank, group)


@check(
    "sub_groups",
    "new_group with a device_id binds the new group and its backend to the device.",
    f"torch.distributed.new_group (device_id); {BACKEND}:748-765 (eagerConnectSingleDevice)",
)
def group_of_a_device(rank: Rank) -> None:
    rank.operation = "device_id"
    if "device_id" not in inspect.signature(dist.new_group).parameters:
        raise _lacks("device_id")
    device = torch.device(rank.device.type, rank.device.index or 0)
    group = rank.new_group(device_id=device)
    with _destroyed(rank, group):
        total(rank, group)
        require_equal(group.bound_device_id, device, "the device of the group")
        require_equal(_backend(rank, group).bound_device_id, device, "the device of its backend")


@check(
    "lifecycle",
    "In a group with a backend for each device, a tensor goes to the backend of its device.",
    "torch.distributed.init_process_group (backend: “cpu:gloo,cuda:nccl”)",
    group=False,
    device=ACCELERATOR,
)
def mixed_devices(rank: Rank) -> None:
    cpu = torch.device("cpu")
    rank.init(backend=f"cpu:gloo,{rank.device.type}:{rank.backend}")
    names = [rank.world._get_backend(device).name().lower() for device in (cpu, rank.device)]
    require_equal(names, ["gloo", rank.backend.lower()], "the backends of the CPU and the device")
    total(rank)
    tensor, numbers = rank.full(4, 1.0), torch.ones(4)
    rank.synchronize()
    with Gate(rank.device) as gate:
        gate.hold()
        work = dist.all_reduce(tensor, async_op=True)
        dist.all_reduce(numbers)
        waited = gate.timed_out
        gate.open()
        work.wait()
    require(not waited, "the tensors of the CPU wait for the device")
    for result in (tensor, numbers):
        compare(result, torch.full((4,), float(rank.size)), f"the sum on {result.device}")
    objects: list[Any] = [None] * rank.size
    dist.all_gather_object(objects, {"rank": rank.rank})
    require_equal(objects, [{"rank": r} for r in range(rank.size)], "the objects of all ranks")
    for device in (cpu, rank.device):
        objects = [f"of rank {rank.rank}"]
        dist.broadcast_object_list(objects, 0, device=device)
        require_equal(objects, ["of rank 0"], f"the object that was sent on {device}")


@check(
    "sub_groups",
    "A backend that supports reconfigure goes on with fewer ranks, and with all again.",
    f"{BACKEND}:227-252 (supportsReconfigure, reconfigure)",
    group=False,
)
def reconfigure(rank: Rank) -> None:
    rank.operation = "reconfigure"
    if not hasattr(dist, "_supports_reconfigure"):
        raise _lacks("reconfigure")
    rank.init(enable_reconfigure=True)
    if not dist._supports_reconfigure():
        total(rank)  # “Backends that do not support reconfigure ignore this flag.”
        error, _ = error_of(dist._get_reconfigure_handle)
        raise error or Wrong("supportsReconfigure() is False, but there is a handle")
    everyone = list(range(rank.size))
    errors: list[Exception | None] = []  # raised at the end, because the others wait in share()
    for uuid, ranks in enumerate((everyone, everyone[:-1], everyone)):
        handles = rank.share(dist._get_reconfigure_handle())
        if rank.rank in ranks:
            errors.append(error_of(_reconfigure, rank, uuid, ranks, handles)[0])
    for error in filter(None, errors):
        raise error


def _reconfigure(rank: Rank, uuid: int, ranks: list[int], handles: list[str]) -> None:
    peers = [handles[r] for r in ranks]
    dist._reconfigure(uuid, peers, timeout=timedelta(seconds=20)).wait()
    place = dist.get_rank(), dist.get_world_size()
    require_equal(place, (rank.rank, len(ranks)), f"rank and size in a group of {ranks}")
    total(rank, ranks=ranks, seed=uuid)


@check(
    "debug",
    "The flight recorder has an entry of each call, “completed” if the backend has such hooks.",
    f"torch/csrc/distributed/c10d/hooks/FlightRecorderHook.hpp:6-31; {HOOKS}:95-107",
)
def flight_recorder(rank: Rank) -> None:
    rank.operation = "flight recorder"
    if not hasattr(_backend(rank), "supports_completion_hooks"):
        raise _lacks("completion hooks")
    group = rank.new_group()
    with _destroyed(rank, group):
        _require_entries(rank, group)


def _require_entries(rank: Rank, group: Any) -> None:
    reports_ends = _backend(rank, group).supports_completion_hooks
    wait_all(
        [
            dist.all_reduce(rank.full(3, 1.0), group=group, async_op=True),
            dist.all_reduce(rank.full(4, 1.0), group=group, async_op=True),
            dist.broadcast(rank.full(7, 1.0), 0, group=group, async_op=True),
        ]
    )
    rank.synchronize()
    entries = _entries(rank, group)
    if not entries and group not in dist.distributed_c10d._world.pg_flight_recorder_hooks:
        raise NotImplementedError("PyTorch's flight recorder does not record this backend")
    names = [entry["profiling_name"].rpartition(":")[2] for entry in entries]
    require_equal(names, ["all_reduce", "all_reduce", "broadcast"], "the entries of 3 calls")
    require_equal([x["input_sizes"] for x in entries], [[[3]], [[4]], [[7]]], "the sizes in them")
    deadline = time.monotonic() + 4  # a watchdog may learn of the ends later
    while not all(
        x["retired"] and (x["state"] == "completed" or not reports_ends) for x in entries
    ):
        states = [(x["state"], x["retired"]) for x in entries]
        require(time.monotonic() < deadline, f"4 s after wait(), state and retired are {states}")
        time.sleep(0.01)
        entries = _entries(rank, group)


def _entries(rank: Rank, group: Any) -> list[dict[str, Any]]:
    """Return the entries of a group, in the order of its calls."""
    trace = json.loads(c10d._dump_fr_trace_json(True, False, rank.backend.lower()))
    return [
        entry for entry in trace.get("entries", []) if entry["process_group"][0] == group.group_name
    ]

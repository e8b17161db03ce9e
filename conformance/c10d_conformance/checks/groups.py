"""Groups of some of the ranks: members, roots, many at once, and made again."""

import time
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp
from torch.distributed.device_mesh import init_device_mesh

from c10d_conformance.inputs import compare
from c10d_conformance.operations import (
    OPERATIONS,
    REDUCING,
    ROOTED,
    Setting,
    in_threads,
    perform,
    total,
    wait_all,
)
from c10d_conformance.rank import Rank, error_of, require, require_equal
from c10d_conformance.registry import check
from c10d_conformance.verdicts import ABSENT

NEW = "torch.distributed.new_group"


@check(
    "sub_groups",
    "Every collective works in a group of some ranks, which keeps to itself.",
    NEW,
    minimum=3,
    cases=True,
)
def every_operation(rank: Rank) -> None:
    subsets = [[1, 2], list(range(rank.size - 1, 0, -1))[:2], [rank.size - 1, 0]]
    subsets.append(list(range(1, rank.size)))
    for ranks in [list(x) for x in dict.fromkeys(tuple(sorted(y)) for y in subsets)]:
        group = rank.new_group(ranks)
        for operation in OPERATIONS:
            rank.operation = operation
            roots = range(len(ranks)) if operation in ROOTED else [0]
            cases = [(root, ReduceOp.SUM) for root in roots]
            if operation in REDUCING:
                cases.append((0, ReduceOp.AVG))
            for root, op in cases:
                setting = Setting(
                    operation,
                    op=op,
                    ranks=tuple(ranks),
                    group=group,
                    root=root,
                    me=ranks.index(rank.rank) if rank.rank in ranks else -1,
                    device=rank.device,
                    seed=root,
                )
                rank.case(str(setting), _member, setting)


def _member(setting: Setting) -> str | None:
    if setting.me < 0:
        return ABSENT
    perform(setting)
    return None


@check(
    "sub_groups",
    "A group has the ranks that it was made of, numbered in their order.",
    f"{NEW}, torch.distributed.get_group_rank",
    quick=True,
)
def members(rank: Rank) -> None:
    ranks = list(range(rank.size))[-2:]
    group = rank.new_group(ranks)
    if rank.rank in ranks:
        require_equal(dist.get_rank(group), ranks.index(rank.rank), "get_rank")
        require_equal(dist.get_world_size(group), len(ranks), "get_world_size")
        require_equal(dist.get_process_group_ranks(group), ranks, "get_process_group_ranks")
        require_equal(group.rank(), ranks.index(rank.rank), "group.rank()")
        require_equal(group.size(), len(ranks), "group.size()")
        total(rank, group, ranks)
    else:
        require_equal(dist.get_rank(group), -1, "get_rank of a rank that is no member")
    total(rank)
    _members_meet(rank, group, ranks)


def _members_meet(rank: Rank, group: Any, ranks: list[int]) -> None:
    """A barrier waits for the ranks of its group and, which would be a hang, for no others."""
    late, began, returned = rank.rank == ranks[-1], 0.0, 0.0
    if rank.rank in ranks:
        time.sleep(0.1 * late)
        began = time.monotonic()  # all processes of a host have one clock
        dist.barrier(group=group)
        returned = time.monotonic()
    last = float(rank.share(str(began))[ranks[-1]])
    if rank.rank in ranks:
        dist.destroy_process_group(group)
        require(returned >= last, f"the barrier of {ranks} returned before rank {ranks[-1]} came")


@check("sub_groups", "A group of one rank computes alone.", NEW, cases=True)
def alone(rank: Rank) -> None:
    groups = [rank.new_group([r]) for r in range(rank.size)]
    mine = groups[rank.rank]
    rank.operation = "barrier"
    rank.case("barrier in a group of one", dist.barrier, mine)
    for operation in OPERATIONS:
        rank.operation = operation
        setting = Setting(operation, ranks=(rank.rank,), group=mine, device=rank.device)
        rank.case(f"{operation} in a group of one", perform, setting)
    rank.meet()
    dist.destroy_process_group(mine)


@check(
    "sub_groups",
    "Roots are given as global ranks, or as ranks of the group.",
    "torch.distributed.broadcast (src, group_src)",
    minimum=3,
)
def roots_in_a_group(rank: Rank) -> str | None:
    ranks = list(range(1, rank.size))
    group = rank.new_group(ranks)
    if rank.rank not in ranks:
        return ABSENT
    for index, root in enumerate(ranks):
        options: list[dict[str, Any]] = [{"src": root}, {"group_src": index}]
        for option in options:
            tensor = rank.full(20, float(rank.rank))
            dist.broadcast(tensor, group=group, **option)
            compare(tensor, torch.full((20,), float(root)), f"broadcast with {option}")
        options = [{"dst": root}, {"group_dst": index}]
        for option in options:
            tensor = rank.full(20, 1.0)
            dist.reduce(tensor, group=group, **option)
            if rank.rank == root:
                compare(tensor, torch.full((20,), float(len(ranks))), f"reduce with {option}")
    dist.destroy_process_group(group)
    return None


@check(
    "sub_groups",
    "Groups can be destroyed and made again of the same ranks.",
    "torch.distributed.destroy_process_group",
    quick=True,
    cases=lambda rank: [(f"group {number} of the same ranks", number) for number in range(4)],
)
def made_again(rank: Rank, number: int) -> None:
    group = rank.new_group()
    total(rank, group, seed=number)
    rank.meet()
    dist.destroy_process_group(group)
    total(rank, seed=number + 10)


@check("sub_groups", "Twenty groups exist at the same time, each with its own messages.", NEW)
def many(rank: Rank) -> None:
    groups = [rank.new_group() for _ in range(20)]
    tensors = [rank.full(200, float(number)) for number in range(20)]
    works = [
        dist.all_reduce(t, group=g, async_op=True) for t, g in zip(tensors, groups, strict=True)
    ]
    wait_all(reversed(works))
    for number, tensor in enumerate(tensors):
        compare(tensor, torch.full((200,), float(number * rank.size)), f"group {number}")
    rank.meet()
    for group in groups:
        dist.destroy_process_group(group)


@check(
    "sub_groups",
    "The default group and others go on after one group has been destroyed.",
    "torch.distributed.destroy_process_group",
)
def one_destroyed(rank: Rank) -> None:
    first, second = rank.new_group(), rank.new_group()
    total(rank, first, seed=1)
    rank.meet()
    dist.destroy_process_group(first)
    total(rank, second, seed=2)
    total(rank, seed=3)
    rank.meet()
    dist.destroy_process_group(second)


@check(
    "concurrent",
    "Collectives of overlapping groups run at the same time.",
    NEW,
    minimum=3,
    cases=lambda rank: [
        (f"overlapping groups, {mode}", mode) for mode in ("in one order", "in another order")
    ],
)
def overlapping(rank: Rank, mode: str) -> None:
    """The ranks call in different orders, which is right: these groups are independent."""
    subsets = [[0, 1], [1, 2], [0, 2], list(range(rank.size))]
    groups = [rank.new_group(subset) for subset in subsets]
    mine = [n for n, subset in enumerate(subsets) if rank.rank in subset]
    if mode != "in one order" and rank.rank % 2:
        mine.reverse()
    works = []
    for number in mine:
        tensor = rank.full(3000, float(10 * rank.rank + number))
        works.append((number, tensor, dist.all_reduce(tensor, group=groups[number], async_op=True)))
    for number, tensor, work in works:
        work.wait()
        expected = float(sum(10 * r + number for r in subsets[number]))
        compare(tensor, torch.full((3000,), expected), f"the sum of ranks {subsets[number]}")
    rank.meet()
    for number in sorted(mine):
        dist.destroy_process_group(groups[number])


@check(
    "concurrent",
    "Two halves of the ranks work at the same time without each other.",
    NEW,
    minimum=4,
)
def halves(rank: Rank) -> None:
    subsets = [list(range(0, rank.size, 2)), list(range(1, rank.size, 2))]
    groups = [rank.new_group(subset) for subset in subsets]
    mine = rank.rank % 2
    for number in range(10 + 5 * mine):
        total(rank, groups[mine], subsets[mine], count=50 * number + 1, seed=number)
    dist.destroy_process_group(groups[mine])


@check(
    "concurrent",
    "Each thread uses a group of its own, all at the same time.",
    "torch.distributed",
    quick=True,
)
def threads(rank: Rank) -> None:
    groups = [rank.new_group() for _ in range(3)]

    def work(index):
        # In one stream, the calls of all threads would have one order, and another on each rank.
        with rank.own_stream():
            for number in range(15):
                total(rank, groups[index], count=200 * index + 1, seed=number)
                dist.barrier(group=groups[index])

    in_threads(rank, *(partial(work, index) for index in range(3)))
    rank.meet()
    for group in groups:
        dist.destroy_process_group(group)


@check(
    "sub_groups",
    "new_subgroups divides the ranks into groups of one size.",
    "torch.distributed.new_subgroups",
    minimum=4,
)
def new_subgroups(rank: Rank) -> str | None:
    mine, groups = dist.new_subgroups(group_size=2)
    require_equal(len(groups), rank.size // 2, "the number of groups")
    if rank.rank >= rank.size // 2 * 2:
        return ABSENT
    first = rank.rank // 2 * 2
    total(rank, mine, [first, first + 1])
    dist.destroy_process_group(mine)
    return None


@check(
    "sub_groups",
    "A device mesh makes groups of its rows and columns.",
    "torch.distributed.device_mesh.init_device_mesh",
    minimum=4,
)
def device_mesh(rank: Rank) -> str | None:
    if rank.size % 2:
        return ABSENT
    shape = (2, rank.size // 2)
    mesh = init_device_mesh(rank.device.type, shape, mesh_dim_names=("row", "column"))
    places = torch.arange(rank.size).reshape(shape)
    row, column = divmod(rank.rank, shape[1])
    total(rank, mesh.get_group("column"), places[row].tolist())
    total(rank, mesh.get_group("row"), places[:, column].tolist())
    return None


def _init_bound(rank: Rank) -> None:
    """Initialize the default group and bind it to the device, as programs for accelerators do."""
    try:
        rank.init(device_id=torch.device(rank.device.type, rank.device.index or 0))
    except ValueError as error:
        raise NotImplementedError(f"this release does not support it: {error}") from None


@check(
    "sub_groups",
    "A group of some ranks can be made of a group that is bound to a device.",
    f"{NEW}; torch.distributed.init_process_group (device_id)",
    group=False,
)
def on_a_bound_device(rank: Rank) -> None:
    rank.operation = "device_id"
    _init_bound(rank)
    ranks = list(range(rank.size))[1:]
    group = rank.new_group(ranks)
    if rank.rank in ranks:
        total(rank, group, ranks)


@check(
    "sub_groups",
    "A device mesh makes groups of its rows and columns of a group that is bound to a device.",
    "torch.distributed.device_mesh.init_device_mesh; init_process_group (device_id)",
    minimum=4,
    group=False,
)
def mesh_on_a_bound_device(rank: Rank) -> str | None:
    rank.operation = "device_id"
    _init_bound(rank)
    return device_mesh(rank)


def _across(rank: Rank, ranks: list[int], place: str) -> Any:
    """Return a group of ranks that have different default groups; no public function makes one."""
    store = dist.FileStore(f"{place}{ranks}", len(ranks))
    module: Any = dist.distributed_c10d
    group, _ = module._new_process_group_helper(
        len(ranks),
        ranks.index(rank.rank),
        [],
        dist.Backend(rank.backend),
        store,
        group_name="across",
        timeout=timedelta(seconds=20),
    )
    module._world.pg_group_ranks[group] = {number: number for number in range(len(ranks))}
    return group


@check(
    "sub_groups",
    "Two programs, each with its own default group, can have groups across them.",
    "torch/distributed/distributed_c10d.py::_new_process_group_helper (used so by trainers)",
    group=False,
    ranks=(4,),
    cases=lambda rank: [
        ("a group of all ranks", [[0, 1, 2, 3]]),
        ("pairs with one name", [[0, 2], [1, 3]]),
        ("one pair", [[0, 2]]),
    ],
)
def across_programs(rank: Rank, groups: list[list[int]]) -> str | None:
    """The first two ranks are one program, and the others are another one."""
    own = [0, 1] if rank.rank < 2 else [2, 3]
    place = f"{rank.folder}/{len(groups)}-{len(groups[0])}-"
    rank.init(rank=own.index(rank.rank), world_size=2, store=dist.FileStore(f"{place}{own}", 2))
    total(rank, ranks=own)
    ranks = next((ranks for ranks in groups if rank.rank in ranks), None)
    error = None
    if ranks:
        error, _ = error_of(lambda: total(rank, _across(rank, ranks, place), ranks))
    rank.meet()
    broken, _ = error_of(total, rank, ranks=own)
    rank.meet()
    dist.destroy_process_group()
    require(broken is None, f"the default group fails afterwards: {broken}")
    if error:
        raise error
    return None if ranks else ABSENT


@check(
    "sub_groups",
    "split_group divides a group, where a backend can.",
    "torch.distributed.split_group",
    minimum=4,
)
def split(rank: Rank) -> None:
    rank.operation = "split"
    ranks = list(range(rank.size))
    halves = [ranks[: rank.size // 2], ranks[rank.size // 2 :]]
    mine = dist.split_group(split_ranks=halves, timeout=timedelta(seconds=30))
    total(rank, mine, next(half for half in halves if rank.rank in half))
    total(rank)


@check(
    "sub_groups",
    "A group that is made with another timeout has the same results.",
    f"{NEW} (timeout)",
)
def with_a_timeout(rank: Rank) -> None:
    group = rank.new_group(timeout=timedelta(seconds=30), group_desc="conformance")
    total(rank, group)
    require(group.group_desc == "conformance", f"group_desc is {group.group_desc!r}")
    rank.meet()
    dist.destroy_process_group(group)

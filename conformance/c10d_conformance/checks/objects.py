"""Collectives of Python objects, which are built on those of tensors."""

from typing import Any

import torch.distributed as dist

from c10d_conformance.rank import Rank, require_equal
from c10d_conformance.registry import check
from c10d_conformance.verdicts import ABSENT


def thing(rank: int) -> dict[str, Any]:
    """Return an object whose pickle has a different size on each rank."""
    return {"rank": rank, "text": "x" * (rank * 3001), "list": list(range(rank))}


@check(
    "objects",
    "all_gather_object gives every rank the objects of all ranks.",
    "torch.distributed.all_gather_object",
    minimum=1,
    quick=True,
)
def all_gather_object(rank: Rank) -> None:
    objects: list[Any] = [None] * rank.size
    dist.all_gather_object(objects, thing(rank.rank))
    require_equal(objects, [thing(r) for r in range(rank.size)], "the objects")


@check(
    "objects",
    "broadcast_object_list gives every rank the objects of the source rank.",
    "torch.distributed.broadcast_object_list",
    cases=lambda rank: [(f"broadcast_object_list from {root}", root) for root in range(rank.size)],
)
def broadcast_object_list(rank: Rank, root: int) -> None:
    content = [thing(root), None, "äöü", 3]
    objects: list[Any] = list(content) if rank.rank == root else [None] * 4
    dist.broadcast_object_list(objects, root, device=rank.device)
    require_equal(objects, content, "the objects")


@check(
    "objects",
    "gather_object gives the destination rank the objects of all ranks.",
    "torch.distributed.gather_object",
    cases=lambda rank: [(f"gather_object to {root}", root) for root in range(rank.size)],
)
def gather_object(rank: Rank, root: int) -> None:
    objects: list[Any] | None = [None] * rank.size if rank.rank == root else None
    dist.gather_object(thing(rank.rank), objects, root)
    if rank.rank == root:
        require_equal(objects, [thing(r) for r in range(rank.size)], "the objects")


@check(
    "objects",
    "scatter_object_list gives each rank its object from the source rank.",
    "torch.distributed.scatter_object_list",
    cases=lambda rank: [(f"scatter_object_list from {root}", root) for root in range(rank.size)],
)
def scatter_object_list(rank: Rank, root: int) -> None:
    content = [thing(r) for r in range(rank.size)] if rank.rank == root else None
    output = [None]
    dist.scatter_object_list(output, content, root)
    require_equal(output, [thing(rank.rank)], "the object")


@check(
    "objects",
    "Object collectives work in a sub-group.",
    "torch.distributed.all_gather_object",
    minimum=3,
)
def objects_in_a_sub_group(rank: Rank) -> str | None:
    ranks = list(range(1, rank.size))
    group = rank.new_group(ranks)
    if rank.rank == 0:
        return ABSENT
    objects: list[Any] = [None] * len(ranks)
    dist.all_gather_object(objects, thing(rank.rank), group=group)
    require_equal(objects, [thing(r) for r in ranks], "the objects")
    copies: list[Any] = [thing(rank.size - 1) if rank.rank == rank.size - 1 else None]
    dist.broadcast_object_list(copies, rank.size - 1, group=group, device=rank.device)
    require_equal(copies, [thing(rank.size - 1)], "the object")
    dist.destroy_process_group(group)
    return None

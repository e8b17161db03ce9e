"""Collectives of Python objects, which are built on those of tensors."""

import torch.distributed as dist

from c10d_conformance.rank import equal
from c10d_conformance.registry import check
from c10d_conformance.verdicts import ABSENT


def thing(rank):
    """Return an object whose pickle has a different size on each rank."""
    return {"rank": rank, "text": "x" * (rank * 3001), "list": list(range(rank))}


@check(
    "objects",
    "all_gather_object gives every rank the objects of all ranks.",
    "torch.distributed.all_gather_object",
    minimum=1,
    quick=True,
)
def all_gather_object(rank):
    objects = [None] * rank.size
    dist.all_gather_object(objects, thing(rank.rank))
    equal(objects, [thing(r) for r in range(rank.size)], "the objects")


@check(
    "objects",
    "broadcast_object_list gives every rank the objects of the source rank.",
    "torch.distributed.broadcast_object_list",
    cases=True,
)
def broadcast_object_list(rank):
    for root in range(rank.size):
        rank.case(f"broadcast_object_list from {root}", _broadcast, rank, root)


def _broadcast(rank, root):
    content = [thing(root), None, "äöü", 3]
    objects = list(content) if rank.rank == root else [None] * 4
    dist.broadcast_object_list(objects, root, device=rank.device)
    equal(objects, content, "the objects")


@check(
    "objects",
    "gather_object gives the destination rank the objects of all ranks.",
    "torch.distributed.gather_object",
    cases=True,
)
def gather_object(rank):
    for root in range(rank.size):
        rank.case(f"gather_object to {root}", _gather, rank, root)


def _gather(rank, root):
    objects = [None] * rank.size if rank.rank == root else None
    dist.gather_object(thing(rank.rank), objects, root)
    if rank.rank == root:
        equal(objects, [thing(r) for r in range(rank.size)], "the objects")


@check(
    "objects",
    "scatter_object_list gives each rank its object from the source rank.",
    "torch.distributed.scatter_object_list",
    cases=True,
)
def scatter_object_list(rank):
    for root in range(rank.size):
        rank.case(f"scatter_object_list from {root}", _scatter, rank, root)


def _scatter(rank, root):
    content = [thing(r) for r in range(rank.size)] if rank.rank == root else None
    output = [None]
    dist.scatter_object_list(output, content, root)
    equal(output, [thing(rank.rank)], "the object")


@check(
    "objects",
    "Object collectives work in a sub-group.",
    "torch.distributed.all_gather_object",
    minimum=3,
)
def objects_in_a_sub_group(rank):
    ranks = list(range(1, rank.size))
    group = dist.new_group(ranks)
    if rank.rank == 0:
        return ABSENT
    objects = [None] * len(ranks)
    dist.all_gather_object(objects, thing(rank.rank), group=group)
    equal(objects, [thing(r) for r in ranks], "the objects")
    objects = [thing(rank.size - 1) if rank.rank == rank.size - 1 else None]
    dist.broadcast_object_list(objects, rank.size - 1, group=group, device=rank.device)
    equal(objects, [thing(rank.size - 1)], "the object")
    dist.destroy_process_group(group)
    return None

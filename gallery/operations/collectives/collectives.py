"""Worker: eight collectives, and what each rank holds before and after."""

import torch
import torch.distributed as dist


def broadcast(rank, world_size):
    tensor = torch.tensor([rank])
    yield tensor
    # [broadcast]
    dist.broadcast(tensor, src=2)
    # [/broadcast]
    yield tensor
    assert tensor.tolist() == [2]


def reduce(rank, world_size):
    tensor = torch.tensor([rank])
    yield tensor
    # [reduce]
    dist.reduce(tensor, dst=0, op=dist.ReduceOp.SUM)
    # [/reduce]
    yield tensor if rank == 0 else None  # Undefined on the others.
    assert rank != 0 or tensor.tolist() == [0 + 1 + 2 + 3]


def all_reduce(rank, world_size):
    tensor = torch.tensor([rank])
    yield tensor
    # [all_reduce]
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
    # [/all_reduce]
    yield tensor
    assert tensor.tolist() == [0 + 1 + 2 + 3]


def scatter(rank, world_size):
    pieces = [torch.tensor([10 * i]) for i in range(world_size)] if rank == 0 else None
    yield pieces
    # [scatter]
    piece = torch.empty(1, dtype=torch.int64)
    dist.scatter(piece, pieces, src=0)
    # [/scatter]
    yield piece
    assert piece.tolist() == [10 * rank]


def gather(rank, world_size):
    tensor = torch.tensor([10 * rank])
    yield tensor
    # [gather]
    pieces = [torch.empty_like(tensor) for _ in range(world_size)] if rank == 0 else None
    dist.gather(tensor, pieces, dst=0)
    # [/gather]
    yield pieces
    assert rank != 0 or [piece.item() for piece in pieces] == [0, 10, 20, 30]


def all_gather(rank, world_size):
    tensor = torch.tensor([10 * rank])
    yield tensor
    # [all_gather]
    pieces = [torch.empty_like(tensor) for _ in range(world_size)]
    dist.all_gather(pieces, tensor)
    # [/all_gather]
    yield pieces
    assert [piece.item() for piece in pieces] == [0, 10, 20, 30]


def reduce_scatter(rank, world_size):
    pieces = [torch.tensor([10 * rank + i]) for i in range(world_size)]
    yield pieces
    # [reduce_scatter]
    piece = torch.empty(1, dtype=torch.int64)
    dist.reduce_scatter(piece, pieces, op=dist.ReduceOp.SUM)
    # [/reduce_scatter]
    yield piece
    assert piece.tolist() == [sum(10 * other + rank for other in range(world_size))]


def all_to_all(rank, world_size):
    sent = torch.tensor([10 * rank + i for i in range(world_size)])
    yield sent
    # [all_to_all]
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    # [/all_to_all]
    yield received
    assert received.tolist() == [10 * other + rank for other in range(world_size)]


def show(rank, world_size, collective):
    """Let rank 0 print what every rank held before and after ``collective``."""
    held = [values(held) for held in collective(rank, world_size)]
    everyones = [None] * world_size
    dist.all_gather_object(everyones, held)
    if rank == 0:
        print(f"--- {collective.__name__}")
        for other, (before, after) in enumerate(everyones):
            print(f"rank {other}  before {before:18}  after {after}")


def values(held):
    """Return the numbers in a tensor or in a list of tensors, as text."""
    if held is None:
        return "-"
    return str(held.tolist() if torch.is_tensor(held) else [x.item() for x in held])


dist.init_process_group("gloo")
for collective in [broadcast, reduce, all_reduce, scatter, gather, all_gather]:
    show(dist.get_rank(), dist.get_world_size(), collective)
for collective in [reduce_scatter, all_to_all]:
    show(dist.get_rank(), dist.get_world_size(), collective)
dist.destroy_process_group()

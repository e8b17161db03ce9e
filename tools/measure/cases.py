"""The cases: what the ranks of each backend do, again and again, while it is measured."""

import math
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from .summary import BACKENDS, KIB, MIB, NETWORKS

ELEMENT = 4  # bytes of a float32
LAYERS, SAMPLES = 4, 32
SMALL = (4, KIB, 8 * KIB, 64 * KIB)


def all_reduce(group, size):
    # Sums of zeros stay zeros, however often they are added.
    return partial(dist.all_reduce, torch.zeros(size // ELEMENT), group=group)


def all_reduce_future(group, size):
    call = all_reduce(group, size)
    return lambda: call(async_op=True).get_future().wait()


def all_gather(group, size):
    mine = torch.zeros(size // ELEMENT)
    return partial(dist.all_gather_single, mine.repeat(group.size()), mine, group=group)


def reduce_scatter(group, size):
    whole, piece = _whole_and_piece(group, size)
    return partial(dist.reduce_scatter_single, piece, whole, group=group)


def all_to_all(group, size):
    whole, _ = _whole_and_piece(group, size)
    return partial(dist.all_to_all_single, torch.zeros_like(whole), whole, group=group)


def broadcast(group, size):
    return partial(dist.broadcast, torch.zeros(size // ELEMENT), group=group, group_src=0)


def answer(group, size):
    """Return a call that ends when all ranks have come to it, in the default group."""
    return dist.barrier


def answered_broadcast(group, size):
    """Return a call that ends when all ranks have the tensor, for which the root does not wait."""
    call, wait = broadcast(group, size), answer(group, size)
    return lambda: (call(), wait())


def reduce(group, size):
    return partial(dist.reduce, torch.zeros(size // ELEMENT), group=group, group_dst=0)


def gather(group, size):
    mine = torch.zeros(size // ELEMENT)
    outputs = [torch.zeros_like(mine) for _ in range(group.size())] if group.rank() == 0 else None
    return partial(dist.gather, mine, outputs, group=group, group_dst=0)


def scatter(group, size):
    whole, piece = _whole_and_piece(group, size)
    inputs = list(whole.chunk(group.size())) if group.rank() == 0 else None
    return partial(dist.scatter, piece, inputs, group=group, group_src=0)


def barrier(group, size):
    return partial(dist.barrier, group=group)


def ping_pong(group, size):
    """Return a call that sends to a neighbour and back; with four ranks, two pairs do so."""
    tensor, peer = torch.zeros(size // ELEMENT), group.rank() ^ 1
    send = partial(dist.send, tensor, group=group, group_dst=peer)
    receive = partial(dist.recv, tensor, group=group, group_src=peer)
    turns = (send, receive) if group.rank() < peer else (receive, send)
    return lambda: [turn() for turn in turns]


def ddp_step(group, parameters):
    model = _model(parameters)
    # DDP needs the tensors of futures, and those of the fake backend have none. The floor of
    # its step is the model alone.
    if dist.get_backend(group) != "fake":
        model = DistributedDataParallel(model, process_group=group)
    return _training_step(model)


def fsdp2_step(group, parameters):
    model = _model(parameters)
    mesh = DeviceMesh.from_group(group, "cpu")
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return _training_step(fully_shard(model, mesh=mesh))


def _whole_and_piece(group, size):
    """Return a tensor of `size` bytes, at least an element for each rank, and a rank's share."""
    share = max(size // ELEMENT // group.size(), 1)
    return torch.zeros(share * group.size()), torch.zeros(share)


def _model(parameters):
    width = math.isqrt(parameters // LAYERS)
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(LAYERS)))


def _training_step(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    width = next(model.parameters()).shape[-1]
    inputs = torch.randn(SAMPLES, width)

    def step():
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    return step


OPERATIONS = {
    "all_reduce": all_reduce,
    "all_reduce, future": all_reduce_future,
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "all_to_all": all_to_all,
    "broadcast": broadcast,
    "broadcast and answer": answered_broadcast,
    "answer": answer,
    "reduce": reduce,
    "gather": gather,
    "scatter": scatter,
    "barrier": barrier,
    "send and recv": ping_pong,
    "step of DDP": ddp_step,
    "step of FSDP2": fsdp2_step,
}


@dataclass(frozen=True)
class Case:
    """An operation and its size: the bytes of a rank's input, or the parameters of a model."""

    operation: str
    size: int
    unit: str = "bytes"

    def call(self, group):
        """Return a function without arguments that a rank of the group calls to do it once."""
        return OPERATIONS[self.operation](group, self.size)


def all_cases():
    """Return all cases, in the order of the table."""
    few = (4, 64 * KIB, 16 * MIB)
    cases = [Case("all_reduce", size) for size in (*SMALL, MIB, 16 * MIB, 64 * MIB)]
    cases += [Case("all_reduce, future", size) for size in few]
    others = ["all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather"]
    for name in [*others, "scatter"]:
        cases += [Case(name, size) for size in few]
    cases.append(Case("barrier", 0))
    cases += [Case("send and recv", size) for size in (4, 64 * KIB, 4 * MIB)]
    for name in ("step of DDP", "step of FSDP2"):
        cases += [Case(name, size, "parameters") for size in (1_000_000, 4_000_000)]
    return cases


@dataclass(frozen=True)
class Setup:
    """What some ranks measure together.

    torchrun starts each rank in a session of its own. One session matters if the ranks share
    the cores, for the time in which they wait for each other.
    """

    ranks: int
    cases: list[Case]
    backends: tuple[str, ...] = BACKENDS
    sessions: int = 0  # by default, one for each rank
    network: str = ""  # one of NETWORKS, if the table compares them

    def place(self):
        """Return the columns that tell setups with the same number of ranks apart."""
        if self.network:
            return {"network": self.network}
        return {"sessions": self.sessions or self.ranks}


def of_shared_memory():
    """Return the setups that compare shm with gloo."""
    cases = all_cases()
    waiting = [case for case in cases if case.operation in ("all_reduce", "barrier")]
    return [Setup(2, cases), Setup(4, cases), Setup(4, waiting, sessions=1)]


def of_a_library():
    """Return the setups that compare mpich with gloo, and with shm where it reaches all ranks."""
    cases = [Case("all_reduce", size) for size in (*SMALL, MIB, 16 * MIB)]
    cases += [Case("send and recv", size) for size in (4, 64 * KIB, 4 * MIB)]
    cases.append(Case("barrier", 0))
    return [
        Setup(ranks, cases, backends, network=network)
        for network, backends in NETWORKS.items()
        for ranks in (2, 4)
    ]

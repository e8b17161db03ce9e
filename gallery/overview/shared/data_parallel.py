"""Worker: train with DistributedDataParallel, and compare with one process."""

import torch
import torch.distributed as dist
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

STEPS = 20


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def make_batch():
    torch.manual_seed(1)
    inputs = torch.rand(16, 4)
    return inputs, inputs.sum(dim=1, keepdim=True)


# [train]
def train(model, inputs, targets, precision=torch.float32):
    """Return the loss of each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", precision, enabled=precision != torch.float32):
            outputs = model(inputs)
        assert outputs.dtype == precision
        loss = nn.functional.mse_loss(outputs.float(), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
# [/train]


def flatten(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def compare(rank, world_size):
    # [ddp]
    inputs, targets = make_batch()
    model = DistributedDataParallel(make_model())
    own = slice(rank, None, world_size)  # Each rank takes other rows.
    losses = train(model, inputs[own], targets[own])
    print(f"loss of this rank's half: {losses[0]:.4f}, later {losses[-1]:.4f}")
    assert losses[-1] < losses[0] / 10
    # [/ddp]

    # [constructor]
    unlike = make_model()
    with torch.no_grad():
        for parameter in unlike.parameters():
            parameter += rank  # Each rank begins with other values.
    with CommDebugMode() as counter:
        replica = DistributedDataParallel(unlike)
    counts = counter.get_comm_counts().items()
    calls = [f"{n} {str(call).split('.')[-1].strip('_')}" for call, n in counts]
    print("constructor:", ", ".join(calls))
    assert torch.equal(flatten(replica), flatten(make_model()))
    # [/constructor]

    # [compare]
    mine = flatten(model)
    everyones = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(everyones, mine)
    print("all replicas are equal:", all(torch.equal(mine, other) for other in everyones))

    alone = make_model()
    train(alone, inputs, targets)
    difference = (mine - flatten(alone)).abs().max().item()
    print("same as one process on the joined batch:", difference < 1e-6)
    # [/compare]
    assert all(torch.equal(mine, other) for other in everyones)
    assert difference < 1e-6

    # [autocast]
    mixed = DistributedDataParallel(make_model())
    losses = train(mixed, inputs[own], targets[own], torch.bfloat16)
    print(f"with bfloat16: {losses[0]:.1f}, later {losses[-1]:.1f}")
    print("parameters:", flatten(mixed).dtype)
    # [/autocast]
    assert losses[-1] < losses[0] / 10
    assert {p.grad.dtype for p in mixed.parameters()} == {torch.float32}


if __name__ == "__main__":
    dist.init_process_group("gloo")
    compare(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()

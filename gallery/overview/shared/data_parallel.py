"""Worker: train with DistributedDataParallel, and compare with one process."""

import torch
import torch.distributed as dist
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

STEPS = 20


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def make_batch():
    torch.manual_seed(1)
    inputs = torch.rand(16, 4)
    return inputs, inputs.sum(dim=1, keepdim=True)


# [train]
def train(model, inputs, targets):
    """Return the loss of each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
# [/train]


def flatten(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def compare(world_size):
    # [ddp]
    inputs, targets = make_batch()
    data = TensorDataset(inputs, targets)
    sampler = DistributedSampler(data, shuffle=False)  # Each rank gets different rows.
    [own_batch] = DataLoader(data, batch_size=8, sampler=sampler)

    model = DistributedDataParallel(make_model())
    losses = train(model, *own_batch)
    print(f"loss of this rank's half: {losses[0]:.4f}, later {losses[-1]:.4f}")
    # [/ddp]
    assert losses[-1] < losses[0] / 10

    mine = flatten(model)
    everyones = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(everyones, mine)
    print("all replicas are equal:", all(torch.equal(mine, other) for other in everyones))

    alone = make_model()
    train(alone, inputs, targets)
    difference = (mine - flatten(alone)).abs().max().item()
    print("same as one process on the joined batch:", difference < 1e-6)
    assert all(torch.equal(mine, other) for other in everyones)
    assert difference < 1e-6


if __name__ == "__main__":
    dist.init_process_group("gloo")
    compare(dist.get_world_size())
    dist.destroy_process_group()

"""Worker: train with DDP, and continue from the last checkpoint."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 8
CHECKPOINT = Path(os.environ["SHARED_FOLDER"]) / "checkpoint.pt"


def make_model():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)


def make_batch(step):
    inputs = torch.rand(8, 4, generator=torch.Generator().manual_seed(step))
    return inputs, inputs.sum(dim=1, keepdim=True)


# [part]
def train(model, optimizer, step, rank, world_size):
    inputs, targets = make_batch(step)
    own = slice(rank, None, world_size)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs[own]), targets[own]).backward()
    optimizer.step()
# [/part]


def evaluate(model):
    inputs, targets = make_batch(STEPS)
    with torch.no_grad():
        return nn.functional.mse_loss(model(inputs), targets).item()


# [checkpoint]
def save(step, model, optimizer):
    unfinished = CHECKPOINT.with_suffix(".unfinished")
    states = model.state_dict(), optimizer.state_dict()
    torch.save((step, *states), unfinished)
    os.replace(unfinished, CHECKPOINT)  # Replaces all of it, or nothing.


def load(model, optimizer):
    """Return the step to begin with."""
    if not CHECKPOINT.exists():
        return 0
    step, model_state, optimizer_state = torch.load(CHECKPOINT)
    model.load_state_dict(model_state)
    optimizer.load_state_dict(optimizer_state)
    return step
# [/checkpoint]


# [attempt]
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
# [/attempt]

# [join]
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])

shared = dist.TCPStore(address, port, is_master=False)
store = dist.PrefixStore(f"attempt {attempt}", shared)
dist.init_process_group(
    "gloo", store=store, rank=rank, world_size=world_size
)
# [/join]
# If this fails, each attempt has a new store and needs no prefix any more.
assert shared.add(f"attempts of rank {rank}", 1) == attempt + 1

# [train]
model, optimizer = make_model()
first = load(model, optimizer)
print(f"attempt {attempt}: starts at step {first}", flush=True)

replica = DistributedDataParallel(model)
for step in range(first, STEPS):
    if attempt == 0 and rank == 1 and step == 5:
        print(f"attempt {attempt}: fails before step {step}", flush=True)
        os._exit(1)
    train(replica, optimizer, step, rank, world_size)
    if rank == 0 and step % 2 == 1:
        save(step + 1, model, optimizer)
print(f"attempt {attempt}: loss {evaluate(model):.4f} after step {step}")
# [/train]
del replica  # See several_nodes/several_nodes.py.
dist.destroy_process_group()
assert attempt == 1

# [compare]
alone, optimizer = make_model()
for step in range(STEPS):
    train(alone, optimizer, step, rank=0, world_size=1)
torch.testing.assert_close(model.weight, alone.weight)
print(f"one process, not interrupted: loss {evaluate(alone):.4f}")
# [/compare]
torch.testing.assert_close(model.bias, alone.bias)

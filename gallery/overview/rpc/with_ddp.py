"""Worker: keep a table on a server with RPC, and train the layers after it with DDP."""

import os
import sys
import threading
import warnings

# PyTorch's own code for RPC still uses what it has deprecated.
warnings.filterwarnings("ignore", "You are using a Backend", UserWarning)

import torch
import torch.distributed as dist
import torch.distributed.autograd as dist_autograd
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.distributed import rpc
from torch.nn.parallel import DistributedDataParallel

NAMES = ("server", "trainer-0", "trainer-1")
STEPS, RATE = 60, 0.2


class Table:
    def __init__(self):
        torch.manual_seed(0)
        self.rows = nn.Embedding(8, 3)
        self.lock = threading.Lock()

    def look_up(self, numbers):
        with self.lock:
            return self.rows(numbers)

    def update(self, context):
        weight = self.rows.weight
        gradient = dist_autograd.get_gradients(context)[weight]
        with self.lock, torch.no_grad():
            weight -= RATE * gradient


table = Table()


def find_table():
    return table


def make_layer():
    torch.manual_seed(1)
    return nn.Linear(3, 1)


def examples(trainer):
    """Numbers of the rows that a trainer uses, and its targets."""
    numbers = 4 * trainer + torch.arange(4)
    return numbers, numbers.sin().unsqueeze(1)


# [groups]
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo")
trainers = dist.new_group([1, 2])
rpc.init_rpc(NAMES[rank], rank=rank, world_size=world_size)
# [/groups]
if rank == 0:
    rpc.shutdown()
    dist.destroy_process_group()
    sys.exit()

# [train]
server = rpc.remote("server", find_table)
layer = make_layer()
replica = DistributedDataParallel(layer, process_group=trainers)
numbers, targets = examples(dist.get_rank(trainers))

for step in range(STEPS):
    with dist_autograd.context() as context:
        outputs = replica(server.rpc_sync().look_up(numbers))
        loss = nn.functional.mse_loss(outputs, targets)
        dist_autograd.backward(context, [loss])

        server.rpc_sync().update(context)
        gradients = dist_autograd.get_gradients(context)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter -= RATE * gradients[parameter]
    if step in (0, STEPS - 1):
        print(f"step {step}: loss {loss.item():.4f}")
# [/train]
other = gradients[layer.weight].clone()
dist.broadcast(other, src=1, group=trainers)
assert torch.equal(other, gradients[layer.weight]), "DDP did not average"

dist.barrier(group=trainers)  # Both trainers have made their last update.
rows = server.rpc_sync().look_up(torch.arange(8))

alone, layer_alone = Table().rows, make_layer()
optimizer = torch.optim.SGD(
    [
        {"params": layer_alone.parameters(), "lr": RATE},
        {"params": alone.parameters(), "lr": 2 * RATE},
    ]
)
numbers, targets = (torch.cat(x) for x in zip(examples(0), examples(1)))
for step in range(STEPS):
    optimizer.zero_grad()
    nn.functional.mse_loss(layer_alone(alone(numbers)), targets).backward()
    optimizer.step()

print("same layer as one process:", torch.allclose(layer.weight, layer_alone.weight))
print("same table as one process:", torch.allclose(rows, alone.weight, atol=1e-6))
torch.testing.assert_close(layer.weight, layer_alone.weight)
torch.testing.assert_close(layer.bias, layer_alone.bias)
torch.testing.assert_close(rows, alone.weight)

rpc.shutdown()
del replica  # See several_nodes/several_nodes.py.
dist.destroy_process_group()

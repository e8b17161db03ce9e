"""Worker: call functions on other ranks, refer to objects there, and train across ranks."""

import os
import sys
import threading
import warnings
import weakref

# PyTorch's own code for RPC and for optimizers still uses what it has deprecated.
warnings.filterwarnings("ignore", "You are using a Backend", UserWarning)
warnings.filterwarnings("ignore", "`torch.jit.* is deprecated", DeprecationWarning)

import torch
import torch.distributed.autograd as dist_autograd
from torch import nn
from torch.distributed import rpc
from torch.distributed.optim import DistributedOptimizer


# [name]
def name_of_rank():
    return rpc.get_worker_info().name
# [/name]


# [table]
class Table:
    def __init__(self):
        tables.add(self)
        weakref.finalize(self, a_table_is_gone.set)

    def place(self):
        return rpc.get_worker_info().name


tables = weakref.WeakSet()  # Contains every table, and keeps none of them alive.
a_table_is_gone = threading.Event()
kept = []


def count_tables():
    return len(list(tables))


def wait_for_end_of_table():
    return a_table_is_gone.wait(timeout=30)


def keep(rref):
    kept.append(rref)


def forget():
    kept.clear()
# [/table]


# [gradients]
def gradients_of(layer, context):
    gradients = dist_autograd.get_gradients(context)
    parameters = list(layer.local_value().parameters())
    assert all(p.grad is None for p in parameters)
    return [gradients[p] for p in parameters]
# [/gradients]


# [parameters]
def parameters_of(layer):
    return [rpc.RRef(p) for p in layer.local_value().parameters()]
# [/parameters]


torch.manual_seed(0)
assert list(rpc.BackendType.__members__) == ["TENSORPIPE"]

# [start]
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
name = ["driver", "left", "right"][rank]
rpc.init_rpc(name, rank=rank, world_size=world_size)

if name != "driver":
    rpc.shutdown()  # Serves calls until all ranks have called shutdown.
    sys.exit()
# [/start]

assert not torch.distributed.is_initialized()

# [call]
total = rpc.rpc_sync("left", torch.add, args=(torch.ones(2), 1))
futures = [rpc.rpc_async(to, name_of_rank) for to in ("left", "right")]
names = [future.wait() for future in futures]
# [/call]
print("rpc_sync gave", total.tolist())
print("rpc_async gave", names)
assert total.tolist() == [2.0, 2.0] and names == ["left", "right"]

# [lifetime]
table = rpc.remote("left", Table)
assert table.rpc_sync().place() == "left"
rpc.rpc_sync("right", keep, args=(table,))
both = rpc.rpc_sync("left", count_tables)

del table
only_right = rpc.rpc_sync("left", count_tables)

rpc.rpc_sync("right", forget)
assert rpc.rpc_sync("left", wait_for_end_of_table)
nobody = rpc.rpc_sync("left", count_tables)
# [/lifetime]
print("tables on left, while driver and right refer to one:", both)
print("tables on left, while only right does:", only_right)
print("tables on left, when nobody does:", nobody)
assert (both, only_right, nobody) == (1, 1, 0)

# [model]
left = rpc.remote("left", nn.Linear, args=(3, 8))
right = rpc.remote("right", nn.Linear, args=(8, 1))


def model(inputs):
    hidden = left.rpc_sync().forward(inputs)
    return right.rpc_sync().forward(torch.tanh(hidden))


copy = nn.Sequential(left.to_here(), nn.Tanh(), right.to_here())
# [/model]

inputs = torch.randn(16, 3)
targets = inputs.sum(dim=1, keepdim=True)

# [backward]
with dist_autograd.context() as context:
    loss = nn.functional.mse_loss(model(inputs), targets)
    dist_autograd.backward(context, [loss])
    gradients = []
    for layer in (left, right):
        to = layer.owner()
        gradients += rpc.rpc_sync(to, gradients_of, args=(layer, context))

nn.functional.mse_loss(copy(inputs), targets).backward()
expected = [parameter.grad for parameter in copy.parameters()]
torch.testing.assert_close(gradients, expected)
# [/backward]
print(f"gradient of left's weight: norm {gradients[0].norm():.4f},", end=" ")
print(f"in one process {expected[0].norm():.4f}")
first_loss = loss.item()

# [optimizer]
parameters = []
for layer in (left, right):
    to = layer.owner()
    parameters += rpc.rpc_sync(to, parameters_of, args=(layer,))
optimizer = DistributedOptimizer(torch.optim.SGD, parameters, lr=0.1)

for step in range(20):
    with dist_autograd.context() as context:
        loss = nn.functional.mse_loss(model(inputs), targets)
        dist_autograd.backward(context, [loss])
        optimizer.step(context)
# [/optimizer]

copy.zero_grad()
# [alone]
for step in range(20):
    loss_of_copy = nn.functional.mse_loss(copy(inputs), targets)
    loss_of_copy.backward()
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter -= 0.1 * parameter.grad
    copy.zero_grad()

trained = [parameter.to_here() for parameter in parameters]
torch.testing.assert_close(trained, list(copy.parameters()))
# [/alone]
print(f"loss {first_loss:.4f} -> {loss.item():.4f},", end=" ")
print(f"in one process {loss_of_copy.item():.4f}")
assert loss.item() < first_loss / 4 and len(trained) == 4

rpc.shutdown()

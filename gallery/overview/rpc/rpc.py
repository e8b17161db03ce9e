"""Worker: call functions on other ranks, and refer to objects there."""

import os
import sys
import threading
import warnings
import weakref

# PyTorch's own code for RPC still uses what it has deprecated.
warnings.filterwarnings("ignore", "You are using a Backend", UserWarning)

import torch
from torch.distributed import rpc


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
    return a_table_is_gone.wait()


def keep(rref):
    kept.append(rref)


def forget():
    kept.clear()
# [/table]


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

rpc.shutdown()

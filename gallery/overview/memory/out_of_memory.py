"""Worker: rank 1 lacks memory for one step, and skips it with rank 0 or alone."""

import itertools
import os
import re
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = dist.TCPStore(address, port, is_master=False)
numbers = itertools.count()

# [lengths]
lengths = [8, 8, 8, 8]
if rank == 1:
    lengths[1] = 2**23  # A square matrix of this length needs 256 TiB in float32.


def has_memory_for(length):
    try:
        torch.empty(length, length)
    except RuntimeError as error:  # On a GPU: torch.OutOfMemoryError.
        assert "can't allocate memory" in str(error)
        return False
    return True


def average(step):
    """Print the steps whose gradients an all-reduce would average."""
    steps = [torch.tensor(0) for _ in range(world_size)]
    dist.all_gather(steps, torch.tensor(step))
    print(f"  step {step}: average of steps", *(s.item() for s in steps))
    # [/lengths]
    store.set(f"rank {rank} received {next(numbers)}", "yes")


print("skipped together:")
# [together]
for step, length in enumerate(lengths):
    all_have_memory = torch.tensor(int(has_memory_for(length)))
    dist.all_reduce(all_have_memory, dist.ReduceOp.MIN)
    if all_have_memory:
        average(step)
    else:
        print(f"  step {step}: skipped")
# [/together]

print("skipped alone:")
# [alone]
try:
    for step, length in enumerate(lengths):
        if has_memory_for(length):
            average(step)
        else:
            print(f"  step {step}: skipped")
except RuntimeError as error:
    print(f"  step {step}: RuntimeError")
    # [/alone]
    assert (rank, step) == (0, 3)
    assert re.search("Connection (closed|reset) by peer", str(error)), error
else:
    assert rank == 1
    # Rank 1 ends first, once rank 0 has received all that was sent to it.
    store.wait(["rank 0 received 5"])
sys.stdout.flush()
os._exit(0)

"""Steps of two ranks, of which rank 1 lacks memory for one."""

import itertools
import os

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
    print(f"step {step}: average of steps", *(s.item() for s in steps))
    # [/lengths]
    store.set(f"rank {rank} received {next(numbers)}", "yes")

"""Worker: ask a work that has not ended which rank it waits for, and wait again."""

import json
import re
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)


def rank_1_comes():
    if hasattr(c10d, "_reset_fr_trace"):  # retired, since it has a work, but not ended
        [entry] = json.loads(c10d._dump_fr_trace_json(True, False, "shm"))["entries"]
        assert entry["retired"] and entry["state"] == "scheduled" and not work.is_completed()
    store.set("rank 1 comes", "")


def beginning_of(error):
    """Return the operation and its state, from the first line of the message."""
    return re.sub(".*(all_reduce #1).* has not", r"\1 has not", str(error).splitlines()[0])


tensor = torch.ones(1000)
if rank == 0:
    # [state]
    work = dist.all_reduce(tensor, async_op=True)
    try:
        work.wait(timedelta(seconds=0.5))
    except dist.DistBackendError as error:
        print(beginning_of(error))
    rank_1_comes()
    work.wait()
    print("the second wait() has returned")
    # [/state]
else:
    store.wait(["rank 1 comes"])
    dist.all_reduce(tensor)
dist.destroy_process_group()

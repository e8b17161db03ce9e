"""Worker: write the stack of rank 0 to a file while it waits for rank 1."""

import faulthandler
import re
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)
tensor = torch.ones(1000)

if rank == 0:
    file = tempfile.NamedTemporaryFile("w+")
    store.set("file", file.name)


# [stack]
def train():
    dist.all_reduce(tensor)


if rank == 0:
    faulthandler.dump_traceback_later(0.5, repeat=True, file=file)
    train()
    faulthandler.cancel_dump_traceback_later()
    # [/stack]
    stack = Path(file.name).read_text()
    file.close()
    frames = re.findall(r'/([^/"]+)", line \d+ in (.+)', stack)
    functions = [function for name, function in frames]
    first = functions.index("all_reduce")
    for name, function in frames[first : functions.index("<module>", first) + 1]:
        print(f"    {name}: {function}")
else:
    file = Path(store.get("file").decode())
    while not re.search(r"in all_reduce\n.*in <module>", file.read_text(), re.DOTALL):
        time.sleep(0.05)
    train()
dist.destroy_process_group()

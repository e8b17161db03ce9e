"""Worker: validate on rank 0 alone, with the module and then with DDP, and print both stacks."""

import faulthandler
import os
import re
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
inputs = torch.rand(8, 4, generator=torch.Generator().manual_seed(rank))
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
file = tempfile.NamedTemporaryFile("w+")


def print_stacks():
    """Print the stack of this rank when both ranks hang, and end the process."""
    innermost, seen = ("barrier", "forward")[rank == 0], None
    while not seen:
        time.sleep(0.05)
        text = Path(file.name).read_text()
        seen = re.search(rf".* in {innermost}\n(?:.*\n)*?.* in <module>", text)
    store.set(f"{rank} hangs", "")
    store.wait([f"{other} hangs" for other in range(size)])
    for name, function in re.findall(r'/([^/"]+)", line \d+ in (.+)', seen[0]):
        if name.startswith(("dist", "hang")):
            print(f"    {name}: {function}", flush=True)
    os._exit(0)  # the main thread hangs


# [validate]
def validate(model):
    model.eval()
    with torch.no_grad():
        model(inputs)
    model.train()


def epoch(validated):
    model(inputs).sum().backward()
    if rank == 0:
        validate(validated)
    dist.barrier()


epoch(model.module)
print("with model.module: done")
# [/validate]
watcher = threading.Thread(target=print_stacks)
watcher.start()
with suppress(RuntimeError):  # one rank ends before the other
    # [stack]
    faulthandler.dump_traceback_later(0.5, repeat=True, file=file)
    epoch(model)
    # [/stack]
watcher.join()

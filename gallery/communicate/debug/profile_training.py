"""Worker: profile a step of training, and an all-reduce for which one rank is late."""

import json
import time
from collections import Counter

from training_runs import ddp, fsdp2, pipeline

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)
result = {"events": []}

for feature in [ddp, fsdp2, pipeline]:
    x = feature(dist.group.WORLD)
    x.step(), x.step()
    with profile(activities=[ProfilerActivity.CPU]) as recording:
        x.step()
    names = [event.name for event in recording.events()]
    counts = Counter(name for name in names if name.startswith(("c10d::", "shm:")))
    texts = [f"{count} ``{name}``" for name, count in counts.items()]
    pairs = zip(texts[::2], texts[1::2], strict=True)  # a call, and the operation in it
    result["events"] += [[feature.__name__, *pair] for pair in pairs]

# [late]
with profile(activities=[ProfilerActivity.CPU]) as recording:
    if rank == 0:
        work = dist.all_reduce(torch.ones(10), async_op=True)
        store.set("rank 0 has called", "")
        work.wait()
    else:
        store.wait(["rank 0 has called"])
        time.sleep(0.3)
        dist.all_reduce(torch.ones(10))
ends = {event.name: event.time_range.end for event in recording.events()}
later = ends["shm:all_reduce"] - ends["c10d::allreduce_"]  # in microseconds
# [/late]
result["later"] = later > 200_000
dist.barrier()
dist.destroy_process_group()
print(json.dumps(result))

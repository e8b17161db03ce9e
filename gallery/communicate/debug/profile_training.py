"""Worker: profile a step of training."""

import json
from collections import Counter

from training_runs import ddp, fsdp2, pipeline

import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rows = []

for feature in [ddp, fsdp2, pipeline]:
    x = feature(dist.group.WORLD)
    # [profile]
    x.step(), x.step()
    with profile(activities=[ProfilerActivity.CPU]) as recording:
        x.step()
    names = [event.name for event in recording.events()]
    counts = Counter(name for name in names if name.startswith(("c10d::", "shm:")))
    # [/profile]
    texts = [f"{count} ``{name}``" for name, count in counts.items()]
    pairs = zip(texts[::2], texts[1::2], strict=True)  # a call, and the operation in it
    rows += [[feature.__name__, *pair] for pair in pairs]

dist.barrier()
dist.destroy_process_group()
print(json.dumps(rows))

"""Worker: print whether the thread of a group works during synchronous calls."""

import re
import time
from pathlib import Path

import torch
import torch.distributed as dist

from store_collectives import Options  # importing it registers "store"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
known = set()


def sleeping_driver():
    """Return the folder of the thread that drives for the newest group, once it sleeps."""
    while True:
        for thread in set(Path("/proc/self/task").iterdir()) - known:
            name, status = [(thread / file).read_text() for file in ("comm", "status")]
            if name == "store_driver\n" and "S (sleeping)" in status:
                known.add(thread)
                return thread
        time.sleep(0.001)


# [threads]
def sleeps(thread):
    """Return how often a thread has gone to sleep."""
    text = (thread / "status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M)[1])


calls = 10
for can_block in [True, False]:
    options = Options()
    options.can_block = can_block
    group = dist.new_group(backend="store", pg_options=options)
    thread = sleeping_driver()
    before = sleeps(thread)
    for _ in range(calls):
        dist.all_reduce(torch.ones(1), group=group)
    worked = sleeps(thread) - before >= calls
    print(f"can_block={can_block}: the thread has worked: {worked}")
    dist.destroy_process_group(group)
# [/threads]
dist.destroy_process_group()

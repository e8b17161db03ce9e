"""Worker: note what happens in which order, while three ranks reduce 1 MiB."""

import json
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("store", store=store, rank=rank, world_size=size)
events = []


# [note]
def note(event):
    """Record an event, its time, and the thread in which it happens."""
    main = threading.current_thread() is threading.main_thread()
    thread = "program" if main else Path("/proc/thread-self/comm").read_text().strip()
    events.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC), event, thread))


# [/note]
def let_next_rank_begin():
    store.set(f"rank {rank} computes", "")


def everyone(event):
    """Return whether all ranks have come here."""
    store.set(f"{event} {rank}", "")
    return store.check([f"{event} {other}" for other in range(size)])


def compute():
    (square @ square).sum()


square = torch.rand(64, 64)
tensor = torch.ones(1 << 18)
if rank:
    store.wait([f"rank {rank - 1} computes"])

# [program]
note("all_reduce is called")
if rank < 2:
    work = dist.all_reduce(tensor, async_op=True)
    note("the call has returned")
    assert not work.is_completed()  # rank 2 has not come yet
    noted = work.get_future().then(lambda _: note("the result is there"))
    note("computation begins")
    let_next_rank_begin()
    while not noted.done() or not everyone("has the result"):
        compute()
    note("computation ends")
    everyone("has computed")
    store.wait([f"has computed {other}" for other in range(size)])
    work.wait()
    note("wait() has returned")
# [/program]
else:
    dist.all_reduce(tensor)
    note("the result is there")
    everyone("has the result")
    everyone("has computed")
assert tensor.eq(3).all()
dist.destroy_process_group()
print(json.dumps(events))

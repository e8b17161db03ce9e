"""A barrier makes the host wait, because what comes after it may have nothing to do with streams."""

import tempfile
import threading
from pathlib import Path

import torch
import torch.distributed as dist
from two_ways import rank, show

store = dist.distributed_c10d._get_default_store()
if rank == 0:
    store.set("folder", tempfile.mkdtemp())
folder = Path(store.get("folder").decode())


# [program]
def file_after_the_barrier(group):
    """Rank 0 writes a file when rank 1 waits in the barrier, or has already passed it."""
    file, key = folder / group.group_name, f"rank 1 of {group.group_name}"
    if rank == 0:
        store.wait([key])
        file.write_text("written before the barrier")
        dist.barrier(group, device_ids=[rank])
        return file.read_text()
    looked = threading.Event()

    def tell_rank_0():
        while not torch.sim.waiting_threads() and not looked.is_set():
            pass
        store.set(key, "")

    thread = threading.Thread(target=tell_rank_0)
    thread.start()
    dist.barrier(group, device_ids=[rank])
    text = file.read_text() if file.exists() else "the file is MISSING"
    looked.set()
    thread.join()
    return text


show("barrier", file_after_the_barrier)
# [/program]

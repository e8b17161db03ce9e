"""Worker: threads that wait together, and a work without its group."""

import threading
import time

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("store", store=store, rank=rank, world_size=size)

tensors = [torch.ones(10), torch.ones(10)]
if rank == 0:
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    threads = [threading.Thread(target=work.wait) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    assert all(thread.is_alive() for thread in threads)  # both wait
    store.set("two threads wait", "")
    for thread in threads:
        thread.join()
else:
    store.wait(["two threads wait"])
    for tensor in tensors:
        dist.all_reduce(tensor)
assert all(tensor.eq(2).all() for tensor in tensors)

# [outlives]
work = dist.all_reduce(torch.ones(10_000), async_op=True)
dist.destroy_process_group()  # waits for the collectives
print("without its group, the work is complete:", work.is_completed())
work.wait()
print("the sum:", work.get_future().value()[0][0].item())
# [/outlives]
assert work.is_completed() and work.get_future().value()[0].eq(2).all()

"""Worker: the order of works, threads that wait together, and a work without its group."""

import threading
import time

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)

# [order]
numbers = [1_000_000, 10, 100_000]
ended = []
if rank == 0:
    for number in numbers:
        work = dist.all_reduce(torch.ones(number), async_op=True)  # the work keeps the tensor
        work.get_future().add_done_callback(lambda done: ended.append(done.value()[0].numel()))
    store.set("rank 0 has called", "")
    while len(ended) < 3:
        time.sleep(0.001)
    print("ended in this order:", ended)
# [/order]
else:
    store.wait(["rank 0 has called"])
    for number in numbers:
        dist.all_reduce(torch.ones(number))
assert rank or ended == numbers

# [together]
tensors = [torch.ones(10), torch.ones(10)]
if rank == 0:
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    threads = [threading.Thread(target=work.wait) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    print("two threads wait:", [thread.is_alive() for thread in threads])
    store.set("two threads wait", "")
    for thread in threads:
        thread.join()
# [/together]
else:
    store.wait(["two threads wait"])
    for tensor in tensors:
        dist.all_reduce(tensor)
assert all(tensor.eq(2).all() for tensor in tensors)

# [outlives]
tensor = torch.ones(100_000)
work = dist.all_reduce(tensor, async_op=True)
dist.destroy_process_group()  # waits for all that was called
print("without its group, the work is complete:", work.is_completed())
work.wait()
print("the sum:", work.get_future().value()[0][0].item())
# [/outlives]
assert work.is_completed() and tensor.eq(2).all()

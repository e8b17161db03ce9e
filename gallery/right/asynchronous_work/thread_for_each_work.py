"""Worker: two works whose threads overtake each other, and two that keep their order."""

import threading

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank = dist.get_rank()


# [orders]
def submit_in_the_thread(tensor):
    """Return what the thread of an all-reduce does: submit the operation and run it."""
    return lambda: dist.all_reduce(tensor)


def submit_in_the_call(tensor):
    """Submit an all-reduce, and return what its thread does: run the operation."""
    return dist.all_reduce(tensor, async_op=True).wait


for submit in [submit_in_the_thread, submit_in_the_call]:
    tensors = [torch.tensor([number * (rank + 1)]) for number in (1, 10)]
    threads = [threading.Thread(target=submit(tensor)) for tensor in tensors]
    for number in [rank, 1 - rank]:  # on rank 1, the second thread begins first
        threads[number].start()
        threads[number].join()
    print(f"{submit.__name__}: {[tensor.item() for tensor in tensors]}")
# [/orders]
assert [tensor.item() for tensor in tensors] == [3, 30]
dist.destroy_process_group()

"""Worker: a future that is complete before the data is there, and one that is not."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("store", store=store, rank=rank, world_size=size)


# [futures]
def too_early(work, tensor):
    """Return a future that is complete when the operation has begun."""
    future = torch.futures.Future()
    future.set_result([tensor])
    return future


def at_the_end(work, tensor):
    """Return a future that is complete when the operation has ended."""
    future = torch.futures.Future()
    work.get_future().add_done_callback(lambda ended: future.set_result(ended.value()))
    return future


# [/futures]
# [use]
for make_future in [too_early, at_the_end]:
    tensor = torch.full((4,), rank + 1.0)
    if rank == 1:
        store.wait([make_future.__name__])
    work = dist.all_reduce(tensor, async_op=True)
    future = make_future(work, tensor)
    value = future.then(lambda done: done.value()[0].tolist())
    if rank == 0:
        print(f"{make_future.__name__}: the callback ran before rank 1 came: {value.done()}")
        store.set(make_future.__name__, "")  # now rank 1 comes
        print(f"    it read {value.wait()}")
    work.wait()
    assert tensor.tolist() == [3.0] * 4
# [/use]
dist.destroy_process_group()

"""Worker: let rank 1 be late, and give rank 0 a timeout of each kind."""

import re
from datetime import timedelta

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("store", store=store, rank=rank, world_size=size)
dist.barrier()  # so that all ranks come to the next group within its timeout


if hasattr(dist, "set_timeout"):
    long, set_timeout = timedelta(minutes=30), dist.set_timeout
else:  # PyTorch 2.13 cannot change the timeout of this backend.
    long, set_timeout = timedelta(seconds=1), lambda timeout, group: None


# [late]
def late(name, call):
    """Call on rank 0, and then on rank 1; print what each of them raises."""
    of_rank_0 = store.get(name).decode() if rank == 1 else None
    try:
        call()
        end = "has returned"
    except dist.DistBackendError as error:
        message = str(error).splitlines()[0].split(" failed on ")[-1]
        end = message.removeprefix(f"rank {rank}: ")
        end = re.sub(" of 4 bytes of float32 with (SUM|tag 0)", " ...", end)
    if rank == 0:
        store.set(name, end)
    print(f"{name}: {'an error with the reason of rank 0' if end == of_rank_0 else end}")


# [/late]
# [timeouts]
group = dist.new_group(backend="store", timeout=timedelta(seconds=2))
late("1. the group's timeout, 2 s", lambda: dist.all_reduce(torch.ones(1), group=group))
late("   the same group again", lambda: dist.all_reduce(torch.ones(1), group=group))

group = dist.new_group(backend="store", timeout=long)
set_timeout(timedelta(seconds=1), group)
late("2. set_timeout, 1 s", lambda: dist.all_reduce(torch.ones(1), group=group))

group = dist.new_group(backend="store")
short = timedelta(seconds=0.5)
late("3. the call's timeout, 0.5 s", lambda: dist.barrier(group, timeout=short))

group = dist.new_group(backend="store")
tensor, works = torch.ones(1), []


def call_and_wait():
    works.append(dist.all_reduce(tensor, group=group, async_op=True))
    works[0].wait(timedelta(seconds=0.2 if rank == 0 else 60))


late("4. the timeout of wait(), 0.2 s", call_and_wait)
works[0].wait()
print("    the second wait() has returned, the sum is", tensor.item())

group = dist.new_group(backend="store", timeout=timedelta(seconds=1))
message = torch.full((1,), float(rank))
if rank == 0:
    receive = dist.irecv(message, src=1, group=group)
    late("5. the timeout of a message, 1 s", lambda: receive.wait())
    receive.wait()
    print("    the second wait() has returned, the message is", message.item())
else:
    late("5. the timeout of a message, 1 s", lambda: dist.send(message, dst=0, group=group))
# [/timeouts]
assert message.item() == 1
assert tensor.item() == 2
dist.destroy_process_group()

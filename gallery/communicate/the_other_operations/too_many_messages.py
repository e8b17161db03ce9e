"""Worker: the solution of the exercise. Send more than a rank keeps."""

from datetime import timedelta

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rank = dist.get_rank()
long, short = torch.zeros(40 << 20, dtype=torch.uint8), torch.zeros(1)


# [solution]
def has_ended(work):
    """Return whether a message arrives within a second."""
    try:
        return work.wait(timedelta(seconds=1))
    except dist.DistBackendError:
        return False


if rank == 0:
    works = [dist.isend(long, 1, tag=5) for _ in range(3)]
    works.append(dist.isend(short, 1, tag=6))
    dist.barrier()  # rank 1 has waited for a second
    print("sends that have ended:", [work.is_completed() for work in works])
else:
    receive = dist.irecv(short, 0, tag=6)
    print("tag 6 has arrived:", has_ended(receive))
    dist.barrier()
    dist.recv(long, 0, tag=5)
    receive.wait()
    print("tag 6 has arrived after the first long message")
    for _ in range(2):
        dist.recv(long, 0, tag=5)
# [/solution]
dist.barrier()
dist.destroy_process_group()

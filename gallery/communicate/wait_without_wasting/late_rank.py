"""Worker: measure what it costs rank 0 to wait one second for rank 1."""

import resource
import time

import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rank = dist.get_rank()


def wait_for(call):
    """Return the seconds of a call, the seconds of processor time, and how often it slept."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_THREAD)
    call()
    end, after = time.monotonic(), resource.getrusage(resource.RUSAGE_THREAD)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return end - begin, busy, after.ru_nvcsw - before.ru_nvcsw


# [late]
dist.barrier()
if rank == 1:
    time.sleep(1)
seconds, busy, sleeps = wait_for(dist.barrier)
if rank == 0:
    print("the call took more than half a second:", seconds > 0.5)
    print("it used a processor for less than 5 % of this time:", busy < 0.05 * seconds)
    print("it went to sleep 5 to 25 times:", 5 <= sleeps <= 25)
# [/late]
dist.destroy_process_group()

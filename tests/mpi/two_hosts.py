"""A rank on one of two hosts. Its argument says what happens; it prints what it has seen."""

import os
import signal
import sys
import time
from datetime import timedelta

import mpi_collectives
import torch
import torch.distributed as dist
from ranks import error_of

what = sys.argv[1]
options = mpi_collectives.Options()
options.heartbeat = timedelta(seconds=1)
dist.init_process_group("mpich", pg_options=options, timeout=timedelta(seconds=5))
rank, size = dist.get_rank(), dist.get_world_size()
per_host = int(os.environ["LOCAL_WORLD_SIZE"])

if what == "work":
    total = torch.full((3_000_000,), float(rank + 1))
    dist.all_reduce(total)
    got = torch.empty(2)
    send = dist.isend(torch.full((2,), float(rank)), (rank + per_host) % size)
    dist.recv(got, (rank - per_host) % size)
    send.wait()
    here, _ = dist.new_subgroups(per_host)
    number = torch.tensor([rank])
    dist.all_reduce(number, group=here)
    numbers = int(total[0]), int(total[-1]), int(got[0]), int(number)
    os.write(1, f"{numbers}\n".encode())  # as a whole: the ranks of a host share the pipe
    dist.destroy_process_group()
else:
    dist.all_reduce(torch.ones(1000))
    print("ready", flush=True)
    sys.stdin.readline()
    if what == "kill" and rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    kind, text, seconds = error_of(
        lambda: [dist.all_reduce(torch.ones(100_000)) for _ in range(99)]
    )
    print(f"{kind} {seconds:.1f} {text.splitlines()[-1]}", flush=True)
    time.sleep(0.5)  # while others get the reason
    os._exit(0)

"""A rank on one of two hosts, which prints its error when the other host is lost to it."""

import os
import signal
import sys
from datetime import timedelta

import mpi_collectives
import torch
import torch.distributed as dist
from ranks import error_of

options = mpi_collectives.Options()
options.heartbeat = timedelta(seconds=3)
dist.init_process_group("mpich", pg_options=options, timeout=timedelta(seconds=300))

dist.all_reduce(torch.ones(1000))
print("ready", flush=True)
if sys.stdin.readline() == "die\n":
    os.kill(os.getpid(), signal.SIGKILL)
kind, text, _ = error_of(lambda: [dist.all_reduce(torch.ones(100_000)) for _ in range(99)])
print(f"{kind} {text.splitlines()[-1]}", flush=True)
dist.destroy_process_group()  # which waits until the others have the reason
os._exit(0)

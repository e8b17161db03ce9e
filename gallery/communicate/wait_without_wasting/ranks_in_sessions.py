"""Program: start ranks in one session or in several, and count how often they sleep."""

import multiprocessing
import os
import resource
import tempfile

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

BARRIERS = 200


# [sleeps]
def run_rank(rank, size, path, own_session, sleeps):
    if own_session:
        os.setsid()  # as torchrun does for each rank
    store = dist.FileStore(path, size)
    dist.init_process_group("shm", store=store, rank=rank, world_size=size)
    dist.barrier()
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(BARRIERS):
        dist.barrier()
    sleeps[rank] = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before
    dist.destroy_process_group()


# [/sleeps]
def sleeps_of_ranks(size, own_session):
    """Return how often all ranks together go to sleep during the barriers."""
    context = multiprocessing.get_context("fork")
    sleeps = context.Array("l", size)
    with tempfile.TemporaryDirectory() as folder:
        shared = (size, f"{folder}/store", own_session, sleeps)
        ranks = [context.Process(target=run_rank, args=(rank, *shared)) for rank in range(size)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    assert not any(process.exitcode for process in ranks)
    return sum(sleeps)


def start(text, size, own_session):
    """Print whether ranks sleep so often in each of five attempts: others may disturb one."""
    attempts = range(5)
    rarely = any(sleeps_of_ranks(size, own_session) < BARRIERS for _ in attempts)
    print(f"{text}: one sleep or more per barrier: {not rarely}", flush=True)


torch.set_num_threads(1)
many = os.cpu_count() + 1
start("two ranks, a session for each", 2, True)
start("more ranks than processors, one session", many, False)
start("more ranks than processors, a session for each", many, True)

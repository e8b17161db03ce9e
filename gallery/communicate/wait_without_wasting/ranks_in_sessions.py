"""Program: start ranks in one session or in several, and print how long they yield."""

import multiprocessing
import os
import tempfile

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"


# [yield]
def run_rank(rank, size, path, own_session):
    if own_session:
        os.setsid()  # as torchrun does for each rank
    store = dist.FileStore(path, size)
    dist.init_process_group("shm", store=store, rank=rank, world_size=size)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    if rank == 0:
        print(f"yield for {backend.yield_for.microseconds} microseconds", flush=True)
    dist.destroy_process_group()


# [/yield]
def start(text, size, own_session):
    print(f"{text}: ", end="", flush=True)
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=run_rank, args=(rank, size, f"{folder}/store", own_session))
            for rank in range(size)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    assert not any(process.exitcode for process in ranks)


torch.set_num_threads(1)
many = os.cpu_count() + 1
start("two ranks, a session for each", 2, True)
start("more ranks than processors, one session", many, False)
start("more ranks than processors, a session for each", many, True)

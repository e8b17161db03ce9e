"""Program: start three ranks, lose rank 2 in several ways, and print the errors of the others."""

import multiprocessing
import os
import re
import signal
import tempfile

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

# [ways]
WAYS = {
    "is killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "leaves the group": lambda: dist.destroy_process_group(),
    "aborts the group": lambda: dist.group.WORLD.abort(),
    "calls another operation": lambda: dist.broadcast(torch.ones(10), src=0),
    "has another size": lambda: dist.all_reduce(torch.ones(20)),
    "is killed after its last operation": lambda: end_after_all_reduce(),
}


def run_rank(rank, way):
    """Reduce twice, where rank 2 does something else the second time."""
    dist.all_reduce(torch.ones(10))
    if rank == 2:
        WAYS[way]()
    else:
        dist.all_reduce(torch.ones(10))


# [/ways]
def end_after_all_reduce():
    dist.all_reduce(torch.ones(10))
    os.kill(os.getpid(), signal.SIGKILL)


# [show]
def show(messages):
    """Print each reason with the ranks that give it, without the number of a process."""
    ranks = {}
    for message in messages:
        end = re.sub(r"process \d+", "process ...", message.partition(" failed on ")[2])
        rank, _, reason = end.partition(": ")
        ranks.setdefault(reason, []).append(rank)
    for reason in ranks:
        print(f"    {', '.join(ranks[reason])}: {reason}")


# [/show]
def start(rank, way, path, pipe):
    """Send the error of a rank to the parent."""
    torch.set_num_threads(1)
    dist.init_process_group("shm", store=dist.FileStore(path, 3), rank=rank, world_size=3)
    try:
        run_rank(rank, way)
    except dist.DistBackendError as error:
        pipe.send(str(error).splitlines()[0])
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    for way in WAYS:
        print("rank 2", way)
        with tempfile.TemporaryDirectory() as folder:
            ranks = []
            for rank in range(3):
                receiving, sending = context.Pipe(duplex=False)
                process = context.Process(
                    target=start, args=(rank, way, f"{folder}/store", sending)
                )
                process.start()
                sending.close()
                ranks.append((process, receiving))
            messages = []
            for process, receiving in ranks:
                process.join()
                if receiving.poll():
                    try:
                        messages.append(receiving.recv())
                    except EOFError:  # it had no error, or no time to tell
                        continue
            show(messages)

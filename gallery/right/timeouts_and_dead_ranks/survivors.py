"""Program: start three ranks, let one of them leave, and go on with the others."""

import multiprocessing
import re
import tempfile

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"


def sum_of_ones():
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    return tensor.item()


# [solution]
def join(store, name, rank, ranks):
    """Create the default group of these ranks, under a name of its own in the store."""
    dist.init_process_group(
        "store",
        store=dist.PrefixStore(name, store),
        rank=ranks.index(rank),
        world_size=len(ranks),
    )


def work(rank, path):
    """Reduce four times, where rank 2 comes only twice."""
    store = dist.FileStore(path, 3)
    ranks = [0, 1, 2]
    join(store, "everyone", rank, ranks)
    for step in range(2 if rank == 2 else 4):
        try:
            total = sum_of_ones()
        except dist.DistBackendError as error:
            lost = int(re.search(r"rank (\d+) has left", str(error))[1])
            ranks.remove(lost)
            dist.destroy_process_group()
            join(store, f"without {lost}", rank, ranks)
            total = sum_of_ones()
        if rank == 0:
            print(f"step {step}: ranks {ranks}, the sum is {total:g}")
    dist.destroy_process_group()


# [/solution]
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=work, args=(rank, f"{folder}/store")) for rank in range(3)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    assert [process.exitcode for process in ranks] == [0, 0, 0]

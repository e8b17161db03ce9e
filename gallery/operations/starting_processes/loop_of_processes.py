"""Program: start each rank in a loop, and wait for all of them."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD_SIZE = 3


def work(rank, meeting_point, results):
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=WORLD_SIZE
    )
    tensor = torch.tensor([rank + 1.0])
    dist.all_reduce(tensor)
    results.put((rank, tensor.item()))
    dist.destroy_process_group()


if __name__ == "__main__":
    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        for rank in range(WORLD_SIZE):
            arguments = (rank, f"{folder}/meeting-point", results)
            process = context.Process(target=work, args=arguments)
            process.start()
            processes.append(process)
        sums = dict(results.get() for _ in processes)
        for process in processes:
            process.join()
    print("exit codes:", [process.exitcode for process in processes])
    print("each rank's sum:", [sums[rank] for rank in range(WORLD_SIZE)])
    assert sums == {0: 6.0, 1: 6.0, 2: 6.0}

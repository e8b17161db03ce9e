"""Start three ranks, of which rank 2 may be killed or stopped, and collect errors of the others."""

import multiprocessing
import re
import tempfile

import torch
import torch.distributed as dist


def errors_of(start, run):
    """Return the errors of ranks 0 and 1, without the numbers of processes.

    Each rank is a process, which calls ``start(rank, store)`` to make the default group, and then
    ``run(rank)``. An error is the text that an exception of the backend has after its call.
    """
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(3):
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(
                target=_rank, args=(rank, start, run, f"{folder}/store", sending)
            )
            process.start()
            sending.close()
            ranks.append((process, receiving))
        texts = []
        for process, receiving in ranks[:2]:
            texts.append(receiving.recv() if receiving.poll(30) else "no error within 30 s")
            process.join(10)
        for process, _ in ranks:
            process.kill()
            process.join()
        return texts


def _rank(rank, start, run, path, errors):
    torch.set_num_threads(1)
    start(rank, dist.FileStore(path, 3))
    try:
        run(rank)
    except dist.DistBackendError as error:
        text = str(error).splitlines()[0].partition(" failed on ")[2]
        errors.send(re.sub(r"process \d+", "process ...", text))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()

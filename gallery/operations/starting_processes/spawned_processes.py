"""Program: let mp.spawn start ranks, one of which fails."""

import time

import torch.multiprocessing as mp


def succeed(rank, name):
    assert name == "shared argument"


def fail(rank):
    if rank == 1:
        raise ValueError("rank 1 has had enough")
    time.sleep(30)  # mp.spawn ends this rank early, because rank 1 fails.


if __name__ == "__main__":
    mp.spawn(succeed, args=("shared argument",), nprocs=2)
    print("two ranks succeeded")

    failed_rank = None
    try:
        mp.spawn(fail, nprocs=2)
    except mp.ProcessRaisedException as error:
        failed_rank = error.error_index
        print("rank", failed_rank, "failed:", str(error).strip().splitlines()[-1])
    assert failed_rank == 1

"""Program: the options of mp.spawn, another start method, and a daemon."""

import time
import warnings

import torch.multiprocessing as mp


def work(rank, results):
    process = mp.current_process()
    results.put(f"{type(process).__name__}, daemon: {process.daemon}")


if __name__ == "__main__":
    mp.set_start_method("spawn")  # At most once in a program.
    results = mp.SimpleQueue()

    context = mp.spawn(work, args=(results,), nprocs=2, join=False, daemon=True)
    children = [results.get() for _ in range(2)]  # The parent does something else.
    have_finished = False
    while not have_finished:
        have_finished = context.join()  # False if a child is still running.
    print("mp.spawn:          ", children[0])
    assert children == ["SpawnProcess, daemon: True"] * 2

    mp.start_processes(work, args=(results,), nprocs=1, start_method="forkserver")
    child = results.get()
    print("mp.start_processes:", child)
    assert child == "ForkServerProcess, daemon: False"

    warnings.simplefilter("error", FutureWarning)
    refusal = ""
    try:
        mp.spawn(work, args=(results,), start_method="fork")
    except FutureWarning as warning:
        refusal = str(warning).splitlines()[0]
        print("mp.spawn warns:    ", refusal)
    assert "only supports start_method=spawn" in refusal

    mp.Process(target=time.sleep, args=(600,), daemon=True).start()

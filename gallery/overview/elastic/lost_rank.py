"""Worker: rank 1 ends early, and rank 0 tries to continue without it."""

import os
import re

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = dist.TCPStore(address, port, is_master=False)
errors = []


def lose_rank_1():
    """End rank 1, once rank 0 has received all that was sent to it."""
    if rank == 0:
        store.set("all received", "yes")
    else:
        store.wait(["all received"])
        print("ends", flush=True)
        os._exit(0)


# [steps]
for step in range(4):
    if step == 2:
        lose_rank_1()
    gradient = torch.ones(1)
    try:
        dist.all_reduce(gradient)
        print(f"step {step}: gradients of {gradient.item():g} ranks")
    except RuntimeError as error:
        print(f"step {step}: RuntimeError")
        # [/steps]
        errors.append(str(error))

assert len(errors) == 2
for error in errors:
    assert re.search("Connection (closed|reset) by peer", error), error
dist.destroy_process_group()

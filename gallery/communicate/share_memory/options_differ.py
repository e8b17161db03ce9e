"""Worker: ranks that want different memories, then the same."""

import os
import re

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

rank = int(os.environ["RANK"])


# [attempts]
def attempt(slot_bytes):
    """Create a group with slots of this size, and print its sum or the error."""
    options = shm_collectives.Options()
    options.slot_bytes = slot_bytes
    try:
        dist.init_process_group("shm", pg_options=options)
    except dist.DistStoreError as error:
        text = str(error).splitlines()[0]
        print(re.sub(r"/proc/\d+/fd/\d+", "/proc/.../fd/...", text))
        return
    tensor = torch.tensor(rank)
    dist.all_reduce(tensor)
    print("the sum of all ranks is", tensor.item())
    dist.destroy_process_group()


attempt([4096, 8192][rank])
attempt(4096)
# [/attempts]

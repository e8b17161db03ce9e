"""Worker: the program of the tutorial, with a backend that communicates."""

# [program]
import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
tensor = torch.full((2,), dist.get_rank() + 1.0)
dist.all_reduce(tensor)
print(tensor)
dist.destroy_process_group()
# [/program]
assert tensor.tolist() == [3.0, 3.0]
dist.init_process_group("shm")
backend = dist.group.WORLD._get_backend(tensor.device)
for feature in ("coalescing", "abort_hooks", "completion_hooks", "window", "reconfigure", "shrinking"):
    assert not getattr(backend, f"supports_{feature}", False), feature
dist.destroy_process_group()

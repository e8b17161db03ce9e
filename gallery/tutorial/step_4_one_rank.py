"""
Step 4: Use the backend on one rank
===================================

Importing the module is all the set-up there is. From then on ``"dummy"`` is a
backend like ``"nccl"`` or ``"gloo"``, and the rest of the program is ordinary
:mod:`torch.distributed` code.

We begin with a single rank in a single process. That is enough to see each call
work, and a store in memory, ``HashStore``, spares us addresses and ports.

.. diagram:: backend/zeros-one-rank
"""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
print("backend:", dist.get_backend())
print("rank", dist.get_rank(), "of", dist.get_world_size())

# sphinx_gallery_start_ignore
assert (dist.get_backend(), dist.get_rank(), dist.get_world_size()) == ("dummy", 0, 1)
# sphinx_gallery_end_ignore

# %%
# All-reduce overwrites its tensor. With gloo the single rank would keep its ones;
# our backend leaves zeros:

tensor = torch.ones(4)
dist.all_reduce(tensor)
print(tensor)

# sphinx_gallery_start_ignore
assert tensor.tolist() == [0.0] * 4
# sphinx_gallery_end_ignore

# %%
# All-gather reads one tensor and writes a list, with one tensor for each rank. The
# input stays as it was:

ours = torch.ones(2)
everyones = [torch.full((2,), 7.0)]
dist.all_gather(everyones, ours)
print("input: ", ours)
print("output:", everyones)

# sphinx_gallery_start_ignore
assert ours.tolist() == [1.0, 1.0]
assert [output.tolist() for output in everyones] == [[0.0, 0.0]]
# sphinx_gallery_end_ignore

# %%
# Whatever was initialized has to be destroyed. ``destroy_process_group`` calls the
# backend's ``shutdown``; a real backend closes its connections there.

dist.destroy_process_group()
print("initialized:", dist.is_initialized())

# sphinx_gallery_start_ignore
assert not dist.is_initialized()
assert dummy_collectives.__doc__
# sphinx_gallery_end_ignore

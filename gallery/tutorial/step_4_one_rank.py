"""
Step 4: Use the backend on one rank
===================================

After this page you can call the backend from a program.

The program imports the module. Then ``"dummy"`` is a backend like ``"nccl"`` or ``"gloo"``,
and the rest of the program is ordinary :mod:`torch.distributed` code.

We begin with one rank in one process. With ``HashStore``, a store in memory, the program
needs no address and no port.

.. diagram:: tutorial/step_4_one_rank/diagram
"""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
print("backend:", dist.get_backend())
print("rank", dist.get_rank(), "of", dist.get_world_size())

# %%
# All-reduce overwrites its tensor. With gloo, one rank would keep its ones. Our backend
# writes zeros:

tensor = torch.ones(4)
dist.all_reduce(tensor)
print(tensor)

# %%
# All-gather reads one tensor, and writes a list with one tensor for each rank. The
# input does not change:

ours = torch.ones(2)
everyones = [torch.full((2,), 7.0)]
dist.all_gather(everyones, ours)
print("input: ", ours)
print("output:", everyones)

# %%
# Destroy every process group that you initialize. ``destroy_process_group`` calls the
# backend's ``shutdown``, in which a real backend closes its connections.

dist.destroy_process_group()
print("initialized:", dist.is_initialized())

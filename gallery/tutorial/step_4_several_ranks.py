"""
Step 4: Run the backend
=======================

Once the dummy is installed, a program uses it like NCCL or gloo. This page shows what a program
sees of the dummy: first in one process, which a debugger can follow, then on several ranks, and last when a rank fails.

One process
-----------

For a first test, or in a debugger, one rank in one process is enough. ``HashStore`` is a store in
memory, so the program needs neither a launcher nor an address:

.. diagram:: tutorial/step_4_several_ranks/one_rank
"""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
print("backend:", dist.get_backend())
print("rank", dist.get_rank(), "of", dist.get_world_size())

tensor = torch.ones(4)
dist.all_reduce(tensor)
print(tensor)

# %%
# All-reduce overwrites its tensor. With gloo, a single rank would keep its ones, so the zeros show that
# the dummy ran.
#
# Asynchronous calls
# ------------------
#
# With ``async_op=True``, a program can do other work while a collective runs:
#
# .. diagram:: asynchronous
#
# The call does not wait, and returns a ``Work``, here the ``WorkDummy`` that our ``allreduce`` has
# created:

tensor = torch.ones(3)
work = dist.all_reduce(tensor, async_op=True)
print("completed:", work.is_completed())
print("wait() returns", work.wait())
print(tensor)

# %%
# Until ``wait`` has returned, the tensor belongs to the backend, so the program must neither read nor
# write it. ``wait`` raises an exception if the operation failed. The dummy sends nothing, so its work is
# complete from the start.
#
# Futures
# -------
#
# A program that wants to attach a function to the result takes the future of the ``Work``, a
# :class:`torch.futures.Future`. Its value is the list of tensors that the operation wrote. They are the
# same tensors and not copies:

future = work.get_future()
print(future.wait())

# sphinx_gallery_start_ignore
assert future.wait()[0].data_ptr() == tensor.data_ptr()
# sphinx_gallery_end_ignore

# %%
# ``DistributedDataParallel`` collects gradients in *buckets* and all-reduces each of these as one tensor. It waits for
# the future of each bucket's all-reduce and takes the gradients from it, so it crashes if the future contains no
# tensor.
#
# A function that is attached with ``then`` runs when the future is complete:


def norm(finished):
    [reduced] = finished.value()
    return reduced.norm()


print("norm:", future.then(norm).wait().item())

# %%
# The value of the future of an all-gather is the list of its outputs:

outputs = [torch.ones(2)]
work = dist.all_gather(outputs, torch.ones(2), async_op=True)
print(work.get_future().wait())

# %%
# In Python, five methods of ``Work`` are deprecated, and PyTorch writes a warning to stderr when a program calls
# one: ``is_success``, ``exception``, ``result``, ``source_rank`` and ``synchronize``. Because programs should use
# ``wait`` and the future instead, the dummy does not implement ``result``:

print("success:", work.is_success())
try:
    work.result()
except RuntimeError as error:
    print(error)

# sphinx_gallery_start_ignore
# expected stderr: Work::(is_success|result) API is being deprecated
# sphinx_gallery_end_ignore

# %%
# The end of the group
# --------------------
#
# A backend cannot know by itself when the group is no longer needed. So at the end, destroy every process group that
# you have initialized. ``destroy_process_group`` calls the backend's ``shutdown``, in which a real backend closes its
# connections.

dist.destroy_process_group()
print("initialized:", dist.is_initialized())

# %%
# ``False`` means that no default group is left, so the process can call ``init_process_group`` again, with the same
# backend or with another one.
#
# Several ranks
# -------------
#
# A single rank has nothing to send. A distributed job has several ranks, each in a process of its own:
#
# .. diagram:: tutorial/step_4_several_ranks/diagram
#
# The import registers the backend under the name ``"dummy"``, and the rest of this program is ordinary
# :mod:`torch.distributed` code. It contains no rank, address or port, because ``init_process_group`` finds
# all of them in environment variables, which the launcher sets for each rank:
#
# .. listing:: gallery/tutorial/step_4_several_ranks/shortest_program.py
#    :part: program

from launcher import launch

launch("step_4_several_ranks/shortest_program.py", ranks=2)

# %%
# ``torchrun`` is the usual launcher. It starts the same program once for each rank. ``--standalone`` is
# for jobs on one computer: ``torchrun`` then chooses a free port, so two jobs can run at the same time.
# With a fixed ``MASTER_PORT``, both would use the same port.
#
# .. note::
#
#    ``launch`` is a helper of this site. It runs the ``torchrun`` command that it prints, and collects what each rank
#    writes, in Python and in C++. So that two runs can be compared, it sorts the lines by rank and puts the number of
#    the rank before each. It turns Python warnings into errors, and raises an error if a rank writes anything
#    unexpected to stderr.
#
# In the next program, each rank starts with another value, so that you see what each collective of the
# dummy writes:
#
# .. listing:: gallery/tutorial/step_4_several_ranks/zero_everything.py

launch("step_4_several_ranks/zero_everything.py", ranks=2)

# %%
# After a real all-reduce, both ranks would have ``1 + 2 = 3``. All-gather leaves its input as it was, and
# writes one tensor for each rank.
#
# .. _when-a-rank-fails:
#
# When a rank fails
# -----------------
#
# If one rank fails, the others hang in their next collective, unless their backend notices the failure. So
# ``torchrun`` stops them, and ends with an error itself. In this program, rank 1 fails at once, while rank 0 sleeps:
#
# .. listing:: gallery/tutorial/step_4_several_ranks/one_rank_fails.py

from launcher import RankError

try:
    launch("step_4_several_ranks/one_rank_fails.py", ranks=2)
except RankError as error:
    print(error)

# sphinx_gallery_start_ignore
# every rank starts an interpreter of its own
# sphinx_gallery_end_ignore

# %%
# ``torchrun`` itself prints a ``ChildFailedError``. To find the cause in it, look below ``Root Cause
# (first observed failure)``, which has the rank that failed first, and its exit code. ``launch`` shortens
# this report to the ``RankError`` above, with the number of the rank, the exit code, and what the rank
# wrote to stderr.

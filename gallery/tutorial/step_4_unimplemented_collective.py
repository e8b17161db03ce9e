"""
Collectives that are not implemented
====================================

A backend can begin with a few operations. This page shows how a program learns that one is missing, and
how you read from the error which method to override next. It then names two methods that a
backend needs although programs rarely call them.

.. diagram:: tutorial/step_4_unimplemented_collective/diagram

If your class does not override a method, that of ``c10d::Backend`` throws, and Python receives a
``RuntimeError`` with the names of the backend and the operation:
"""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)

try:
    dist.broadcast(torch.ones(2), src=0)
except RuntimeError as error:
    print(error)

# %%
# The method to override
# ----------------------
#
# The name in a message is that of the C++ method, so it tells you what to override. Some of these names differ from
# what the program calls, such as those for ``all_to_all`` and for a ``recv`` without a source:

one = torch.ones(2)
calls = {
    "reduce": lambda: dist.reduce(one, dst=0),
    "gather": lambda: dist.gather(one, [one], dst=0),
    "scatter": lambda: dist.scatter(one, [one], src=0),
    "reduce_scatter": lambda: dist.reduce_scatter(one, [one]),
    "all_gather_single": lambda: dist.all_gather_single(one, one),
    "reduce_scatter_single": lambda: dist.reduce_scatter_single(one, one),
    "all_to_all": lambda: dist.all_to_all([one], [one]),
    "all_to_all_single": lambda: dist.all_to_all_single(one, one),
    "send": lambda: dist.send(one, dst=1),
    "recv": lambda: dist.recv(one, src=1),
    "recv without a source": lambda: dist.recv(one),
    "barrier": lambda: dist.barrier(),
}
for name, call in calls.items():
    try:
        call()
    except RuntimeError as error:
        print(f"{name:22} {error}")

# %%
# .. note::
#
#    With PyTorch 2.13, the messages of the three calls that end in ``_single`` contain ``_allgather_base``,
#    ``_reduce_scatter_base`` and ``alltoall_base``. Newer releases call these methods, too, so override the old names
#    if your source must compile with 2.13.
#
# The program can go on after such an error, because the group is as before:

dist.all_reduce(one)
print(one)

# %%
# After an abort
# --------------
#
# An error of a method that you did override may mean that the group was aborted. A program aborts a group when it must
# not wait any longer, for example because another rank is dead. ``abort`` of the group calls ``abort`` of each of its
# backends. Ours then rejects every call, so that no rank begins an operation that cannot end:

dist.group.WORLD.abort()
try:
    dist.all_reduce(one)
except RuntimeError as error:
    print(error)


dist.destroy_process_group()

# %%
# The name of the backend
# -----------------------
#
# A backend also needs two methods that PyTorch itself calls. The first is ``getBackendName``, whose result stands
# in each error about a missing method. PyTorch already calls it in ``init_process_group``, for its flight recorder,
# which keeps a record of the latest operations. A backend without it fails there, with a message that asks you to
# report a bug to PyTorch, although the bug is in the backend. To show that, the next program has a backend without a
# name, written in Python to keep it short:
#
# .. listing:: gallery/tutorial/step_4_unimplemented_collective/without_a_name.py
#    :part: nameless

from launcher import launch

# sphinx_gallery_start_ignore
from older_releases import launch  # noqa: F811

# sphinx_gallery_end_ignore
launch("step_4_unimplemented_collective/without_a_name.py", ranks=1)

# %%
# .. note::
#
#    Before PyTorch 2.15, such a backend fails only in the missing collective. PyTorch 2.13 has no
#    backends in Python.
#
# The sequence number
# -------------------
#
# The second method is called only in a debug mode. Your users set ``TORCH_DISTRIBUTED_DEBUG=DETAIL`` to find out which
# rank calls another collective than the others. PyTorch then puts a C++ object around the backend. Before each
# collective, this object asks the backend for a sequence number, the count of its collectives, and compares the calls
# of all ranks through gloo. The dummy has no such number, so its first collective fails:

dist.set_debug_level(dist.DebugLevel.DETAIL)
try:
    dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
    dist.all_reduce(one)
except RuntimeError as error:
    print(error)

# sphinx_gallery_start_ignore
if dist.is_initialized():
    dist.destroy_process_group()
dist.set_debug_level(dist.DebugLevel.OFF)
# sphinx_gallery_end_ignore

# %%
# Override ``getSequenceNumberForGroup``, and return the number of collectives so far. In Python, the method has another
# name:
#
# .. listing:: gallery/tutorial/step_4_unimplemented_collective/sequence_numbers.py
#    :part: numbered

launch("step_4_unimplemented_collective/sequence_numbers.py", ranks=1)

# %%
# The number is 0 before the first collective, and 1 before the second.
#
# .. note::
#
#    With PyTorch 2.13, ``init_process_group`` also calls ``setSequenceNumberForGroup``, so override that
#    as well. Later releases do not call it.
#
# With a name and a sequence number, a backend can grow one method at a time: run your program, read in the error
# which method is missing, and override it.

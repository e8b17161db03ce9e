"""
Step 4: Call a collective that is not implemented
=================================================

After this page you can read from an error which method of the backend is missing.

A backend can begin with a few operations. For all others, the methods of ``c10d::Backend``
throw. Python receives a ``RuntimeError`` with the names of the backend and the operation:

.. diagram:: tutorial/step_4_unimplemented_collective/diagram
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
# This message contains the result of ``getBackendName``. A backend that does not override
# the method, here one in Python, fails with another message. PyTorch 2.15 fails in
# ``init_process_group``, because its flight recorder calls the method. Earlier releases
# fail in the missing collective. (PyTorch 2.13 has no backends in Python.)
#
# .. listing:: gallery/tutorial/step_4_unimplemented_collective/without_a_name.py
#    :part: nameless

from launcher import launch

# sphinx_gallery_start_ignore
import re

from launcher import RankError

launch_ranks = launch


def launch(worker, ranks):
    try:
        launch_ranks(worker, ranks=ranks)
    except RankError as error:
        # PyTorch 2.13 cannot derive a backend in Python; the page shows what it says.
        print(re.search(r"^TypeError: .+", str(error), re.M)[0])


# sphinx_gallery_end_ignore
launch("step_4_unimplemented_collective/without_a_name.py", ranks=1)

# %%
# All the others
# --------------
#
# The messages contain the names of the C++ methods that you must override. Some of them
# differ from the names in Python:

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
# Since PyTorch 2.14, the three calls that end in ``_single`` have a C++ method of the same
# name. With 2.13, the messages contain ``_allgather_base``, ``_reduce_scatter_base`` and
# ``alltoall_base``. Newer releases have these methods, too, and call them for the new
# names. Override the old ones if your source must compile with 2.13.
#
# You can use the group after such an error. All-reduce works as before:

dist.all_reduce(one)
print(one)

# %%
# After an abort
# --------------
#
# A program aborts a group when it has lost a rank, for example. ``abort`` of the group calls
# ``abort`` of each of its backends. Our backend then rejects every call:

dist.group.WORLD.abort()
try:
    dist.all_reduce(one)
except RuntimeError as error:
    print(error)


dist.destroy_process_group()

# %%
# With TORCH_DISTRIBUTED_DEBUG=DETAIL
# -----------------------------------
#
# Programs set ``TORCH_DISTRIBUTED_DEBUG=DETAIL`` to find out which rank calls another
# collective than the others. PyTorch then puts a C++ object around the backend, which
# compares the calls of all ranks with gloo. The object needs sequence numbers, and the dummy
# has none:

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
# Override ``getSequenceNumberForGroup``, and return the number of collectives so far. PyTorch
# calls it before each collective in this mode. In Python, the method has another name:
#
# .. listing:: gallery/tutorial/step_4_unimplemented_collective/sequence_numbers.py
#    :part: numbered

launch("step_4_unimplemented_collective/sequence_numbers.py", ranks=1)

# %%
# For PyTorch 2.13, override ``setSequenceNumberForGroup`` as well: there,
# ``init_process_group`` calls it. Later releases do not. In this mode
# ``init_process_group`` waits for all ranks, because gloo connects them.

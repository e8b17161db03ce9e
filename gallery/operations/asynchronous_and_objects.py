"""
Asynchronous collectives, barriers and objects
==============================================

After this page you can compute while a collective runs, let ranks wait for each other,
and exchange Python objects.

Asynchronous collectives
------------------------

All collectives on tensors take the argument ``async_op=True``, and so does ``barrier``.
The collectives on objects do not take it:
"""

import inspect

import torch.distributed as dist

names = "broadcast reduce all_reduce scatter gather all_gather reduce_scatter"
names += " all_to_all all_to_all_single barrier broadcast_object_list"
names += " scatter_object_list gather_object all_gather_object"
takes = {True: [], False: []}
for name in names.split():
    parameters = inspect.signature(getattr(dist, name)).parameters
    takes["async_op" in parameters].append(name)
print("without async_op:", ", ".join(takes[False]))

# %%
# With ``async_op=True``, the call returns a ``Work`` at once, and the program continues
# while the data is on its way. Do not touch the tensor until ``wait`` has returned:
#
# .. listing:: gallery/operations/asynchronous_and_objects/asynchronous_and_objects.py
#    :part: asynchronous
#    :no-caption:
#
# .. diagram:: asynchronous
#
# With CUDA tensors, ``wait`` does not stop the program. It makes the current stream wait,
# and the program continues to queue its next kernels. This site does not run CUDA.
#
# Barrier
# -------
#
# ``barrier`` returns only after every rank has called it. Use it for things that PyTorch
# does not see, such as a file that one rank writes and the others read. Collectives need
# no barrier between them: each rank runs them in the order of its calls.
#
# .. diagram:: operations/asynchronous_and_objects/diagram
#
# .. listing:: gallery/operations/asynchronous_and_objects/asynchronous_and_objects.py
#    :part: barrier
#    :no-caption:
#
# Objects
# -------
#
# The collectives on objects pickle the objects and send the bytes as tensors. They are
# slower, they block, and autograd cannot differentiate them. For settings and reports that
# does not matter. Unpickling can run any code, so use these collectives only among ranks
# that you trust.
#
# .. listing:: gallery/operations/asynchronous_and_objects/asynchronous_and_objects.py
#    :part: objects
#    :no-caption:
#
# ``gather_object`` is like ``all_gather_object``, but only one rank receives the objects.
#
# The run
# -------
#
# ``launch`` runs the program with ``torchrun``, and sorts the output by rank.
# :doc:`starting-processes` describes it.

import os
import tempfile

from launcher import launch

with tempfile.TemporaryDirectory() as folder:
    os.environ["SHARED_FOLDER"] = folder
    launch("asynchronous_and_objects/asynchronous_and_objects.py", ranks=2)

# %%
# Rank 1 waits in the barrier until rank 0 has written the file. Every object keeps its
# types and its nesting.

"""
Asynchronous collectives, barriers and objects
==============================================

A collective usually blocks, and it passes tensors. This page shows how to compute while a collective runs, how
ranks wait for each other without a tensor, and how they exchange Python objects.

Asynchronous collectives
------------------------

With ``async_op=True``, a call returns a ``Work`` at once, and the program continues while the data is on its way. The
communication still uses the tensor, so do not touch it until ``wait`` has returned:

.. listing:: gallery/operations/asynchronous_and_objects/asynchronous_and_objects.py
   :part: asynchronous
   :no-caption:

.. diagram:: asynchronous

With NCCL, ``wait`` usually does not stop the program. It makes the current stream wait, so the program
can queue its next kernels. :doc:`/accelerators/waiting` shows which calls make the host wait.

All collectives on tensors take the argument ``async_op``, and so does ``barrier``. The collectives on objects do not:
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
# Barrier
# -------
#
# ``barrier`` returns only after every rank has called it. Use it for things that PyTorch does not see, such
# as a file that one rank writes and the others read. Collectives need no barrier between them, because each
# rank runs them in the order of its calls.
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
# To send a Python object to all ranks, or to collect one from each, use the collectives on objects. They pickle the
# objects and send the bytes as tensors, so they are slower than the collectives on tensors. They also block, and
# autograd cannot differentiate them. For small objects such as settings and reports, these limits do not matter.
#
# Use collectives on objects only among ranks that you trust, because unpickling can run any code.
#
# .. listing:: gallery/operations/asynchronous_and_objects/asynchronous_and_objects.py
#    :part: objects
#    :no-caption:
#
# ``gather_object`` is like ``all_gather_object``, but only one rank receives the objects.
# ``send_object_list`` and ``recv_object_list`` are no collectives: they pass objects from one rank to another.
#
# In a group that has only NCCL, the collectives on objects need one more line, which chooses the GPU of the rank:
#
# .. admonition:: Objects in a group with NCCL
#    :collapsible: closed
#
#    NCCL sends only what is on a GPU, so in a group that has only the backend ``"nccl"``, the bytes first go to the
#    current CUDA device. Unless you choose another one, that is the first GPU of the node for all ranks, and ``nccl``
#    raises an error in the ranks that use another GPU. The argument ``device_id`` of ``init_process_group`` does not
#    change this.
#
#    So call ``torch.cuda.set_device(local_rank)`` in each rank before you send objects. Do so before a checkpoint,
#    too, because ``save`` and ``load`` of ``torch.distributed.checkpoint`` send objects.
#
#    If the group also has a backend for CPUs, as with ``"cpu:gloo,cuda:nccl"``, that backend sends the bytes instead.
#
# The output
# ----------
#
# All listings above, apart from the one with ``inspect``, are parts of one program. ``launch`` runs it on two ranks,
# and sorts the output by rank, as :doc:`starting-processes` describes:

import os
import tempfile

from launcher import launch

with tempfile.TemporaryDirectory() as folder:
    os.environ["SHARED_FOLDER"] = folder
    launch("asynchronous_and_objects/asynchronous_and_objects.py", ranks=2)

# %%
# The first line of each rank shows that both sums are right: that of the all-reduce, and the one that the rank computed
# meanwhile. Rank 1 finds the text in the file, because it waits in the barrier until rank 0 has written it. Every
# object arrives with its types and its nesting.
#
# Not run here: NCCL.

"""
DataParallel and DDP
====================

When a model fits on one device, but training takes too long because the data set is large, give every device a
copy of the model and a part of each batch. This is called *data parallel* training. It is right only while all
copies stay equal. This page trains with PyTorch's ``DistributedDataParallel`` (DDP), and shows which calls keep the
copies equal and what every rank must do for that.

.. diagram:: overview/data_parallel/diagram

One device
----------

To see later that DDP learns the same, first train on one device. The programs for one device and for DDP use this
training loop:

.. listing:: gallery/overview/shared/data_parallel.py
   :part: train

The model has two small layers and learns to add four numbers:
"""

from shared.data_parallel import make_batch, make_model, train

losses = train(make_model(), *make_batch())
print(f"loss: {losses[0]:.4f}, after {len(losses)} steps {losses[-1]:.4f}")

# %%
# ``DataParallel``: one process
# -----------------------------
#
# ``torch.nn.DataParallel`` is the older way to use several GPUs, and takes a single line,
# ``model = torch.nn.DataParallel(model)``. It runs one thread for each GPU, all in one process, so it is limited to
# one node. It is slow, because it copies the model to all GPUs in every forward pass, and because the threads wait
# for each other at Python's global interpreter lock (GIL).
#
# `PyTorch's documentation <https://docs.pytorch.org/docs/2.15/generated/torch.nn.DataParallel.html>`__
# recommends ``DistributedDataParallel`` instead, even on a single node.
#
# DDP: one process for each device
# --------------------------------
#
# ``DistributedDataParallel``, *DDP* for short, runs one process for each device, so the processes share
# no interpreter and can be on several nodes. Each rank computes gradients from its own data. DDP
# averages them with an all-reduce, and therefore every rank makes the same update.
#
# Each rank first calls ``init_process_group("gloo")``. A ``DistributedSampler`` then gives the rank its part of the
# data, here half of the batch. The training loop stays the same:
#
# .. listing:: gallery/overview/shared/data_parallel.py
#    :part: ddp
#
# After the training, the copies of the model, called *replicas*, must be equal, bit for bit. Except for rounding,
# they must also be what one process would have learned from the whole batch. The program checks both on two ranks:

from launcher import launch

outputs = launch("shared/data_parallel.py", ranks=2)

# %%
# The losses differ from rank to rank, because each rank has different rows. The parameters equal those of one process
# because both parts of the batch have the same size: only then is the average of the two gradients the gradient of the
# whole batch.
#
# .. admonition:: DDP on GPUs
#    :collapsible: closed
#
#    On GPUs, each rank uses the device with its local rank:
#
#    .. not-executed::
#
#       The build of this site has no GPU.
#
#       .. code-block:: python
#
#          device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
#          torch.cuda.set_device(device)
#          dist.init_process_group("nccl", device_id=device)
#          model = DistributedDataParallel(make_model().to(device), device_ids=[device])
#          for epoch in range(epochs):
#              sampler.set_epoch(epoch)  # Shuffles anew.
#
#    Move the model before you wrap it, and create the optimizer afterwards. With ``device_ids``, DDP moves the inputs
#    of ``forward`` to the device, but your program must move the targets.
#
#    With ``device_id``, NCCL connects at once, and ``barrier`` uses this device
#    (:doc:`/tutorial/options-and-reductions`). Collectives on objects use the device of ``set_device``
#    (:doc:`/operations/asynchronous-and-objects`).
#
# The calls that keep the replicas equal
# --------------------------------------
#
# To find the cause of a hang, or to write a backend, you need to know which collectives a rank takes part in.
# PyTorch's ``CommDebugMode`` counts them. The table shows its counts for three models: a plain one, one with batch
# normalization, and one whose ``forward`` leaves out a layer. The third has ``find_unused_parameters=True``, because
# DDP otherwise expects a gradient for every parameter:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/overview/data_parallel/calls.py
#       :part: calls

import json

from result_table import show_table

outputs = launch("data_parallel/calls.py", ranks=2, show=False)
phases = ["constructor", "step 1", "step 2", "step 3"]
columns = json.loads(outputs[0])
show_table(
    ["when", "plain", "batch normalization", "find_unused_parameters"],
    [list(row) for row in zip(phases, *columns, strict=True)],
)

# %%
# The replicas stay equal only if they begin with the same parameters, so the constructor makes these calls, in
# this order:
#
# 1. an all-gather, with which the ranks compare their numbers of parameters;
# 2. a broadcast of the shapes of rank 0's parameters. A rank with other shapes raises ``… appears not to match sizes
#    of the same param in process 0``, while rank 0 goes on and waits for that rank;
# 3. for each data type and each 250 MiB, a broadcast of rank 0's parameters and buffers, which the other ranks adopt.
#
# In a step, DDP can make these calls:
#
# * In the backward pass, DDP all-reduces the gradients in groups, called *buckets*, to make fewer calls. The order of
#   the buckets is the same on all ranks. DDP divides each gradient by the number of ranks *before* the all-reduce,
#   and therefore requests a sum. This model has one bucket; :doc:`gradient-buckets` shows several.
# * If the model has buffers, such as the averages of batch normalization, rank 0 broadcasts them before each forward
#   pass, again for each type and each 250 MiB. Batch normalization needs two calls, because it also counts
#   batches, in another type. ``forward_sync_buffers=False`` stops these broadcasts.
# * The constructor divides the parameters into buckets before it knows in which order the gradients become ready. So
#   DDP divides them once more, before the forward pass of the second step. Rank 0 broadcasts this division in two
#   tensors, so that it is equal on all ranks.
# * With ``find_unused_parameters``, another all-reduce follows that of the last bucket. It tells the ranks which
#   parameters were used anywhere, with one ``int32`` for each. DDP then keeps the buckets of its constructor, so the
#   second step broadcasts no new division.
#
# The type of the all-reduce
# --------------------------
#
# A backend must add up tensors of the type that DDP passes, and mixed precision can change this type. To compute
# faster, ``torch.autocast`` computes matrix products in a type with fewer bits. The all-reduces do not change, because
# the parameters stay in ``float32``, and so do their gradients. If you convert the model instead, DDP all-reduces in
# the type of its parameters:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/overview/data_parallel/mixed_precision.py
#       :part: types

outputs = launch("data_parallel/mixed_precision.py", ranks=2)

# %%
# An all-reduce in ``bfloat16`` moves half as many bytes, but each sum is rounded to eight significant bits.
# :doc:`/library/types-and-reductions` shows the effect. With ``float16``, whose smaller range turns small
# gradients into zeros, also scale the loss with ``torch.amp.GradScaler``.
#
# The same calls on every rank
# ----------------------------
#
# By default, every backward pass contains an all-reduce, so all ranks must make the same number of steps. What happens
# otherwise depends on how they differ:
#
# * If one rank *skips* a batch, nothing fails at first. Its next all-reduce meets that of the skipped step
#   on the other ranks, and DDP silently averages gradients of different steps. :doc:`memory` shows this.
# * If one rank has *fewer* batches, the others make a call that has no partner. With gloo, they raise an
#   error if that rank has exited. If it is still running, they wait until the timeout of the group, by default 30
#   minutes (10 with ``"nccl"``). :doc:`/communicate/debug` shows how to find the rank.
#
# ``DistributedSampler`` prevents this by giving each rank equally many examples: it repeats a few of them, or
# with ``drop_last=True`` leaves a few out. Where the data cannot be divided evenly, use the context manager
# ``join`` of the DDP model:
#
# .. listing:: gallery/overview/data_parallel/uneven_inputs.py
#    :part: join
#
# Rank 0 has four batches and rank 1 has two. The gradient of each batch is 1, and so is the learning
# rate:

outputs = launch("data_parallel/uneven_inputs.py", ranks=2)

# %%
# When rank 1 has finished, it takes part in the all-reduces of rank 0 and contributes zeros. By default,
# DDP still divides by the number of ranks at the start, so the last two gradients are halved. With
# ``divide_by_initial_world_size=False`` it divides by the number of ranks that still have data. At the
# end, one of the ranks that finished last broadcasts its model, so both ranks have the same weight.
#
# .. admonition:: For reference: the calls of ``join``
#    :collapsible: closed
#
#    ``join`` adds two all-reduces of one element to each step, and a third if DDP broadcasts buffers. A rank without
#    data repeats only the collectives of DDP. If your model calls collectives itself, pass
#    ``throw_on_early_termination=True``. Then all ranks raise an error as soon as one has no more data.
#
# Validation on one rank can break the order of calls, too. A DDP model broadcasts its buffers in forward passes,
# so if only rank 0 validates, it waits for the other ranks (:doc:`/communicate/debug`). Let it call ``model.module``
# instead.
#
# The rule behind all cases is the same: all ranks must call the same collectives in the same order. Then the replicas
# stay equal.
#
# Not run here: GPUs, of which the build of this site has none.

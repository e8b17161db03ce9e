"""
ZeRO and FSDP2
==============

In data parallel training with ``DistributedDataParallel`` (DDP), every rank holds the parameters of the whole model,
their gradients and the state of its optimizer. When this training state does not fit into one device, split it
among the ranks. This page does so in two ways, counts what each rank holds and what the split costs in
communication, and ends with how to choose.

.. diagram:: overview/sharded_training/diagram

The sample trains a small model for three steps with Adam:

.. listing:: gallery/overview/sharded_training/sharded_training.py
   :part: model
   :no-caption:

One program trains this model in three ways on two ranks, and the tables below are parts of its output.

DDP: everything in every rank
-----------------------------

To have numbers to compare with, train with DDP first:

.. listing:: gallery/overview/sharded_training/sharded_training.py
   :part: ddp
   :no-caption:

The table shows how many elements of each kind a rank holds. The state of Adam consists of two averages for each
parameter:
"""

from launcher import PROFILER, launch
from shared.sections import show_section

tables, _ = launch(
    "sharded_training/sharded_training.py", ranks=2, expected_stderr=PROFILER, show=False
)
show_section(tables, "DDP")

# %%
# With Adam, training needs memory for four times the parameters: the parameters, their gradients, and
# twice as much for the optimizer state. Every value is the same in every rank, as the program checks. So
# a second rank adds speed, but no room for a larger model.
#
# ZeRO: each rank updates its share
# ---------------------------------
#
# The state of Adam is half of the training state, so it is worth splitting first. ZeRO (Zero Redundancy Optimizer)
# does this in its first stage: each parameter belongs to one rank. Only this rank keeps the optimizer state of
# the parameter and updates the parameter, and then it broadcasts the new values to the other ranks. With
# ``ZeroRedundancyOptimizer``, PyTorch does this for an optimizer of your choice, while the model remains
# wrapped in DDP:
#
# .. listing:: gallery/overview/sharded_training/sharded_training.py
#    :part: zero
#    :no-caption:

show_section(tables, "ZeRO")

# %%
# The shares of both ranks add up to the optimizer state of the whole model. The shares are not exactly equal, because
# a single parameter is not divided. The trained parameters are the same as with DDP, bit for bit.
#
# FSDP2: each rank holds its share
# --------------------------------
#
# FSDP (fully sharded data parallel) also splits the parameters and the gradients, like the third stage of ZeRO.
# PyTorch's second version of it, called FSDP2, is the function ``fully_shard``, which changes the model in place.
# Each parameter becomes a ``DTensor``, a tensor distributed among ranks, and each rank keeps some of its rows, called a
# *shard*. A *device mesh* names the ranks that take part; for GPUs, its device type is ``"cuda"``:
#
# .. listing:: gallery/overview/sharded_training/sharded_training.py
#    :part: shard
#    :no-caption:
#
# Unlike DDP, ``fully_shard`` does not copy the parameters of rank 0 to the other ranks, so all ranks must create the
# same model. They must also run the same layers in the same number of steps.
#
# .. admonition:: Ranks that differ in their layers or steps
#    :collapsible: closed
#
#    If ranks take different branches, it matters what a rank leaves out:
#
#    * *Some parameters of a layer* to which the program applied ``fully_shard``: the rank reduces fewer gradients.
#      With gloo, a process then ends with ``Received data size doesn't match``.
#      ``model.set_reduce_scatter_unused_params(True)`` lets the rank contribute zeros instead.
#    * *A whole layer*, or the backward pass: the rank also leaves out all-gathers, so its next all-gather meets that of
#      another layer. If both layers have the same size, the ranks silently compute with wrong parameters. Zeros do not
#      help here. Let the ranks decide together, or apply ``fully_shard`` to a module that contains the branches and
#      that all ranks run.
#
#    FSDP2 has no ``join``, with which DDP accepts uneven inputs (:doc:`data-parallel`). If a rank skips a batch,
#    FSDP2 averages gradients of different steps, as DDP does. So let all ranks decide together, with a small
#    all-reduce, as :doc:`memory` does.
#
# Create the optimizer after ``fully_shard``, because the parameters are then new objects. The optimizer gets only
# the shards, so its state is split too. The training loop stays the same. Counted as before, each rank holds:

show_section(tables, "FSDP2")

# %%
# Now each rank holds half of everything. The last line shows a weight that is whole in the forward pass, because a
# layer still computes with whole parameters. FSDP2 collects them just before the layer runs, and frees them
# afterwards. It can collect one layer at a time only because the program applies ``fully_shard`` to each layer. Applied
# only to the model, ``fully_shard`` would collect all parameters at the same time.
#
# If the whole model does not fit into one device, create it on the ``meta`` device, where it takes no memory. Then
# call ``fully_shard``, and let ``to_empty`` allocate the shards. Their values are uninitialized, so initialize them
# or load a checkpoint before training.
#
# The trained parameters must be those of one process that trains on the joined batches of both ranks. To compare them,
# ``full_tensor`` collects the shards of a parameter:
#
# .. listing:: gallery/overview/sharded_training/sharded_training.py
#    :part: alone
#    :no-caption:
#
# .. admonition:: Save and load a sharded model
#    :collapsible: closed
#
#    To save a sharded model, all ranks put the two results of ``get_state_dict(model, optimizer)`` into one
#    dictionary and pass it to ``save`` of ``torch.distributed.checkpoint``. To continue, ``load`` fills such a state,
#    also with another number of ranks, and ``set_state_dict`` puts it into the model and the optimizer.
#    :doc:`/right/training` has the code, and :doc:`elastic` says what the ranks exchange.
#
# The cost in communication
# -------------------------
#
# The price of less memory is more communication. The next table shows how often one step calls each operator of
# c10d, as PyTorch's profiler counted them. ``_allgather_base`` is an all-gather, and ``_reduce_scatter_base`` a
# reduce-scatter:

show_section(tables, "calls")

# %%
# * DDP reduces the gradients in groups, called buckets. This small model fits into one, so one all-reduce is
#   enough.
# * ZeRO's optimizer adds one broadcast for each of the four parameters.
# * FSDP2 makes three calls for each of the two layers: an all-gather of the parameters just before the
#   forward pass of this layer, another one for its backward pass, and then a reduce-scatter of its gradients. The
#   all-reduce of DDP transfers as much as a reduce-scatter and one all-gather together. With its second all-gather,
#   FSDP2 therefore transfers about 1.5 times as much as DDP.
# * The row ``kept`` is FSDP2 with ``reshard_after_forward=False``. It keeps the parameters whole from the forward
#   pass to the backward pass, which saves the second all-gather and needs more memory.
# * The last row, ``no sync``, is the forward and backward pass of FSDP2 after
#   ``model.set_requires_gradient_sync(False)``, with which a program accumulates the gradients of several parts of a
#   batch. It saves the reduce-scatters, but each rank then holds whole gradients instead of shards. Call the method
#   with ``True`` before the last backward pass, whose reduce-scatters then include all parts.
#
# .. admonition:: The order of the calls, and accumulation with fewer all-gathers
#    :collapsible: closed
#
#    The forward pass gathers layer 1, then layer 2. The backward pass gathers layer 2, then layer 1, and only then
#    reduces the gradients of layer 2 and of layer 1. It gathers layer 1 so early because FSDP2 *prefetches*: it
#    requests the parameters that the backward pass needs next before it computes the current gradients, so that the
#    transfer overlaps the computation.
#
#    With ``no sync``, every part of the batch still gathers the parameters. To gather them only for the first part,
#    also call ``set_reshard_after_forward(False)`` and ``set_reshard_after_backward(False)``. Each rank then keeps the
#    whole parameters. Call the second method with ``True`` before the last backward pass, because otherwise the next
#    step computes with the old parameters.
#
# If you write a backend, :doc:`/tutorial/what-a-backend-needs` says which of its methods each operator of the table
# reaches, and :doc:`/tutorial/options-and-reductions` which reductions DDP and FSDP2 request.
#
# Fewer bytes with mixed precision
# --------------------------------
#
# To transfer fewer bytes, FSDP2 can communicate and compute in a smaller type than that of the shards. A
# ``MixedPrecisionPolicy`` names two types: ``param_dtype`` for the all-gather and the computation, and
# ``reduce_dtype`` for the reduce-scatter of the gradients:
#
# .. listing:: gallery/overview/sharded_training/sharded_training.py
#    :part: mixed
#    :no-caption:

show_section(tables, "types")

# %%
# Both lines have the all-gather in ``bfloat16``, so ``reduce_dtype`` changes only the reduce-scatter. In ``bfloat16``,
# the reduce-scatter moves half as many bytes, but it rounds the sum of the gradients, and loses more precision with
# more ranks. The shards that the optimizer updates stay in ``float32`` in both cases, and so do their gradients.
#
# Set ``reduce_dtype`` yourself, because its default has changed.
#
# .. admonition:: Before 2.15
#
#    Without ``reduce_dtype``, gradients were reduced in ``param_dtype``, here in ``bfloat16``. Since 2.15
#    they are reduced in the type of the parameter, here in ``float32``.
#
# The choice
# ----------
#
# * Use DDP as long as the model, its gradients and its optimizer state fit into each device.
# * Use ``ZeroRedundancyOptimizer`` when only the optimizer state is too large, because the rest of a DDP
#   program stays the same. PyTorch still marks the class as experimental.
# * Use FSDP2 when the parameters and gradients are too large as well.
# * On several nodes, *hybrid sharding* (HSDP) shards within a node and keeps all shards on every node, so that
#   only gradients travel between the nodes. :doc:`several-nodes` shows which ranks then call what.
#
# Not run here: GPUs, several nodes, and ranks that differ in their layers or steps.

"""
ZeRO and FSDP2
==============

In data parallel training with ``DistributedDataParallel`` (DDP), every rank holds the whole model, its
gradients and the state of its optimizer. When this training state does not fit into one device, split it
among the ranks. This page does so in two ways, and counts what each rank holds and what the split costs
in communication.

.. diagram:: overview/sharded_training/diagram

The sample trains a small model for three steps with Adam:

.. listing:: gallery/overview/sharded_training/sharded_training.py
   :part: model
   :no-caption:

Two functions count elements of tensors. With FSDP2, a tensor can be a ``DTensor``, which is distributed
among ranks, and ``to_local`` returns the part of this rank. The state of Adam consists of two averages
for each parameter:

.. listing:: gallery/overview/sharded_training/sharded_training.py
   :part: count
   :no-caption:

All code of this page is one program, ``gallery/overview/sharded_training/sharded_training.py``, which
runs on two ranks. Its tables show numbers of elements:
"""

from launcher import PROFILER, launch

tables, _ = launch(
    "sharded_training/sharded_training.py",
    ranks=2,
    expected_stderr=PROFILER,
    show=False,
)


def show(name):
    """Print what rank 0 wrote under a name."""
    print(tables.partition(f"--- {name}\n")[2].partition("---")[0], end="")


# %%
# DDP: everything in every rank
# -----------------------------
#
# .. listing:: gallery/overview/sharded_training/sharded_training.py
#    :part: ddp
#    :no-caption:

show("DDP")

# %%
# With Adam, training needs memory for four times the parameters: the parameters, their gradients, and
# twice as much for the optimizer state. Every value is the same in every rank, which
# ``is_same_everywhere`` checks on copies from all ranks. So a second rank adds speed, but no memory.
#
# ZeRO: each rank updates its share
# ---------------------------------
#
# Because the state of Adam is half of the training state, the first stage of ZeRO (Zero Redundancy
# Optimizer) removes its copies. Each parameter belongs to one rank. Only this rank keeps the state of
# the parameter and updates it, and then it broadcasts the new values to the other ranks. With
# ``ZeroRedundancyOptimizer``, PyTorch does this for an optimizer of your choice, while the model remains
# wrapped in DDP:
#
# .. listing:: gallery/overview/sharded_training/sharded_training.py
#    :part: zero
#    :no-caption:

show("ZeRO")

# %%
# The optimizer states of both ranks add up to that of the whole model. They are not exactly equal,
# because a single parameter is not divided: rank 0 updates two parameters with 1088 elements together,
# and rank 1 updates two with 1040. The trained parameters are the same as with DDP, bit for bit.
#
# FSDP2: each rank holds its share
# --------------------------------
#
# FSDP (fully sharded data parallel) also splits the parameters and the gradients, like the third stage
# of ZeRO. PyTorch's second version of it, called FSDP2, is the function ``fully_shard``, which changes
# the model in place. Each parameter becomes a ``DTensor``, and each rank keeps some of its rows, called
# a *shard*. A *device mesh* names the ranks that take part; for GPUs, its device type is ``"cuda"``.
# Unlike DDP, ``fully_shard`` does not copy the parameters of rank 0 to the other ranks, so all ranks
# must create the same model.
#
# .. listing:: gallery/overview/sharded_training/sharded_training.py
#    :part: shard
#    :no-caption:
#
# Create the optimizer after ``fully_shard``, because the parameters are then new objects. It gets only
# the shards, so its state is split too.
#
# .. listing:: gallery/overview/sharded_training/sharded_training.py
#    :part: fsdp2
#    :no-caption:

show("FSDP2")

# %%
# Now each rank holds half of everything. A layer still computes with whole parameters, which FSDP2
# collects just before the layer runs, and frees afterwards. FSDP2 can collect one layer at a time only if
# the program applies ``fully_shard`` to each layer. Applied only to the model, it would collect all
# parameters at the same time.
#
# The result is that of one process that trains on the joined batches of both ranks. To compare the two,
# ``full_tensor`` collects the shards of a parameter:
#
# .. listing:: gallery/overview/sharded_training/sharded_training.py
#    :part: alone
#    :no-caption:
#
# The cost in communication
# -------------------------
#
# The price of less memory is more communication. To show it, PyTorch's profiler counted the methods of
# the backend that one step calls:

show("calls")

# %%
# * DDP reduces the gradients in groups, called buckets. This small model fits into one bucket, so one
#   all-reduce is enough for all gradients.
# * ZeRO's optimizer adds one broadcast for each of the four parameters.
# * FSDP2 makes three calls for each of the two layers: an all-gather of the parameters before the
#   forward pass, another one before the backward pass, and a reduce-scatter of the gradients. An
#   all-reduce transfers as much as a reduce-scatter and one all-gather together, so FSDP2, with its
#   second all-gather, transfers about 1.5 times as much as DDP.
# * The last line, ``kept``, is FSDP2 with ``reshard_after_forward=False``. It keeps the parameters whole
#   from the forward pass to the backward pass, which saves the second all-gather and needs more memory.
#
# With ``mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16)``, FSDP2 all-gathers and computes in
# ``bfloat16``. The shards that the optimizer updates stay in ``float32``.
#
# The choice
# ----------
#
# * Use DDP as long as the model, its gradients and its optimizer state fit into each device.
# * Use ``ZeroRedundancyOptimizer`` when only the optimizer state is too large, because the rest of a DDP
#   program stays the same. PyTorch still marks the class as experimental.
# * Use FSDP2 when the parameters and gradients are too large as well. Create a very large model on the
#   ``meta`` device, where it takes no memory, then call ``fully_shard``, and let ``to_empty`` allocate
#   the shards.
#
# ``FullyShardedDataParallel`` is the first version of FSDP. It still works, but PyTorch's documentation
# recommends ``fully_shard``.

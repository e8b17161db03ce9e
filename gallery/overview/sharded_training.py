"""
Split the training state: ZeRO and FSDP2
========================================

In data parallel training with ``DistributedDataParallel`` (DDP), every rank holds the
whole model and everything that belongs to it. That is simple, but the largest model is
then one that fits into a single device. This page counts what a rank holds, and then
splits it among the ranks.

.. diagram:: overview/sharded

The sample trains a small model for three steps with Adam:

.. literalinclude:: /../gallery/overview/workers/sharded_training.py
   :language: python
   :start-after: # [model]
   :end-before: # [/model]

Two functions count elements of tensors. A ``DTensor`` is a tensor that is distributed
among ranks; ``to_local`` returns the part in this rank. Adam keeps two averages for
each parameter, and they are what is counted as its state:

.. literalinclude:: /../gallery/overview/workers/sharded_training.py
   :language: python
   :start-after: # [count]
   :end-before: # [/count]

All of this page is one program on two ranks, ``gallery/overview/workers/sharded_training.py``.
Its tables show numbers of elements:
"""

from launcher import PROFILER, launch

tables, _ = launch(
    "workers/sharded_training.py",
    ranks=2,
    expected_stderr=PROFILER,
    show=False,
)


def show(name):
    """Print what rank 0 wrote under a name."""
    print(tables.partition(f"--- {name}\n")[2].partition("---")[0], end="")


# %%
# DDP: everything, in every rank
# ------------------------------
#
# .. literalinclude:: /../gallery/overview/workers/sharded_training.py
#    :language: python
#    :start-after: # [ddp]
#    :end-before: # [/ddp]

show("DDP")

# %%
# With Adam, the model needs room for four times its parameters: the parameters, their
# gradients, and twice as much for the optimizer state. ``is_same_everywhere`` gathers a
# tensor from all ranks and compares: all of it is the same in every rank. A second rank
# adds speed, but no room.
#
# ZeRO: each rank updates its share
# ---------------------------------
#
# The name ZeRO stands for Zero Redundancy Optimizer. Its first stage removes the copies
# of the optimizer state. Each parameter belongs to one rank. That rank alone keeps the
# state for it and updates it, and then broadcasts the new values to the others. In
# PyTorch, ``ZeroRedundancyOptimizer`` does this for an optimizer of your choice. The
# model remains under DDP:
#
# .. literalinclude:: /../gallery/overview/workers/sharded_training.py
#    :language: python
#    :start-after: # [zero]
#    :end-before: # [/zero]

show("ZeRO")

# %%
# The two parts add up to the state of the whole model. They are not exactly equal,
# because a parameter is not divided: rank 0 takes care of two parameters with 1088
# elements, rank 1 of two with 1040. The trained parameters are the same as under DDP,
# bit for bit.
#
# FSDP2: each rank holds its share
# --------------------------------
#
# FSDP means fully sharded data parallel. Parameters and gradients are split too, which
# is the third stage of ZeRO. ``fully_shard`` is PyTorch's second version of FSDP, and
# is called FSDP2. It changes the model in place: each parameter becomes a ``DTensor``,
# and each rank keeps a part of its rows, which is called a *shard*. The *device mesh*
# says which ranks take part. On GPUs its device type is ``"cuda"``. Unlike DDP,
# ``fully_shard`` does not copy the parameters of rank 0 to the others, so all ranks
# have to create the same model.
#
# .. literalinclude:: /../gallery/overview/workers/sharded_training.py
#    :language: python
#    :start-after: # [shard]
#    :end-before: # [/shard]
#
# Create the optimizer after ``fully_shard``, because the parameters are new objects.
# The optimizer then sees the shards only, and so its state is split without further
# work.
#
# .. literalinclude:: /../gallery/overview/workers/sharded_training.py
#    :language: python
#    :start-after: # [fsdp2]
#    :end-before: # [/fsdp2]

show("FSDP2")

# %%
# Now each rank holds half of everything. A layer still computes with whole parameters:
# they are put together just before it runs, and freed after it. This is why
# ``fully_shard`` is applied to each layer and not only to the model. With the model
# alone, all parameters would be whole at the same time.
#
# The result is that of one process that trains on the batches of both ranks, joined.
# ``full_tensor`` puts the shards of a parameter together:
#
# .. literalinclude:: /../gallery/overview/workers/sharded_training.py
#    :language: python
#    :start-after: # [alone]
#    :end-before: # [/alone]
#
# What it costs
# -------------
#
# Less memory is paid for with more communication. Here are the methods of the backend
# that one step calls, counted with PyTorch's profiler:

show("calls")

# sphinx_gallery_start_ignore
assert tables.count("---") == 4
assert "4256     4256" in tables and "2176     2080" in tables
assert tables.count("1064     1064") == 2
# sphinx_gallery_end_ignore

# %%
# * DDP needs one all-reduce for all gradients. It reduces them in groups, called
#   buckets, and this small model fits into one.
# * ZeRO's optimizer adds one broadcast for each of the four parameters.
# * FSDP2 needs, for each of the two layers, an all-gather of the parameters before its
#   forward, another one before its backward, and then a reduce-scatter of its
#   gradients. An all-reduce transfers as much as a reduce-scatter and an all-gather
#   together. FSDP2 has one more all-gather, so it transfers about 1.5 times as much as
#   DDP.
# * The last line, ``kept``, is FSDP2 with ``reshard_after_forward=False``. It keeps the
#   parameters whole from the forward to the backward. That saves the second all-gather
#   and needs more memory.
#
# With ``mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16)``, FSDP2 gathers and
# computes in ``bfloat16``, while the shards that the optimizer updates stay in
# ``float32``.
#
# Which one to use
# ----------------
#
# * DDP, as long as the model, its gradients and its optimizer state fit into each
#   device.
# * ``ZeroRedundancyOptimizer``, when only the optimizer state is too large. The rest of
#   a DDP program stays as it is. The class is still marked as experimental.
# * FSDP2, when the parameters and gradients are too large as well. Create a very large
#   model on the ``meta`` device, where it takes no memory, call ``fully_shard``, and
#   let ``to_empty`` allocate the shards.
#
# ``FullyShardedDataParallel`` is the first version of FSDP. It still works, but
# PyTorch's documentation recommends ``fully_shard``.

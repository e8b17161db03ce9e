"""
Tensor and pipeline parallelism
===============================

In data parallel training, even with FSDP2, each rank computes the whole model for its part of the batch.
When that is too slow or needs too much memory, split the model itself, so that each rank computes only a
part of it. This page shows the two ways to cut a model, inside the layers and between them, and what
each costs in communication.

Tensor parallelism: inside the layers
-------------------------------------

*Tensor parallelism* cuts inside the layers: each rank holds a part of each matrix, and all ranks work on
the same input at the same time. The sample is a block of two linear layers, as in a Transformer:

.. listing:: gallery/overview/tensor_and_pipeline_parallel/tensor_parallel.py
   :part: model

.. diagram:: overview/tensor_and_pipeline_parallel/tensor-parallel

``parallelize_module`` turns the parameters into ``DTensor`` objects, which are tensors distributed among
the ranks of a *device mesh*. The plan says how to cut each layer:

.. listing:: gallery/overview/tensor_and_pipeline_parallel/tensor_parallel.py
   :part: split
   :no-caption:

* ``ColwiseParallel`` divides the outputs of a layer among the ranks. Each rank computes its half of the 16
  values between the layers. Because ``relu`` treats each value alone, the rank needs nothing from the other rank.
* ``RowwiseParallel`` divides the inputs of a layer. Each rank multiplies its half of the inputs by its half
  of the matrix. The output is the sum over all ranks, so it takes an all-reduce.

The output and the gradients must be those of the whole model. The program compares them, and counts the collectives
of each pass:

.. admonition:: The comparison with the whole model
   :collapsible: closed

   ``full_tensor`` collects the parts of a gradient, and ``CommDebugMode`` counts the collectives:

   .. listing:: gallery/overview/tensor_and_pipeline_parallel/tensor_parallel.py
      :part: compare
      :no-caption:
"""

from launcher import launch

launch("tensor_and_pipeline_parallel/tensor_parallel.py", ranks=2)

# %%
# A weight has one row for each output. The first layer, ``up``, has half of its outputs on each rank, so ``[8, 4]`` is
# left of ``[16, 4]``. Every rank holds the whole bias of the second layer, ``down``, because the bias is added to the
# sum.
#
# The backward pass needs an all-reduce too, because each rank has computed the gradient of the input from its half
# only. So each block needs two all-reduces, and all ranks wait for each of them. That takes fast connections, so tensor
# parallelism usually stays within a node, that is, one machine.
#
# Pipeline parallelism: between the layers
# ----------------------------------------
#
# *Pipeline parallelism* cuts between the layers: each rank holds some consecutive layers, called a
# *stage*. A stage receives activations from the previous stage and sends its own to the next one. In the
# backward pass, gradients go the other way. All of this is point-to-point communication.
#
# A real program creates on each rank only the stage of this rank. In the sample, every rank creates the whole model,
# because the results are compared with it, and ``mine`` is the stage of the rank:
#
# .. listing:: gallery/overview/tensor_and_pipeline_parallel/pipeline_parallel.py
#    :part: parts
#
# If the batch went through the stages as a whole, only one rank could work at a time. So a *schedule*
# splits the batch of eight examples into four *microbatches* of two, and determines the order in which a
# rank computes their forward and backward passes.
#
# The function ``step`` runs one batch through a schedule. Its ``PipelineStage`` takes an example of the data between
# the stages, from which it learns the shapes. Only the first stage receives the inputs, and only the last one receives
# the targets:
#
# .. listing:: gallery/overview/tensor_and_pipeline_parallel/pipeline_parallel.py
#    :part: step
#    :no-caption:
#
# To show the order, hooks record what a rank does. ``F2`` is the forward pass of microbatch 2, and
# ``B2`` is its backward pass:
#
# .. admonition:: The hooks that record the order
#    :collapsible: closed
#
#    .. listing:: gallery/overview/tensor_and_pipeline_parallel/pipeline_parallel.py
#       :part: record
#       :no-caption:
#
# Two schedules, ``ScheduleGPipe`` and ``Schedule1F1B``, run one after the other. Both must give the gradients and the
# loss of the whole model:
#
# .. admonition:: The comparison with the whole model
#    :collapsible: closed
#
#    .. listing:: gallery/overview/tensor_and_pipeline_parallel/pipeline_parallel.py
#       :part: compare
#       :no-caption:

outputs = launch("tensor_and_pipeline_parallel/pipeline_parallel.py", ranks=2)

# %%
# .. diagram:: overview/tensor_and_pipeline_parallel/pipeline-parallel
#
# ``ScheduleGPipe`` computes all forward passes first, then all backward passes, whereas ``Schedule1F1B``
# begins each backward pass as early as possible. Its name means one forward, one backward: between the
# first forward passes and the last backward passes, a rank alternates between the two.
#
# The bubble: how long the ranks wait
# -----------------------------------
#
# A forward pass waits for the previous stage, and a backward pass for the next one. To show how long the
# ranks wait, this code puts the orders from above on one time axis. It assumes that each forward and
# each backward pass takes one unit of time, and that messages take none:

from itertools import accumulate

from shared.bubble import put_on_a_clock

for schedule in ("ScheduleGPipe", "Schedule1F1B"):
    print(schedule)
    orders = [text.partition(schedule)[2].split()[:8] for text in outputs]
    rows = put_on_a_clock(orders)
    for rank, row in enumerate(rows):
        steps = [1 if task.startswith("F") else -1 for task in orders[rank]]
        print(f"rank {rank}  {' '.join(row)}  holds {max(accumulate(steps))}")
        assert row.count("..") / len(row) == 1 / 5

# sphinx_gallery_start_ignore
more = [f"F{i}" for i in range(16)] + [f"B{i}" for i in range(16)]
for row in put_on_a_clock([more, more]):
    assert row.count("..") / len(row) == 1 / (16 + 1)
# sphinx_gallery_end_ignore

# %%
# .. admonition:: ``put_on_a_clock``
#    :collapsible: closed
#
#    .. listing:: gallery/overview/shared/bubble.py
#       :part: clock
#
# The dots are the *bubble*, the time in which a rank must wait. With ``p`` stages and ``m`` microbatches, its share of
# the time is ``(p - 1) / (m + p - 1)``, which is one fifth here, and is smaller with more microbatches. It is also
# smaller if each rank has several short stages, as with ``ScheduleInterleaved1F1B``, because the next stage can begin
# earlier.
#
# Although GPipe and 1F1B have the same bubble, 1F1B needs less memory, as the number behind ``holds`` shows. A rank
# holds the activations of a microbatch from its forward pass to its backward pass. With GPipe, a rank holds those of
# all microbatches at once. With 1F1B, it holds those of a few, at most as many as there are stages.
#
# Combinations
# ------------
#
# Tensor parallelism usually stays within a node because of its all-reduces, so a job on several nodes needs another
# kind of parallelism between the nodes.
#
# To combine kinds of parallelism, a device mesh with two dimensions arranges the ranks in a table, and
# each dimension serves one kind. Because this sample has only two ranks, its first dimension has the
# size 1. Eight ranks could form ``(4, 2)``.
#
# .. listing:: gallery/overview/tensor_and_pipeline_parallel/tensor_parallel.py
#    :part: mesh
#    :no-caption:
#
# After tensor parallelism has cut the parameters, ``fully_shard`` shards them along the data parallel dimension.
#
# A pipeline takes its ranks from a third dimension: ``get_group`` of the mesh returns the process group of a
# dimension, which you pass to ``PipelineStage`` as ``group``.
#
# So the two ways to cut a model ask different things of a backend. Tensor parallelism needs a fast all-reduce, twice
# for each block. A pipeline needs point-to-point messages between neighbours, and pays with the bubble.
#
# Not run here: GPUs, a third dimension, and schedules with several stages on each rank.

"""
Split the model: tensor and pipeline parallel
=============================================

In data parallel training, with FSDP2 too, each rank computes the whole model for a part
of the batch. When that is too slow or needs too much memory, the model itself can be
split, so that a rank computes only a part of it. There are two ways to cut a model:
through the layers, or between them.

Tensor parallel
---------------

*Tensor parallel* cuts through the layers. Each rank holds a part of each matrix, and
all ranks work on the same input at the same time. The sample is a block of two linear
layers, as in a transformer:

.. literalinclude:: /../gallery/overview/workers/tensor_parallel.py
   :language: python
   :start-after: # [model]
   :end-before: # [/model]

.. diagram:: overview/tensor-parallel

``parallelize_module`` turns the parameters into ``DTensor`` objects: tensors that are
distributed among the ranks of a *device mesh*. The plan says how to cut each layer:

.. literalinclude:: /../gallery/overview/workers/tensor_parallel.py
   :language: python
   :start-after: # [split]
   :end-before: # [/split]

* ``ColwiseParallel`` divides the outputs of a layer among the ranks. Each rank computes
  its half of the 16 values between the layers. ``relu`` treats each value alone, so it
  needs nothing from the other rank.
* ``RowwiseParallel`` divides the inputs of a layer. Each rank multiplies the half that
  it has by its half of the matrix. The output is the sum over all ranks, and that takes
  an all-reduce.

``CommDebugMode`` counts the collectives. Output and gradients have to be those of the
whole model; ``full_tensor`` puts the parts of a gradient together:

.. literalinclude:: /../gallery/overview/workers/tensor_parallel.py
   :language: python
   :start-after: # [compare]
   :end-before: # [/compare]
"""

from launcher import launch

launch("workers/tensor_parallel.py", ranks=2)

# %%
# A weight has one row for each output, so half of the outputs leaves ``[8, 4]`` of
# ``[16, 4]``. Every rank holds the whole bias of the second layer, because that is
# added to the sum.
#
# The all-reduce in the backward adds up the gradient of the input, which each rank has
# computed from its half only. So each block needs two all-reduces, and all ranks wait
# for them. That calls for fast connections, so tensor parallel is usually kept within a
# node.
#
# Pipeline parallel
# -----------------
#
# *Pipeline parallel* cuts between the layers. Each rank holds some consecutive layers,
# which are called a *stage*. A stage receives activations from the one before it and
# sends its own to the one after it. In the backward, gradients go the other way. All of
# this is point-to-point communication. The sample makes the whole model only to compare
# with it; otherwise a rank creates just its own stage.
#
# .. literalinclude:: /../gallery/overview/workers/pipeline_parallel.py
#    :language: python
#    :start-after: # [parts]
#    :end-before: # [/parts]
#
# If the batch went through as a whole, only one rank could work at a time. So the batch
# of eight is split into four *microbatches* of two. A *schedule* determines in which
# order a rank computes their forwards and backwards.
#
# ``PipelineStage`` is given an example of what passes between the stages. Without it,
# PyTorch runs each stage once more to find the shapes. Only the first stage receives
# the inputs, and only the last one the targets:
#
# .. literalinclude:: /../gallery/overview/workers/pipeline_parallel.py
#    :language: python
#    :start-after: # [step]
#    :end-before: # [/step]
#
# Hooks write down what a rank really does. ``F2`` is the forward of microbatch 2, and
# ``B2`` is its backward:
#
# .. literalinclude:: /../gallery/overview/workers/pipeline_parallel.py
#    :language: python
#    :start-after: # [record]
#    :end-before: # [/record]
#
# Two schedules run one after the other. Both have to give the gradients and the loss of
# the whole model:
#
# .. literalinclude:: /../gallery/overview/workers/pipeline_parallel.py
#    :language: python
#    :dedent:
#    :start-after: # [compare]
#    :end-before: # [/compare]

outputs = launch("workers/pipeline_parallel.py", ranks=2)

# %%
# .. diagram:: overview/pipeline-parallel
#
# ``ScheduleGPipe`` computes all forwards first, then all backwards. ``Schedule1F1B``
# starts with the backwards as early as possible. Its name means one forward, one
# backward: between the first forwards and the last backwards, a rank does them in turn.
#
# The bubble
# ----------
#
# A forward waits for the stage before it, and a backward for the stage after it. This
# code puts the orders from above on a common clock. It assumes that each forward and
# each backward takes one unit of time, and a message none:

from itertools import accumulate


def can_start(task, rank, done):
    other = rank - 1 if task.startswith("F") else rank + 1
    return other not in (0, 1) or (other, task) in done


def put_on_a_clock(orders):
    """Return a row for each rank, with two dots where it has to wait."""
    todo, rows, done = [list(order) for order in orders], [[], []], set()
    while any(todo):
        started = [r for r in (0, 1) if todo[r] and can_start(todo[r][0], r, done)]
        assert started, "each rank waits for the other"
        for rank in (0, 1):
            rows[rank].append(todo[rank].pop(0) if rank in started else "..")
        done |= {(rank, rows[rank][-1]) for rank in started}
    return rows


for schedule in ("ScheduleGPipe", "Schedule1F1B"):
    print(schedule)
    orders = [text.partition(schedule)[2].split()[:8] for text in outputs]
    rows = put_on_a_clock(orders)
    for rank, row in enumerate(rows):
        steps = [1 if task.startswith("F") else -1 for task in orders[rank]]
        print(f"rank {rank}  {' '.join(row)}  holds {max(accumulate(steps))}")
        assert row.count("..") / len(row) == 1 / 5

# sphinx_gallery_start_ignore
    expected = {"ScheduleGPipe": [4, 4], "Schedule1F1B": [2, 1]}[schedule]
    for order, most in zip(orders, expected, strict=True):
        assert len(order) == 8
        assert max(accumulate(1 if t[0] == "F" else -1 for t in order)) == most
more = [f"F{i}" for i in range(16)] + [f"B{i}" for i in range(16)]
for row in put_on_a_clock([more, more]):
    assert row.count("..") / len(row) == 1 / (16 + 1)
# sphinx_gallery_end_ignore

# %%
# The dots are the *bubble*: time in which a rank has to wait. With ``p`` stages and
# ``m`` microbatches, its share of the time is ``(p - 1) / (m + p - 1)``, here one
# fifth. More microbatches make it smaller.
#
# Both schedules have the same bubble. The last column shows what 1F1B is for. The
# activations of a microbatch are held from its forward to its backward. GPipe holds
# them for all microbatches at once, 1F1B for no more microbatches than there are
# stages. Other schedules, such as ``ScheduleInterleaved1F1B`` and
# ``ScheduleZBVZeroBubble``, give each rank several stages and make the bubble smaller.
#
# Combine them
# ------------
#
# A device mesh with two dimensions arranges the ranks in a table. Each dimension is
# used for one kind of parallelism. Here there are only two ranks, and so the first
# dimension has one row; eight ranks could form ``(4, 2)``.
#
# .. literalinclude:: /../gallery/overview/workers/tensor_parallel.py
#    :language: python
#    :start-after: # [mesh]
#    :end-before: # [/mesh]
#
# ``fully_shard`` shards the parameters in the data parallel dimension, after tensor
# parallel has cut them. A pipeline takes its ranks from a third dimension:
# ``PipelineStage`` accepts a process group as ``group``, and ``get_group`` of the mesh
# returns it. On GPUs the mesh is made for ``"cuda"``, and ``device`` is the GPU of the
# rank.

"""
The memory of training
======================

A model must be split when its training does not fit into one device, however fast that device is. This
page estimates how much memory a training takes, so that you can choose what to split. At the end, it
shows what happens when a rank runs out of memory.

.. diagram:: overview/memory/diagram

The training state
------------------

Parameters, their gradients and the state of the optimizer are the *training state*. Their sizes depend
on the model and the optimizer, not on the batch, so one step of one layer is enough to measure them.
This code uses a layer of a Transformer and Adam, which keeps two averages for each parameter, and counts
bytes:
"""

import torch
from shared.sizes import sizes_of_state
from torch import nn


def make_layer(width):
    return nn.TransformerEncoderLayer(width, nhead=width // 64, dim_feedforward=4 * width)


model = make_layer(width=128)
adam = torch.optim.Adam(model.parameters())
model(torch.rand(4, 2, 128)).sum().backward()
adam.step()

sizes = sizes_of_state(model, adam)
count = sum(parameter.numel() for parameter in model.parameters())
for name, size in sizes.items():
    print(f"{name:15} {size:8} bytes, {size // count} for each parameter")
print(f"{'together':15} {sum(sizes.values()):8} bytes, {sum(sizes.values()) // count}")

# %%
# .. admonition:: The code that counts bytes
#    :collapsible: closed
#
#    .. listing:: gallery/overview/shared/sizes.py
#       :part: state
#
# A number of type ``float32`` takes 4 bytes, so training with Adam takes 16 bytes for each parameter. On
# the ``meta`` device, a model has shapes but no data. This code can therefore count the parameters of
# models that are too large for this computer, and compare their training state with a device of 80 GB:

from result_table import show_table

GB, DEVICE = 10**9, 80
rows = []
for width, layers in [(768, 12), (2048, 24), (4096, 32), (8192, 80)]:
    with torch.device("meta"):
        layer = make_layer(width)
    count = layers * sum(parameter.numel() for parameter in layer.parameters())
    state = 16 * count / GB
    devices = -(-state // DEVICE)
    rows.append([str(width), str(layers), f"{count / GB:.1f}", f"{state:.0f}", f"{devices:.0f}"])

show_table(
    ["width", "layers", "billion parameters", "training state, GB", "devices of 80 GB"], rows
)

# %%
# Only the first two models fit into one device, even without the activations of the next section.
#
# The activations
# ---------------
#
# The forward pass also keeps *activations*, the values that the backward pass needs. Unlike the training state, they
# grow with the batch.
#
# To save memory at the cost of time, use ``torch.utils.checkpoint``. The forward pass then keeps only the input of each
# layer, called a *checkpoint*, and the backward pass computes the layer again. The table shows the
# bytes of the activations without and with such checkpoints:
#
# .. admonition:: The code that adds up the activations
#    :collapsible: closed
#
#    Hooks of autograd see each tensor that is kept, so this code can add up those that are not parameters:
#
#    .. listing:: gallery/overview/shared/sizes.py
#       :part: activations

from shared.sizes import run_checkpointed, size_of_activations

layers = nn.Sequential(
    *[nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)) for _ in range(4)]
)
rows = []
for batch in (1, 2, 4, 8):
    inputs = torch.rand(batch, 64)
    kept = size_of_activations(layers, inputs)
    recomputed = size_of_activations(layers, inputs, run_checkpointed)
    rows.append([str(batch), str(kept), str(recomputed)])

show_table(["batch", "activations, bytes", "with checkpoints, bytes"], rows)

# %%
# With twice the batch, the activations take twice the memory, with and without checkpoints. In each row, checkpoints
# save most of the memory for activations.
#
# What each feature splits
# ------------------------
#
# PyTorch has several features that train one model on many ranks, and they differ in which parts of the memory they
# split. To choose one, first compare the training state of a rank. The next table shows it for one of eight ranks that
# train the third model above. ``DistributedDataParallel`` (DDP) splits nothing, and ``ZeroRedundancyOptimizer`` (ZeRO)
# splits only the state of the optimizer. ``fully_shard`` (FSDP2), ``parallelize_module`` (tensor parallelism) and
# ``PipelineStage`` (pipeline parallelism) split all of the training state:

count, ranks = 6.44, 8  # In billions, so bytes for each parameter become GB.
for_each_parameter = {
    "DistributedDataParallel": 4 + 4 + 8,
    "ZeroRedundancyOptimizer": 4 + 4 + 8 / ranks,
    "fully_shard": (4 + 4 + 8) / ranks,
    "parallelize_module": (4 + 4 + 8) / ranks,
    "PipelineStage": (4 + 4 + 8) / ranks,
}
show_table(
    ["feature", "bytes for each parameter", "GB in each rank"],
    [[name, f"{x:g}", f"{x * count:.0f}"] for name, x in for_each_parameter.items()],
)

# %%
# In the last column, only ``DistributedDataParallel`` exceeds the memory of a device of 80 GB, because it splits
# none of the training state.
#
# The table assumes an even division. :doc:`sharded-training` counts the elements for the first three
# features, and :doc:`tensor-and-pipeline-parallel` shows the parts of the other two. The activations
# differ too:
#
# * With data parallelism, FSDP2 included, each rank keeps the activations of its part of the batch.
# * Tensor parallelism also splits the activations inside the layers.
# * With pipeline parallelism, a rank keeps only the activations of its own layers, for
#   several parts of the batch at a time.
#
# Temporary tensors add to the training state and the activations. With DDP, they include the buckets, in which DDP
# all-reduces a second copy of the gradients. This copy takes another 4 bytes for each parameter, unless you set
# ``gradient_as_bucket_view=True``.
#
# FSDP2 reaches its peak in the backward pass, when a rank also holds up to four tensors as large as all
# parameters of one layer: the parameters of two layers, the gradients of one, and the input of a
# reduce-scatter. For the third model, whose layers take 0.8 GB each, about 3.2 GB come on top of the 13 GB.
#
# PyTorch's allocator also holds some memory in reserve, so leave room for it. On GPUs, compare the estimate with the
# peak that ``torch.cuda.max_memory_allocated`` returns.
#
# When one rank runs out of memory
# --------------------------------
#
# An estimate can fit almost all batches, and be too low for one of them. Often only one rank then runs out of memory,
# for example because its batch contains an unusually long text. The program can catch the exception and skip the step,
# but the other ranks do not notice that.
#
# In this sample, ``has_memory_for`` returns false on rank 1 in step 1. So that the output shows which steps the ranks
# combine, ``average`` exchanges the numbers of the steps instead of gradients:
#
# .. listing:: gallery/overview/memory/out_of_memory.py
#    :part: lengths
#
# First, each rank decides alone:
#
# .. listing:: gallery/overview/memory/alone.py
#    :part: alone

from launcher import launch

outputs = launch("memory/alone.py", ranks=2)

# sphinx_gallery_start_ignore
assert issubclass(torch.OutOfMemoryError, RuntimeError)
# sphinx_gallery_end_ignore

# %%
# When rank 1 skips the step alone, nothing fails at first. The ranks silently average gradients of different steps:
# ``average of steps 1 2`` in the output means step 1 of rank 0 and step 2 of rank 1. At the end, rank 0 makes one
# call more than rank 1, and gets an error.
#
# The fix is a small all-reduce, with which all ranks decide together:
#
# .. listing:: gallery/overview/memory/together.py
#    :part: together

outputs = launch("memory/together.py", ranks=2)

# %%
# Now both ranks skip step 1, so each call of ``average`` combines the same step of both ranks. This costs an all-reduce
# in each step. It helps only if the memory runs out before the first collective of the step. If DDP has already started
# to reduce its gradients, no rank can skip the step any more, and all ranks must restart (:doc:`elastic`).
#
# Not run here: training on a GPU, and the peak of FSDP2, which follows from the order of its calls.

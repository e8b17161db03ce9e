"""
Train on more data: one device, DataParallel, DDP
=================================================

Most models fit on one device, and what takes time is the amount of data. Then every
device gets a copy of the model and a part of each batch. This is called *data
parallel* training.

.. diagram:: overview/data-parallel

One device
----------

Begin here. A program on one device is the easiest to write and to debug, and it is
what all others are compared with. This is the training loop for the whole page:

.. literalinclude:: /../gallery/overview/workers/data_parallel.py
   :language: python
   :caption: gallery/overview/workers/data_parallel.py
   :start-after: # [train]
   :end-before: # [/train]

The model has two small layers and learns to add up four numbers:
"""

from workers.data_parallel import make_batch, make_model, train

losses = train(make_model(), *make_batch())
print(f"loss: {losses[0]:.4f}, after {len(losses)} steps {losses[-1]:.4f}")

# sphinx_gallery_start_ignore
assert losses[-1] < losses[0] / 10
# sphinx_gallery_end_ignore

# %%
# ``DataParallel``
# ----------------
#
# ``torch.nn.DataParallel`` is the older way to use several GPUs, and needs a single line.
# It stays within one process: in every forward pass it copies the model to all GPUs,
# splits the batch, and runs one thread for each GPU. The copies cost time in each
# step, and the threads take turns at Python's global interpreter lock (GIL). It cannot
# go beyond one node.
#
# Without a GPU there is nothing to split, and the wrapper hands the batch on to the
# model as it is:

import torch

model = make_model()
wrapped = torch.nn.DataParallel(model)
inputs, _ = make_batch()
print("devices:", len(wrapped.device_ids) or "none, the model runs where it is")

# sphinx_gallery_start_ignore
if not torch.cuda.is_available():
    assert torch.equal(wrapped(inputs), model(inputs))
# sphinx_gallery_end_ignore

# %%
# PyTorch itself recommends ``DistributedDataParallel`` in its place, on a single node,
# too.
#
# ``DistributedDataParallel``
# ---------------------------
#
# ``DistributedDataParallel``, *DDP* for short, runs one process for each device. The model
# is copied once, in the constructor: rank 0 broadcasts its parameters. From then on
# each rank computes gradients from its own data, DDP averages them with an
# all-reduce, and every rank takes the same step. The processes share no interpreter
# and need not be on one node.
#
# .. literalinclude:: /../gallery/overview/workers/data_parallel.py
#    :language: python
#    :dedent:
#    :start-after: # [ddp]
#    :end-before: # [/ddp]
#
# Here a slice divides the batch. In a program with a ``DataLoader`` that is the task of
# ``torch.utils.data.DistributedSampler``. For GPUs, move the model to its device first and
# pass ``device_ids=[local_rank]``.
#
# Two things must hold in the end. All replicas are equal, to the last bit. And they are
# what one process would have learned from the whole batch, except for rounding:
#
# .. literalinclude:: /../gallery/overview/workers/data_parallel.py
#    :language: python
#    :dedent:
#    :start-after: # [compare]
#    :end-before: # [/compare]
#
# The second holds because the parts of the batch are of the same size: only then is
# the average of the averages the average of all.
#
# Mixed precision
# ---------------
#
# DDP works with ``torch.autocast``. Inside it, matrix products are computed in a shorter
# type. The parameters stay in ``float32``, and so do the gradients that DDP
# all-reduces:
#
# .. literalinclude:: /../gallery/overview/workers/data_parallel.py
#    :language: python
#    :dedent:
#    :start-after: # [autocast]
#    :end-before: # [/autocast]
#
# ``bfloat16`` has the range of ``float32``. ``float16`` has not: small gradients become
# zero there, and ``torch.amp.GradScaler`` has to scale the loss.
#
# The run
# -------
#
# The whole program on two ranks:

from launcher import launch

outputs = launch("workers/data_parallel.py", ranks=2)

# sphinx_gallery_start_ignore
for output in outputs:
    assert "all replicas are equal: True" in output
    assert "joined batch: True" in output
# sphinx_gallery_end_ignore

# %%
# The losses differ from rank to rank, because each rank has other rows. The parameters
# do not.
#
# How DDP hides the time of the all-reduce, the next page shows.

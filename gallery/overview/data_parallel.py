"""
DataParallel and DDP
====================

When a model fits on one device and only the amount of data takes the time, give every device a copy of
the model and a part of each batch. This is called *data parallel* training. This page begins with one
device, and compares PyTorch's two ways to use several.

.. diagram:: overview/data_parallel/diagram

One device
----------

Begin here, because a program on one device is the easiest to write and to debug. It also gives the
result with which the other programs are compared. The whole page uses this training loop:

.. listing:: gallery/overview/shared/data_parallel.py
   :part: train

The model has two small layers and learns to add four numbers:
"""

from shared.data_parallel import make_batch, make_model, train

losses = train(make_model(), *make_batch())
print(f"loss: {losses[0]:.4f}, after {len(losses)} steps {losses[-1]:.4f}")

# %%
# ``DataParallel``
# ----------------
#
# ``torch.nn.DataParallel`` is the older way to use several GPUs, and takes a single line. It stays
# within one process, and so within one node. In every forward pass it copies the model to all GPUs,
# splits the batch, and runs one thread for each GPU. That makes it slow, because the copies cost time in
# each step, and the threads wait for each other at Python's global interpreter lock (GIL).
#
# Without a GPU, the wrapper only passes the batch on to the model:

import torch

model = make_model()
wrapped = torch.nn.DataParallel(model)
inputs, _ = make_batch()
print("devices:", len(wrapped.device_ids) or "none, the model runs where it is")

# sphinx_gallery_start_ignore
assert torch.equal(wrapped(inputs), model(inputs))
# sphinx_gallery_end_ignore

# %%
# `PyTorch's documentation <https://docs.pytorch.org/docs/2.15/generated/torch.nn.DataParallel.html>`__
# recommends ``DistributedDataParallel`` instead, even on a single node.
#
# ``DistributedDataParallel``
# ---------------------------
#
# ``DistributedDataParallel``, *DDP* for short, runs one process for each device, so the processes share
# no interpreter and can be on several nodes. Each rank computes gradients from its own data. DDP
# averages them with an all-reduce, and therefore every rank makes the same update.
#
# .. listing:: gallery/overview/shared/data_parallel.py
#    :part: ddp
#    :no-caption:
#
# Here a slice divides the batch. In a program with a ``DataLoader``, use
# ``torch.utils.data.DistributedSampler``. For GPUs, move the model to its device before you wrap it, and
# pass ``device_ids=[local_rank]``.
#
# Equal updates keep the replicas equal only if they begin with the same parameters, so the constructor
# of DDP takes care of that. In this listing each rank begins with other values, and ``CommDebugMode``
# counts the operations that the constructor calls:
#
# .. listing:: gallery/overview/shared/data_parallel.py
#    :part: constructor
#    :no-caption:
#
# With the all-gather, the ranks compare their numbers of parameters. The first broadcast sends the
# shapes of rank 0, which every rank compares with its own. The second one sends the values of rank 0,
# and the other ranks adopt them.
#
# After the training, two things must hold. All replicas are equal, bit for bit. Except for rounding,
# they are also what one process would have learned from the whole batch:
#
# .. listing:: gallery/overview/shared/data_parallel.py
#    :part: compare
#    :no-caption:
#
# The second holds because all parts of the batch have the same size. Only then does the average of the
# averages equal the average of all.
#
# Mixed precision
# ---------------
#
# To compute faster, ``torch.autocast`` computes matrix products in a type with fewer bits. DDP works
# with it unchanged, because the parameters stay in ``float32``, and so do the gradients that DDP
# all-reduces:
#
# .. listing:: gallery/overview/shared/data_parallel.py
#    :part: autocast
#    :no-caption:
#
# ``bfloat16`` has the range of ``float32``. ``float16`` has a smaller range, in which small gradients
# become zero, so ``torch.amp.GradScaler`` must scale the loss.
#
# Two ranks run the whole program:

from launcher import launch

outputs = launch("shared/data_parallel.py", ranks=2)

# %%
# The losses differ from rank to rank, because each rank has other rows. The parameters do not differ.
#
# Uneven inputs
# -------------
#
# Every backward pass contains an all-reduce, so all ranks must make the same number of steps. A rank
# with fewer batches would finish early, and the others would fail or wait until the timeout.
# ``DistributedSampler`` prevents this by giving each rank equally many examples. Where the data cannot
# be divided evenly, use the context manager ``join``:
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
# ``join`` repeats only the communication of DDP. If the forward pass of your model calls collectives
# itself, pass ``throw_on_early_termination=True``. Then all ranks raise an error as soon as one has no
# more data.
#
# :doc:`gradient-buckets` shows how DDP hides the time of the all-reduce.

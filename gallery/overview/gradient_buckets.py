"""
DDP's gradient buckets
======================

A program that averages its gradients only after the backward pass makes the devices wait for the network in every
step. ``DistributedDataParallel`` (DDP) can hide most of this time, because it runs its all-reduces in the backward
pass. This page compares both ways, and shows what you can change where the all-reduces still cost time: the size of
the buckets, which are groups of gradients, the number of calls, and the number of bytes.

Gradients averaged without DDP
------------------------------

To see what DDP does for you, first average by hand. The program all-reduces each gradient after the backward pass and
divides it by the world size. So that the order is visible, ``record_gradients``, shown below, notes when the gradient
of each of the four layers is ready. ``backward`` returns these notes:

.. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
   :part: by-hand
   :no-caption:

The program runs on two ranks, and this page shows what rank 0 prints:
"""

from launcher import launch
from shared.sections import show_section

output, _ = launch("gradient_buckets/gradient_buckets.py", ranks=2, show=False)
show_section(output, "by hand")

# %%
# As the output shows, the all-reduces start only when all gradients are ready, and each call waits for the network.
# In exchange, you control which gradients are averaged, when, and with which operation.
#
# Buckets: all-reduces during the backward pass
# ---------------------------------------------
#
# The backward pass computes gradients from the last layer to the first, so those of the last layer are
# ready long before those of the first. DDP does not wait for the end. It collects gradients in *buckets*,
# and all-reduces each bucket while the backward pass goes on, so that communication and computation overlap:
#
# .. diagram:: overview/gradient_buckets/diagram
#
# All ranks must make the same calls in the same order, although on each rank the gradients may become ready in another
# order. Therefore DDP numbers the buckets, and starts the all-reduce of a bucket when the bucket's own gradients are
# ready and the all-reduces of all earlier buckets have started. S. Li et al. describe this design in `PyTorch
# Distributed: Experiences on Accelerating Data Parallel Training
# <https://www.vldb.org/pvldb/vol13/p3005-li.pdf>`__ (VLDB 2020).
#
# To make the overlap visible, the program records two kinds of events with hooks. PyTorch calls the hook of
# ``record_gradients`` when the gradient of a layer's weight is ready. DDP calls ``record_buckets``, a *communication
# hook*, instead of its own all-reduce. The communication hook records the call, and then does what DDP would have done:
#
# .. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
#    :part: record
#
# The model has four layers of about 1 MiB each, so with ``bucket_cap_mb=1`` each layer fills one bucket.
# The program shows the second backward pass, because DDP divides the parameters into its final buckets only when the
# first pass has shown in which order the gradients become ready:
#
# .. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
#    :part: ddp
#    :no-caption:

show_section(output, "DDP")

# %%
# The all-reduce of bucket 0 starts while three of the four gradients are still missing, so it overlaps their
# computation.
#
# A bucket that is never ready
# ----------------------------
#
# If a parameter gets no gradient, for example because ``forward`` has left out a branch, its bucket is never ready.
# This bucket also holds back all later ones, so the backward pass ends without their all-reduces. DDP notices this only
# in the next step. So the program runs such a model for two steps without the option ``find_unused_parameters=True``,
# and for two steps with it. It shows the error of the second step, or the number of its all-reduces:
#
# .. listing:: gallery/overview/shared/branches.py
#    :part: model
#
# .. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
#    :part: unused

show_section(output, "unused")

# %%
# DDP's error also lists the indices of the parameters without a gradient, and with ``TORCH_DISTRIBUTED_DEBUG=INFO``
# their names. If the branch should have been taken, or an output of ``forward`` does not reach the loss, fix that. If
# your model leaves out the branch on purpose, pass ``find_unused_parameters=True``.
#
# With this option, DDP searches the graph in each step and marks the parameters that it does not find as ready. The
# price is a second all-reduce, which tells all ranks which parameters any rank has used.
#
# If only *one* rank leaves out the branch, only this rank raises the error, in its next step. The others wait
# for its all-reduce, and report a timeout or a closed connection, so read the logs of all ranks. With
# ``find_unused_parameters=True``, the rank without the branch contributes zeros, and all ranks get the same average.
#
# The size of a bucket
# --------------------
#
# The size of the buckets decides how early the all-reduces start. Without ``bucket_cap_mb``, a bucket is full at
# 25 MiB, except for the first one, which is full at 1 MiB so that the first all-reduce starts early. For four limits
# in MiB, the table shows the number of all-reduces in one backward pass, and how many gradients are missing when the
# first all-reduce starts:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
#       :part: sizes
#       :no-caption:

show_section(output, "sizes")

# %%
# Small buckets start early but need many calls, and each call costs a latency, however small its tensor is. Large
# buckets need few calls, but the first one starts late, and only what starts before the end of the backward pass is
# hidden. With a single bucket, which a limit of 25 MiB gives this model, nothing overlaps.
#
# The all-reduce of the last bucket is never hidden. Keep the default until a measurement of your model says otherwise.
#
# Fewer calls: gradient accumulation
# ----------------------------------
#
# When a batch does not fit into memory, a program computes it in parts, adds up their gradients, and takes one
# optimizer step. DDP does not know that more parts follow, so it all-reduces in each backward pass.
#
# To leave out these all-reduces, run all parts but the last within ``no_sync``. The gradients then add up in the rank
# until the first backward pass outside ``no_sync``, whose all-reduces include them. These functions process the same
# four parts, without ``no_sync``, with it, and with a bug:
#
# .. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
#    :part: accumulate
#    :no-caption:

show_section(output, "accumulate")

# %%
# ``reduce_once`` gives the same gradients, because the average of the sums is the sum of the averages. With a quarter
# of the all-reduces, the network carries a quarter of the bytes. All ranks must leave out the same all-reduces.
#
# The bug is in ``forward_outside``: DDP decides in the forward pass whether the backward pass communicates, so a
# context around ``backward`` alone has no effect.
#
# The parts add up to the gradient of a sum. If the loss of a part is a mean, as here, divide it by the
# number of parts to get the mean over the whole batch.
#
# Fewer calls still: averaged parameters
# --------------------------------------
#
# Even with accumulation, every optimizer step has its all-reduces. To save more, some programs let each rank make its
# own updates, and average the parameters only every few steps. This can change what the model learns, even if the
# ranks average after each step, as in this comparison with DDP:
#
# .. admonition:: The averages of parameters
#    :collapsible: closed
#
#    .. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
#       :part: parameters
#       :no-caption:

show_section(output, "parameters")

# %%
# The result is the same with SGD, whose update is linear in the gradient, so the average of the updates is the update
# with the average gradient. Adam divides by a measure of the gradients, which differs from rank to rank, so its result
# is another one.
#
# Fewer bytes: compressed gradients
# ---------------------------------
#
# If the all-reduces take longer than the backward pass, send fewer bytes. PyTorch has communication hooks for
# that in ``torch.distributed.algorithms.ddp_comm_hooks``. A model accepts only one of them:
#
# * ``ddp.register_comm_hook(None, bf16_compress_hook)`` all-reduces in ``bfloat16``, so ``float32`` gradients take
#   half of the bytes, but are divided and added with eight significant bits. The hook needs a build of PyTorch with
#   NCCL or XCCL.
# * ``powerSGD_hook`` sends much less, but needs more memory and computation, and loses more precision.
#
# .. admonition:: How PowerSGD compresses
#    :collapsible: closed
#
#    The hook replaces the gradient of a matrix by the product of two narrow matrices, and all-reduces only these.
#    Their number of columns, by default 1, is ``matrix_approximation_rank`` of ``PowerSGDState``, which
#    ``register_comm_hook`` takes instead of ``None``. Each bucket then has three all-reduces, one after the other:
#    of the tensors that are not worth compressing, such as biases, and of the first and the second narrow
#    matrices. Products of matrices come between them.
#
#    What the approximation loses is added to the gradients of the next step (*error feedback*). Until then it takes
#    as much memory as the gradients. Because training is most sensitive at its start, the first
#    ``start_powerSGD_iter`` steps, by default 1000, all-reduce whole gradients. With gloo and two or more buckets,
#    the hook can hang, because its callbacks block both of gloo's threads, which would run the next all-reduces.
#
# Before you change the buckets, the calls or the bytes, look at a trace, as in :doc:`/accelerators/overlap`. If only
# the last all-reduce continues after the backward pass, DDP hides the others already.
#
# Not run here: compressed gradients.

"""
Overlap of computation and communication
========================================

Ranks train faster if the device computes while the network is busy, and the backend decides whether it can. If it
runs collectives in the program's stream, all results are right, but every kernel after a collective waits for the
slowest rank. This page helps you choose the streams in which your collectives run, and shows on time lines what the
choice changes for a program and for DDP.

.. diagram:: accelerators/overlap/diagram

A stream for the communication
------------------------------

A backend that launches its collectives in the caller's stream needs less code, because the order of the stream
replaces most events, and the stash that keeps the memory. But of two tasks in one stream, the second waits for the
first. So the program's next kernel, which is queued behind the communication, begins only when the communication has
ended, even if the kernel does not need the result.

The rule that avoids this is: **the communication has a stream of its own**. In ``launch``, the method of
:doc:`five-steps`, the rule decides only which stream the library gets: ``stream`` and not ``current``, the program's
stream:

.. listing:: extension/frame/c10d_frame/include/streams/group.hpp
   :start-at: const auto current = guard.getStream
   :end-before: describe(*work, kind, calls);

In the next worker, rank 1 is late. Rank 0 starts an all-reduce, and then a multiplication that does not need the sum.
The worker prints what begins and ends in the streams of rank 0. ``settle(peers=False)`` returns when the streams can
do no more without rank 1, so the order is the same in each run:

.. listing:: gallery/accelerators/overlap/own_stream.py
   :part: program
"""

from launcher import launch

launch("overlap/own_stream.py", ranks=2)

# %%
# With the rule kept, the multiplication is finished before rank 1 arrives. With the rule broken, it begins when the
# sum is there. The numbers are right in both cases, so a test of values does not notice the difference, and a backend
# needs a test of the order.
#
# How many streams
# ----------------
#
# If one stream beside the program's is good, several may seem better. But the collectives of a group must run in the
# same order on all ranks, and a single stream keeps the order of the calls without effort. So ``simccl`` has one
# stream for the collectives of each group; :doc:`order-and-abort` shows why two groups should not share one.
# Messages have other streams, which :doc:`groups-and-meshes` explains.
#
# If your device has few streams, keep the streams of ended groups in a pool, from which new groups take theirs.
#
# Where a program waits
# ---------------------
#
# A second stream makes overlap possible, but the program can still lose it. What the program launches after ``wait``
# comes after the communication, because the caller's stream waits. The next worker first calls ``wait`` after the
# multiplication, and then before it:
#
# .. listing:: gallery/accelerators/overlap/where_to_wait.py
#    :part: wait

launch("overlap/where_to_wait.py", ranks=2)

# %%
# In these time lines, the host launches the same in both cases, and brackets show when a task runs: ``mul`` first
# runs during the all-reduce, and in the second case only after it. A synchronous call, without ``async_op=True``,
# is like the second case, because PyTorch calls ``wait`` before it returns.
#
# The program also loses the overlap if the host waits. While it reads a number of the device, with ``item`` for
# example, it launches nothing, so the device may run out of kernels.
#
# Buckets of DDP
# --------------
#
# DDP is built for overlap, so it shows what a stream of its own is worth in training. DDP collects gradients in
# *buckets*, and each bucket has an all-reduce of its own. The backward pass computes the gradients of the last layer
# first. DDP starts the all-reduces in the order of the buckets, each when the kernels for all gradients of its
# bucket are launched, and the pass continues with the layer before. DDP waits for the futures only at the end of the
# pass.
#
# The model of the next worker has three layers, each with a weight of 1 MiB. As ``bucket_cap_mb`` is 1, each weight
# is a bucket:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/overlap/ddp_buckets.py
#       :part: model
#
# The worker traces the second backward pass, because DDP forms these buckets after the first one. Of the kernels of
# each layer, the time line has only ``add``, which adds the new gradient to the old one. The first drawing is of a
# group that keeps the rule, the second of one that breaks it:
#
# .. listing:: gallery/accelerators/overlap/ddp_buckets.py
#    :part: backward

stderr = "Time stats are currently only collected"  # DDP does not know this device
launch("overlap/ddp_buckets.py", ranks=2, expected_stderr=stderr)

# %%
# With the rule kept, all gradients are computed while the first all-reduce waits for rank 1. With the rule
# broken, the gradient of the second layer waits for the all-reduce of the third. In both cases the host has
# launched the whole pass before rank 1 calls, so it is the device that loses time.
#
# The last bucket has nothing left to overlap with, unless an input of the model needs a gradient, too. That is why
# DDP has several buckets: with a single one, all communication would come at the end.
#
# What a time line does not show
# ------------------------------
#
# The time lines show that a stream of its own lets the communication run beside the program's kernels. They do not
# show how much time that saves. On an accelerator, a kernel of the communication takes compute units and memory
# bandwidth from the kernels beside it, so both may become slower. Only a measurement on your hardware shows what
# remains of the gain; :doc:`to-hardware` lists more of these limits.
#
# Begin such a measurement with ``torch.profiler``, which shows kernels and collectives on their streams with
# their times, if the device registers a profiler as ``sim`` does.
#
# .. admonition:: NCCL's backend
#    :collapsible: closed
#
#    ``ProcessGroupNCCL.hpp`` of ``nccl-legacy`` gives the same reason for the same design: each call "is scheduled on a
#    separate CUDA stream that is different from the current CUDA stream", in order to achieve "potentially concurrency
#    and better performance". As :doc:`streams` says, this holds today for asynchronous calls. With the option
#    ``is_high_priority_stream``, these streams have a high priority.
#
# .. admonition:: After this page you have decided
#
#    - in which stream the collectives of a group run;
#    - whether a pool limits the number of streams;
#    - which test looks at the order of tasks, because values are right either way;
#    - how you measure on your hardware what overlap gains.
#
# Not run here: NCCL's backend, and kernels of an accelerator side by side.

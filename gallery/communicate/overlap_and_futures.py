"""
Overlap and futures
===================

After this page you can show on a time line that a rank computes while it communicates. You can
complete a future at the right moment, and destroy a group while its operations are running.

A *future* becomes complete when the result is there, and then calls the functions attached to
it. A future that is complete too early gives these functions wrong numbers, without an error.

.. diagram:: communicate/overlap_and_futures/diagram

Overlap on a time line
----------------------

A time line shows whether a program computes while the ranks communicate. The next worker
notes events with the time of ``CLOCK_MONOTONIC``. This clock is the same in all processes of
a host:

.. listing:: gallery/communicate/overlap_and_futures/time_line.py
   :part: note

Three ranks reduce 4 MiB. Ranks 0 and 1 call asynchronously, and compute until the future is
complete. Rank 2 comes last, and its call is synchronous. ``let_next_rank_begin`` and
``everyone`` make the ranks wait for each other through the store, so that the order is the
same in every run:

.. listing:: gallery/communicate/overlap_and_futures/time_line.py
   :part: program

The page sorts the events of all ranks by time. A row contains one event, and a cell the
thread in which it happened:
"""

from launcher import launch

import json
from itertools import groupby

from result_table import show_table

outputs = launch("overlap_and_futures/time_line.py", ranks=3, show=False)
events = [(*event, rank) for rank, text in enumerate(outputs) for event in json.loads(text)]

rows = []
for what, group in groupby(sorted(events), key=lambda event: event[1]):
    threads = {rank: thread for time, event, thread, rank in group}
    rows.append([what, *(threads.get(rank, "") for rank in range(3))])
show_table(["event", "rank 0", "rank 1", "rank 2"], rows)

# %%
# The table shows three facts:
#
# * On ranks 0 and 1, the call returned before rank 2 had called, so the result cannot have been
#   there. The worker also asserts that the work was not complete.
# * There, the result came after the computation began and before it ended. Nobody had called
#   ``wait``. A thread of the backend brought the operation to its end, and another one,
#   ``shm_callbacks``, noted the result.
# * On rank 2, the result was there when the synchronous call returned. The program itself brings
#   such an operation to its end, as :doc:`asynchronous-work` shows, and cannot compute meanwhile.
#
# The table shows an order and no gain. Overlap saves time only if a core is free for the thread.
# This page does not measure that.
#
# The future of a work
# --------------------
#
# Callbacks and ``DistributedDataParallel`` need a future. PyTorch's class
# ``c10::ivalue::Future`` is final: a backend cannot override its methods. A future becomes
# complete when the backend calls ``markCompleted`` or ``setError``. The first ``get_future`` of a
# work creates it, and registers a callback with the operation:
#
# .. listing:: extension/frame/work.hpp
#    :part: one-future
#
# If the operation has ended already, the callback runs at once, in ``get_future``. Otherwise the
# operation keeps it. The callback completes the future, which runs the functions that the program
# has attached. These can take any time, so a thread of their own calls them:
#
# .. listing:: extension/frame/engine.hpp
#    :part: callbacks
#
# One callback follows another, in the order in which their operations ended, so their calls
# have the same order on all ranks. A callback can wait for a work, because its thread then drives
# like any caller. It can also wait for a future that it asks for itself, as DDP's PowerSGD hook
# does: the thread that ends this operation completes it. A callback must not wait for other
# callbacks, because they come after it on the same thread. Neither gloo nor NCCL promises more.
#
# Calls that a callback makes have no fixed order relative to those that the program makes in the
# same group meanwhile. With several buckets, DDP's PowerSGD hook leads to both kinds, so the order
# may differ between ranks. Threads of the backend do not hold Python's global interpreter lock:
# PyTorch takes it for callbacks in Python.
#
# A program may take the value of a future as soon as ``wait`` of the work returns. So ``wait``
# waits for the future, too, if there is one.
#
# A mistake: a future that is complete too early
# ----------------------------------------------
#
# It is easy to complete the future where the operation is submitted: the tensor exists, and
# ``wait`` still works. The worker below models this mistake in Python, beside its cure:
#
# .. listing:: gallery/communicate/overlap_and_futures/early_future.py
#    :part: futures
#
# Both futures get the same callback, which reads the tensor. Rank 1 comes after rank 0 has attached
# it:
#
# .. listing:: gallery/communicate/overlap_and_futures/early_future.py
#    :part: use

output = launch("overlap_and_futures/early_future.py", ranks=2)

# %%
# With the early future, the callback reads the numbers of rank 0 alone, and there is no error.
# After ``wait``, the tensor contains the sum, as the worker asserts, so a test without callbacks
# passes. The cure is an order: first the data, then the end of the operation, then the callbacks.
# ``shm`` keeps this order after the last step:
#
# .. listing:: extension/frame/engine.hpp
#    :part: data-first
#
# ``finish`` copies results into tensors that are not contiguous. It is part of the operation,
# so it runs before ``end``.
#
# Lifetime of a work
# ------------------
#
# An operation keeps its tensors alive until it ends, and the group keeps the operation alive. So a
# program need not keep references to works or tensors. Several threads can wait for works of a
# group at the same time. Here two threads of rank 0 wait until rank 1 calls:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/overlap_and_futures/works_of_a_group.py
#       :part: together
#
# A program can destroy the group while operations are running. ``shutdown`` waits for the
# collectives, also for those that another thread awaits, because the other ranks need the steps of
# this one. So it can last until their timeout, and only ``abort`` ends them at once. ``shutdown``
# then ends its threads, and leaves the group. A work can be used after that, because it shares
# the ownership of what it needs:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/overlap_and_futures/works_of_a_group.py
#       :part: outlives
#
# Destroying a tensor may need Python's interpreter lock, because Python may have an object for it.
# A thread that destroys a tensor while it holds a mutex can therefore wait for a Python thread
# that waits for this mutex. Destroy tensors, works and callbacks without a lock. ``call_back``
# destroys the callback before it locks again for this reason. What holds the tensor may even
# destroy the group, so a thread of the backend never waits for its own end.

output = launch("overlap_and_futures/works_of_a_group.py", ranks=2)

# %%
# Exercise
# --------
#
# Each of two ranks has four numbers in ``values``. Write a program that computes the variance of
# all eight. The second all-reduce needs the result of the first, so a callback starts it.
# Meanwhile the program calls ``all_reduce`` ten more times. Explain why the callback needs a group
# of its own.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    All ranks must call the collectives of a group in the same order. A callback may run sooner
#    on one rank than on another, and nothing orders its call and those of the program. In a group
#    of its own, the callback makes the only call.
#
#    .. listing:: gallery/communicate/overlap_and_futures/variance_in_a_callback.py
#       :part: solution
#
# Two ranks run the solution with the numbers from 0 to 7:

output = launch("overlap_and_futures/variance_in_a_callback.py", ranks=2)

# %%
# All waits on this page had an end, because every rank came.
# :doc:`timeouts` shows how a wait ends if a rank never comes.

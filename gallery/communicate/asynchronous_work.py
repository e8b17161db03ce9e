"""
Asynchronous work
=================

After this page you can decide which thread runs an operation, and complete a future at the
right moment. You can also show on a time line that a rank computes while it communicates.

A program calls a collective with ``async_op=True`` in order to compute while the collective
runs. The data of CPU tensors is copied by a CPU, so ``shm`` needs a thread beside the program.
The hand-over to a thread costs time. The thread therefore runs operations only while no other
thread waits for a result.

.. diagram:: communicate/asynchronous-work

Operations that can stop
------------------------

Three callers need the same all-reduce. A synchronous call runs it from beginning to end. An
asynchronous call begins it and returns. The thread continues what the program has begun.

A C++20 coroutine serves all three. It is a function that can suspend itself, and that another
thread can resume. The steps of :doc:`step-by-step` contain ``co_await`` with an ``Until``, a
condition on the counters of some ranks. The compiler translates ``co_await`` into calls of
these three methods:

.. literalinclude:: /../extension/shm_collectives/include/steps.hpp
   :language: cpp
   :caption: extension/shm_collectives/include/steps.hpp
   :start-after: // [await]
   :end-before: // [/await]
   :dedent: 2

If the counters have reached the value, ``await_ready`` returns true, and the coroutine does not
stop. Otherwise ``await_suspend`` stores the condition, and control returns to the caller of
``resume``. Nothing blocks here. The method ``advance`` runs an operation as far as possible:

.. literalinclude:: /../extension/shm_collectives/include/steps.hpp
   :language: cpp
   :caption: extension/shm_collectives/include/steps.hpp
   :start-after: // [resume]
   :end-before: // [/resume]

A coroutine keeps its local variables when it is suspended. No collective needs code that saves
them, and no collective depends on the thread that runs it.

One loop for all threads
------------------------

Whoever waits calls ``drive``. Its argument ``done`` says what the thread waits for:

.. literalinclude:: /../extension/shm_collectives/src/progress.cpp
   :language: cpp
   :caption: extension/shm_collectives/src/progress.cpp
   :start-after: // [drive-loop]
   :end-before: // [/drive-loop]

``look`` advances all operations of the group that can advance, and not only the one that the
caller waits for. Only one thread at a time does so. A second one finds a flag set, pauses, and
tests ``done`` again.

The caller or the thread
------------------------

The options of each collective have a member ``asyncOp``. It is the argument ``async_op`` of the
Python function. After the backend has submitted the operation, it decides who runs it:

.. literalinclude:: /../extension/shm_collectives/src/backend.cpp
   :language: cpp
   :caption: extension/shm_collectives/src/backend.cpp
   :start-after: // [caller-or-thread]
   :end-before: // [/caller-or-thread]
   :dedent: 2

A synchronous call drives until its operation ends. It creates no ``Work`` unless a profiler
runs or calls are coalesced, and returns a null pointer. In Python this is ``None``, and ``all_reduce`` waits for a work
only if there is one. All waiting callers, also ``wait`` of a work, use one function:

.. literalinclude:: /../extension/shm_collectives/src/progress.cpp
   :language: cpp
   :caption: extension/shm_collectives/src/progress.cpp
   :start-after: // [caller]
   :end-before: // [/caller]

While callers wait, they drive, and the thread rests. When the last caller has gone and
operations remain, the thread takes over:

.. literalinclude:: /../extension/shm_collectives/src/progress.cpp
   :language: cpp
   :caption: extension/shm_collectives/src/progress.cpp
   :start-after: // [hand-over]
   :end-before: // [/hand-over]

An asynchronous call with more than 64 KiB in its note hands over at once. ``leave`` drives a smaller one for
up to 40 microseconds, because it may end sooner than a hand-over.

The first hand-over creates the thread. The worker below counts the threads with its name:

.. literalinclude:: /../gallery/communicate/workers/progress_thread.py
   :language: python
   :caption: gallery/communicate/workers/progress_thread.py
   :start-after: # [threads]
   :end-before: # [/threads]
"""

from launcher import launch

output = launch("workers/progress_thread.py", ranks=2)

# sphinx_gallery_start_ignore
none = "after ten synchronous calls: 0\n{}after destroy_process_group: 0\n"
assert output[0] == none.format("while an asynchronous call waits for rank 1: 1\n")
assert output[1] == none.format("")
# sphinx_gallery_end_ignore

# %%
# Rank 1 made only synchronous calls, and had no progress thread at any of the times shown.
#
# Overlap on a time line
# ----------------------
#
# A time line shows whether a program computes while its ranks communicate. The next worker
# notes events with the time of ``CLOCK_MONOTONIC``. This clock is the same in all processes of
# a host:
#
# .. literalinclude:: /../gallery/communicate/workers/time_line.py
#    :language: python
#    :caption: gallery/communicate/workers/time_line.py
#    :start-after: # [note]
#    :end-before: # [/note]
#
# Three ranks reduce 4 MiB. Ranks 0 and 1 call asynchronously, and compute until the future is
# complete. Rank 2 comes last, and its call is synchronous. ``let_next_rank_begin`` and
# ``everyone`` make the ranks wait for each other through the store, so that the order is the
# same in every run:
#
# .. literalinclude:: /../gallery/communicate/workers/time_line.py
#    :language: python
#    :caption: gallery/communicate/workers/time_line.py
#    :start-after: # [program]
#    :end-before: # [/program]
#
# The page sorts the events of all ranks by time. A row contains one event, and a cell the
# thread in which it happened:

import json
from itertools import groupby

from result_table import show_table

outputs = launch("workers/time_line.py", ranks=3, show=False)
events = [(*event, rank) for rank, text in enumerate(outputs) for event in json.loads(text)]

rows = []
for what, group in groupby(sorted(events), key=lambda event: event[1]):
    threads = {rank: thread for time, event, thread, rank in group}
    rows.append([what, *(threads.get(rank, "") for rank in range(3))])
show_table(["event", "rank 0", "rank 1", "rank 2"], rows)

# sphinx_gallery_start_ignore
begin = ["all_reduce is called", "the call has returned", "computation begins"]
assert rows == [
    *([what, "program", "", ""] for what in begin),
    *([what, "", "program", ""] for what in begin),
    [begin[0], "", "", "program"],
    ["the result is there", "shm_progress", "shm_progress", "program"],
    ["computation ends", "program", "program", ""],
    ["wait() has returned", "program", "program", ""],
], rows
# sphinx_gallery_end_ignore

# %%
# Three facts can be read from the table:
#
# * On ranks 0 and 1, the call returned before rank 2 had called, so the result cannot have been
#   there. The worker also asserts that the work was not complete.
# * There, the result came after the computation began and before it ended. Nobody had called
#   ``wait``. The thread ``shm_progress`` brought the operation to its end.
# * On rank 2, the program itself brought the operation to its end, inside the call. It could
#   not compute in the meantime.
#
# The table shows an order and no gain. Overlap saves time only if a core is free for the thread.
# This page does not measure that.
#
# The future of a work
# --------------------
#
# Callbacks and ``DistributedDataParallel`` need a future. PyTorch's class
# ``c10::ivalue::Future`` is final: a backend cannot override its methods. It is complete when
# the backend calls ``markCompleted`` or ``setError``. The first ``get_future`` of a work creates
# it, and registers a callback with the operation:
#
# .. literalinclude:: /../extension/shm_collectives/src/work.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/work.cpp
#    :start-after: // [one-future]
#    :end-before: // [/one-future]
#
# The callback runs on the thread that brought the operation to its end. ``look`` calls it:
#
# .. literalinclude:: /../extension/shm_collectives/src/progress.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/progress.cpp
#    :start-after: // [callbacks]
#    :end-before: // [/callbacks]
#    :dedent: 2
#
# At this point the thread has cleared its flag and holds no lock of the backend. So a callback
# can start another collective, and wait for it. ``tests/shm/test_asynchronous.py`` does that.
# The progress thread does not hold Python's global interpreter lock either: PyTorch takes it
# for callbacks in Python.
#
# A mistake: a future that is complete too early
# ----------------------------------------------
#
# It is easy to complete the future where the operation is submitted: the tensor exists, and
# ``wait`` still works. The worker below models this mistake in Python, beside its cure:
#
# .. literalinclude:: /../gallery/communicate/workers/early_future.py
#    :language: python
#    :caption: gallery/communicate/workers/early_future.py
#    :start-after: # [futures]
#    :end-before: # [/futures]
#
# Both attach the same callback, which reads the tensor. Rank 1 comes after rank 0 has attached
# it:
#
# .. literalinclude:: /../gallery/communicate/workers/early_future.py
#    :language: python
#    :caption: gallery/communicate/workers/early_future.py
#    :start-after: # [use]
#    :end-before: # [/use]

output = launch("workers/early_future.py", ranks=2)

# sphinx_gallery_start_ignore
assert output[0] == (
    "too_early: the callback ran before rank 1 came: True\n"
    f"    it read {[1.0] * 4}\n"
    "at_the_end: the callback ran before rank 1 came: False\n"
    f"    it read {[3.0] * 4}\n"
)
# sphinx_gallery_end_ignore

# %%
# With the early future, the callback reads the numbers of rank 0 alone, and there is no error.
# ``wait`` did return the sum, as the worker asserts, so a test without callbacks passes. The
# cure is an order: first the data, then the end of the operation, then the callbacks. ``shm``
# keeps this order after the last step:
#
# .. literalinclude:: /../extension/shm_collectives/src/progress.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/progress.cpp
#    :start-after: // [data-first]
#    :end-before: // [/data-first]
#    :dedent: 4
#
# ``finish`` copies results into tensors that are not contiguous. It is part of the operation,
# so it runs before ``end``.
#
# Order and lifetime
# ------------------
#
# The collectives of a group run one after another, in the order of the calls. Their works
# end in the same order, however large the tensors are:
#
# .. literalinclude:: /../gallery/communicate/workers/works_of_a_group.py
#    :language: python
#    :caption: gallery/communicate/workers/works_of_a_group.py
#    :start-after: # [order]
#    :end-before: # [/order]
#
# Rank 1 then makes the same calls, synchronously. The program keeps neither the works nor the
# tensors. An operation keeps its tensors until it ends, and the group keeps the operation.
# Several threads can wait at the same time:
#
# .. literalinclude:: /../gallery/communicate/workers/works_of_a_group.py
#    :language: python
#    :caption: gallery/communicate/workers/works_of_a_group.py
#    :start-after: # [together]
#    :end-before: # [/together]
#
# A program can destroy the group while operations are running. ``shutdown`` waits for them,
# ends the thread, and then leaves the group. A work can be used after that, because it shares
# the ownership of what it needs:
#
# .. literalinclude:: /../gallery/communicate/workers/works_of_a_group.py
#    :language: python
#    :caption: gallery/communicate/workers/works_of_a_group.py
#    :start-after: # [outlives]
#    :end-before: # [/outlives]
#
# The end of a tensor may need Python's interpreter lock, because Python may have an object for it.
# A thread that destroys a tensor while it holds a mutex can therefore wait for a Python thread
# that waits for this mutex. Destroy tensors, works and callbacks without a lock, and after the
# waiting threads have been woken. ``look`` keeps ended operations in ``ended`` for this reason.

output = launch("workers/works_of_a_group.py", ranks=2)

# sphinx_gallery_start_ignore
assert "ended in this order: [1000000, 10, 100000]\n" in output[0]
assert "two threads wait: [True, True]\n" in output[0]
for text in output:
    assert text.endswith("the work is complete: True\nthe sum: 2.0\n")
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
#
# Start the all-reduce of a large tensor, and then that of a small one. Wait for the second
# work first. Predict whether the first work is complete then, and write the program that shows
# it.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The first work is complete. The works of a group end in order, and whoever waits runs all
#    operations of the group.
#
#    .. literalinclude:: /../gallery/communicate/workers/reverse_order.py
#       :language: python
#       :caption: gallery/communicate/workers/reverse_order.py
#       :start-after: # [solution]
#       :end-before: # [/solution]
#
# Two ranks run the solution:

output = launch("workers/reverse_order.py", ranks=2)

# sphinx_gallery_start_ignore
assert output == ["the first is complete: True with 2.0\n"] * 2
# sphinx_gallery_end_ignore

# %%
# All waits on this page had an end, because every rank came.
# :doc:`timeouts-and-lost-ranks` ends those for which a rank never comes.

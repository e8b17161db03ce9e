"""
Asynchronous work
=================

After this page you can write operations that stop and continue on any thread. You can decide
which thread runs them, and keep them in the order of the calls.

A program calls a collective with ``async_op=True`` in order to compute while the collective
runs. The data of CPU tensors is copied by a CPU, so ``shm`` needs a thread beside the program.
The hand-over to a thread costs time. The thread therefore runs operations only while no other
thread waits for a result.

.. diagram:: communicate/asynchronous_work/diagram

Operations that can stop
------------------------

Three callers need the same all-reduce. A synchronous call runs it from beginning to end. An
asynchronous call begins it and returns. The thread continues what the program has begun.

A C++20 coroutine serves all three. It is a function that can suspend itself, and that another
thread can resume. The steps of :doc:`step-by-step` contain ``co_await`` with a ``Reached``, a
condition on the counters of some ranks. The compiler translates ``co_await`` into calls of
these three methods:

.. listing:: extension/frame/steps.hpp
   :part: await

If the counters have reached the value, ``await_ready`` returns true, and the coroutine does not
stop. Otherwise ``await_suspend`` stores the condition, and control returns to the caller of
``resume``. Nothing blocks here. The method ``advance`` runs an operation as far as possible:

.. listing:: extension/frame/steps.hpp
   :part: resume

A coroutine keeps its local variables when it is suspended. No collective needs code that saves
them, and no collective depends on the thread that runs it.

One loop for all threads
------------------------

Whoever waits calls ``drive``. Its argument ``done`` says what the thread waits for:

.. listing:: extension/frame/engine.hpp
   :part: drive-loop

``look`` advances all operations of the group that can advance, and not only the one that the
caller waits for. Only one thread at a time does so. A second one finds a flag set, pauses, and
tests ``done`` again.

The caller or the thread
------------------------

The options of each collective have a member ``asyncOp``. It is the argument ``async_op`` of the
Python function. It decides which thread runs what ``at_once`` has not ended:

.. listing:: extension/frame/group.hpp
   :part: caller-or-thread

So that a small collective needs no mutex, coroutine or new memory, ``at_once`` tries to run it in
the calling thread: if it has at most 64 KiB and one step, and nothing else runs in the group. If
the other ranks do not come while the thread spins, ``at_once`` returns false, and the operation
goes on like any other.

A synchronous collective drives until its operation ends. It creates no ``Work`` unless a
profiler runs or calls are coalesced, and returns a null pointer. In Python this is ``None``,
and ``all_reduce`` waits for a work only if there is one. This saves time and has a price:
without a ``Work``, the flight recorder of PyTorch 2.15 never retires the entry of the call,
which then looks as if it hangs, as :doc:`debug` shows. Return a completed ``Work`` if that
matters more.

While callers wait, they drive, and the thread rests. When the last caller has gone and
operations remain, the thread takes over. At the end of the group, it takes the last steps.

An asynchronous call hands over at
once if the size in its note is more than 64 KiB. ``leave`` drives a smaller one for up to 40
microseconds, because it may end sooner than a hand-over.

The thread exists as long as the group, and sleeps until it is needed. The worker below shows
which call wakes it. Linux counts how often a thread has gone to sleep:

.. listing:: gallery/communicate/asynchronous_work/progress_thread.py
   :part: threads
"""

from launcher import launch

output = launch("asynchronous_work/progress_thread.py", ranks=2)

# %%
# A mistake: a thread for each operation
# --------------------------------------
#
# The collectives of a group run one after another, in the order of the calls. Their works
# end in the same order, however large the tensors are. A backend that starts a thread for each
# operation can lose this order, because the operating system decides which thread begins first.
#
# The next worker models this mistake and its cure with ``shm``. Rank 0 reduces the numbers 1 and
# 10, and rank 1 the numbers 2 and 20. In place of the operating system, the worker decides that
# the second thread of rank 1 begins first:
#
# .. listing:: gallery/communicate/asynchronous_work/thread_for_each_work.py
#    :part: orders

output = launch("asynchronous_work/thread_for_each_work.py", ranks=2)

# %%
# Without the order, the 1 of rank 0 is added to the 20 of rank 1, and the two ranks have this sum
# in different places. No error appears, because the tensors of both calls have the same size and
# type.
#
# The cure fixes the order before the call returns: ``shm`` appends the operation to a list.
# ``look`` takes operations from this list, and begins a collective when the one before it has
# ended.
#
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
#    .. listing:: gallery/communicate/asynchronous_work/reverse_order.py
#       :part: solution
#
# Two ranks run the solution:

output = launch("asynchronous_work/reverse_order.py", ranks=2)

# %%
# A program can now compute while the thread works. :doc:`overlap-and-futures` shows this on a
# time line, and lets a callback run when the result is there.

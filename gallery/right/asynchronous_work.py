"""
Asynchronous work and futures
=============================

A program calls a collective with ``async_op=True`` in order to compute while the ranks communicate, so the
backend must return a work before the operation is done. If two ranks then run their operations in different orders,
or a future completes too early, the program trains with wrong sums, and no error appears. This page shows which
thread runs the operation, when its future completes, and what your transport decides with ``can_block``.

.. diagram:: right/asynchronous_work/diagram

Operations as coroutines
------------------------

An operation waits for other ranks many times, and a thread that blocked in each wait could run only one operation.
So the methods that move data are C++20 coroutines, which suspend themselves where they would have to wait. They wait
with ``co_await``, which takes a condition.

The ``exchange`` of ``store``, for example, waits until each rank has added its line to a list in the store. In the
listing, the first function is the condition, and the second returns the late ranks, which an error names:

.. listing:: extension/frame/c10d_frame/include/store/store_transport.hpp
   :start-at: Until present(
   :end-before: const auto heads

If the condition holds, the coroutine goes on at once. Otherwise the coroutine is suspended, and its thread can advance
another operation. Later, this thread or a different one asks the condition again, and resumes the coroutine as soon as
the condition holds.

.. admonition:: ``Wait`` and ``advance``
   :collapsible: closed

   ``co_await`` calls the three methods of ``Wait``, which ask the condition. C++ keeps a ``promise_type`` with each
   coroutine: here, the condition that it awaits, and an exception. The class ``Nested`` awaits another coroutine.
   ``await_suspend`` notes the condition, and ``advance`` returns to its caller.

   .. listing:: extension/frame/c10d_frame/include/frame/steps.hpp
      :part: await

   ``advance`` asks the condition, and resumes the coroutine:

   .. listing:: extension/frame/c10d_frame/include/frame/steps.hpp
      :part: resume

Because a suspended coroutine keeps its local variables, a transport reads like a program that blocks, and
needs no record of how far an operation has got. The frame can give up an operation at any ``co_await``.

Which thread drives
-------------------

A suspended coroutine goes on only if a thread asks its condition again. A thread that does so *drives* the group, and
thereby calls the transport. Threads that drive take turns, so only one calls the transport at a time. Three rules say
which thread does what:

- If the transport cannot block, a thread of the program that waits for an operation drives in the meantime.
- Each group has a *progress thread*, which drives whenever no thread of the program does.
- Each group has a *callback thread*, which runs the callbacks in the order in which operations end.

The first rule is for speed, because handing an operation to another thread and back costs tens of microseconds. The
rule is safe only if each call of the transport returns soon, as when it looks at shared memory.

A blocking socket, a server or a library may hold the thread for long, and a caller that drives could then not raise
its error at the deadline. So ``can_block`` is true by default: the progress thread drives while the caller sleeps,
and the caller wakes at the deadline even if the progress thread hangs.

.. admonition:: ``wait``
   :collapsible: closed

   .. list-table::
      :header-rows: 1

      * - name
        - what it is
      * - ``done``
        - whether the caller has what it waits for
      * - ``schedule_``
        - the operations that have not ended, and their next deadline
      * - ``callers_``
        - knows the threads that wait for results, and wakes those of them that sleep
      * - ``Drives``
        - counts the caller among those that drive, to which the progress thread leaves the work
      * - ``drive``
        - advances operations until its condition holds or the limit has passed
      * - ``check_deadline``
        - fails the group if its oldest open collective is late

   .. listing:: extension/frame/c10d_frame/include/frame/progress.hpp
      :part: wait
      :end-before: if (schedule_.must_tell

To compare both cases, the worker sets the option ``can_block`` of ``store``. During ten synchronous calls, it watches
whether the progress thread works:

.. admonition:: The worker that watches
   :collapsible: closed

   A thread that has worked goes to sleep again, which Linux counts. One that works for each call sleeps at
   least as often as the program calls; the other may sleep once more while it starts. ``sleeping_driver``
   finds the progress thread of the newest group.

   .. listing:: gallery/right/asynchronous_work/who_drives.py
      :part: threads
"""

from launcher import launch

launch("asynchronous_work/who_drives.py", ranks=2)

# %%
# With ``can_block=True``, the progress thread works for the calls. With ``can_block=False``, it sleeps through all ten,
# because the thread of the program drives in its place.
#
# Bug: a thread for each operation
# --------------------------------
#
# It seems simpler to give each operation a thread of its own. But collectives of a group are matched by their order, so
# all ranks must start them in the order of the calls. Threads lose this order, because the operating system decides
# which of them runs first. The next worker models the bug and its fix with ``store``. In place of the operating system,
# it lets the second thread of rank 1 run first:
#
# .. listing:: gallery/right/asynchronous_work/thread_for_each_work.py
#    :part: orders

launch("asynchronous_work/thread_for_each_work.py", ranks=2)

# %%
# Rank 0 reduces 1 and then 10, and rank 1 reduces 2 and then 20. With ``submit_in_the_thread``, 1 meets 20, and 10
# meets 2, where 3 and 30 would be right. No error appears, because both calls have the same size and dtype. The fix
# is to decide the order before the call returns: the frame appends the operation to a list, from which it starts
# collectives one after another and messages side by side.
#
# Overlap on a time line
# ----------------------
#
# An asynchronous call is worth its threads only if it overlaps with computation. To show what overlaps, three ranks
# reduce 1 MiB. Ranks 0 and 1 call asynchronously, and compute until a callback of the future has run. Rank 2 comes
# last, and its call is synchronous:
#
# .. admonition:: The events of a rank
#    :collapsible: closed
#
#    So that the order is the same in every run, ``let_next_rank_begin`` and ``everyone`` make the ranks wait
#    for each other through the store:
#
#    .. listing:: gallery/right/asynchronous_work/time_line.py
#       :part: program
#
# A row of the table is one event, and a cell names the thread in which it happened: ``program`` is the one
# that makes the calls, and ``store_callbacks`` the callback thread of ``store``:

outputs = launch("asynchronous_work/time_line.py", ranks=3, show=False)
# sphinx_gallery_start_ignore
import json
from itertools import groupby

from result_table import show_table

events = [(*event, rank) for rank, text in enumerate(outputs) for event in json.loads(text)]

rows = []
for what, group in groupby(sorted(events), key=lambda event: event[1]):
    threads = {rank: thread for time, event, thread, rank in group}
    rows.append([what, *(threads.get(rank, "") for rank in range(3))])
show_table(["event", "rank 0", "rank 1", "rank 2"], rows)
# sphinx_gallery_end_ignore

# %%
# On ranks 0 and 1 the call returned before rank 2 had called, and the result arrived while they computed,
# before they called ``wait``. The table shows the order, and not what is gained: overlap always saves the time in
# which a rank only waits, but the time for copies and additions only where a core is free for the thread.
#
# When a future completes
# -----------------------
#
# The callback in the time line belongs to a *future*, which says that the result is there. DDP takes its gradients from
# such a future. PyTorch's class ``c10::ivalue::Future`` is final, so a backend decides only when to call
# ``markCompleted`` or ``setError``. In the frame, the first ``get_future`` of a work creates the future. When the
# operation has ended, the callback thread completes it. There, a callback may take any time, because it delays no
# operation.
#
# .. admonition:: ``getFuture``, and the thread for callbacks
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/frame/work.hpp
#       :part: one-future
#
#    .. listing:: extension/frame/c10d_frame/include/frame/progress.hpp
#       :part: callbacks
#
# A callback hangs if it waits for something that its own thread must do, because ``Future.wait`` has no timeout. For
# example, a callback on the callback thread must not wait for another callback, which this thread runs only afterwards.
#
# .. admonition:: For reference: what a callback can wait for
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - a callback of a future that
#         - runs on
#         - and there
#       * - another thread has asked for
#         - the callback thread
#         - can wait for a work, and for a future that the callback itself asks for, as DDP's PowerSGD hook does; must
#           not wait for other callbacks, nor for an incomplete future that another thread has asked for: both come
#           after this callback
#       * - the callback thread has asked for
#         - the thread that ends the operation
#         - must not wait for a work of this group, which this thread would have to drive
#       * - is already complete
#         - the thread that attaches it
#         - can wait for whatever that thread can wait for
#
# If callbacks start collectives, give them a group of their own, because nothing orders their calls and those
# of the program.
#
# Bug: a future that completes too early
# --------------------------------------
#
# It is tempting to complete the future where the operation is submitted, because the tensor exists, and
# ``wait`` still works. The worker models this bug beside its fix:
#
# .. listing:: gallery/right/asynchronous_work/early_future.py
#    :part: futures
#
# .. admonition:: The use of both futures
#    :collapsible: closed
#
#    Both futures get the same callback, which reads the tensor. Rank 1 arrives only after rank 0 has attached
#    it:
#
#    .. listing:: gallery/right/asynchronous_work/early_future.py
#       :part: use

launch("asynchronous_work/early_future.py", ranks=2)

# %%
# With the early future, the callback reads only the numbers of rank 0. There is no error, and a test without
# callbacks passes. The fix is an order: first the backend writes the data, then it ends the operation, then it runs
# the callbacks. If a tensor is not contiguous, its data counts as written only when the result has been copied into it.
#
# Lifetime of works and tensors
# -----------------------------
#
# With ``async_op=True``, a program may drop its tensors and works before the operation is done. So an operation keeps
# its tensors until it ends, and the group keeps the operation. A program may even destroy the group while collectives
# run:
#
# .. listing:: gallery/right/asynchronous_work/works_of_a_group.py
#    :part: outlives

launch("asynchronous_work/works_of_a_group.py", ranks=2)

# %%
# Without its group, the work is complete, and its result is there: ``destroy_process_group`` calls ``shutdown``,
# which waits for the collectives, because other ranks need the steps of this rank. It waits up to two seconds for
# sends, and not for receives, so a program must wait for its messages first.
#
# Even after an operation has failed, a library may still write to its tensors. Your transport must therefore keep
# ``owner`` of the operation, which holds the tensors, until the library has finished. If other ranks write into your
# memory, as with RDMA, no local event says that they have finished. So deregister the memory before you let go of
# ``owner``.
#
# Never destroy a tensor, a work or a callback while you hold a mutex, because their destructors may need
# Python's global interpreter lock, and the thread that has the lock may wait for your mutex.
#
# When Python ends
# ----------------
#
# The tensors can outlive Python, too. A program may end without ``destroy_process_group`` while threads of the backend
# still hold tensors. To let go of a tensor that Python knows, a thread asks for the global interpreter lock. Before
# Python 3.14, an interpreter that exits ends such a thread in the middle of C++, and the process ends with ``SIGABRT``.
# So end the threads earlier, in a function that you register with ``atexit``:
#
# .. admonition:: ``PythonExit``
#    :collapsible: closed
#
#    In the frame, the function is ``Group::close_all``. ``PythonExit`` also stops threads of the program that wait
#    for an operation, because they would ask for the lock next:
#
#    .. not-executed::
#       :partly:
#
#       In no sample does a thread wait for an operation while Python ends.
#
#       .. listing:: extension/frame/c10d_frame/include/frame/process.hpp
#          :start-at: // When Python exits
#          :end-before: } // namespace frame
#
# PyTorch itself calls no such function (`pytorch#179291 <https://github.com/pytorch/pytorch/pull/179291>`_), so tell
# your users to call ``destroy_process_group``.
#
# Exercise
# --------
#
# Each of two ranks has four numbers in ``values``. Write a program that computes the variance of all eight.
# The first all-reduce gives the mean, and the second adds up the squared deviations from it, so a callback of
# the first starts the second. Meanwhile the program calls ``all_reduce`` ten more times.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    .. listing:: gallery/right/asynchronous_work/variance_in_a_callback.py
#       :part: solution
#
# Two ranks run the solution with the numbers from 0 to 7:

launch("asynchronous_work/variance_in_a_callback.py", ranks=2)

# %%
# Both ranks print 5.25, the variance of the numbers from 0 to 7. The all-reduce of the callback has a group of its
# own, so it cannot meet one of the ten others.
#
# .. admonition:: After this page you have decided
#
#    - whether a call of your transport can block, and so which thread drives;
#    - where the order of the collectives is fixed, before the call returns;
#    - what must be done before a future completes, such as the copy of a result;
#    - which thread runs callbacks, and what they may wait for;
#    - what keeps tensors alive until your library has finished with them, and what ends your threads before Python.

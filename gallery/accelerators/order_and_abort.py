"""
Order of calls, late errors and abort
=====================================

On an accelerator, the call of a collective returns before the collective has run in its stream. If the streams of the
ranks then deadlock or fail, no call is left to report it, and training can stand still without a message. This page
helps you decide three things: which order of calls your backend demands from programs, how it notices that a
collective does not end, and how it frees a device that waits in vain.

.. diagram:: accelerators/order_and_abort/diagram

Deadlocks that separate streams prevent
---------------------------------------

The ranks of a group must call its collectives in the same order, because only the order says which calls belong
together. Between two groups, the backend decides what it demands. If both groups share a stream, their calls have one
order on the device, so the ranks must agree on that order, too. To spare programs this, ``simccl`` has a rule: **each
group has streams of its own**.

In the next worker, the ranks use two groups in opposite orders: first with the rule kept, then with the rule broken,
so that both groups share a stream. The groups have a timeout of one second. When it has expired, the *watchdog*, a
thread of the backend, fails the call:

.. listing:: gallery/accelerators/order_and_abort/group_stream.py
   :part: program
"""

from launcher import launch

stderr = "Backend simccl: |rank 0 has aborted"  # warnings of the watchdog
launch("order_and_abort/group_stream.py", ranks=2, expected_stderr=stderr)

# %%
# With the rule broken, rank 0 runs the all-reduce of one group while rank 1 runs that of the other. Each all-reduce
# needs a call that is queued on the other rank, behind the one that runs there. Because both calls have returned on
# each rank, the programs stand still only in ``synchronize``, so their stack traces do not show the cause.
#
# Before your backend promises that groups need no common order, find out whether your device can always run two
# collectives at once. :doc:`to-hardware` says why some cannot.
#
# Deadlocks that only the program can prevent
# -------------------------------------------
#
# Separate streams do not prevent every deadlock: they do not help if the program calls ``wait`` between the two
# calls. In this worker, each group has streams of its own, and the ranks wait after each call. The rule that they
# keep or break now is about the order of the calls. The ranks first call in one order, and then in opposite orders:
#
# .. listing:: gallery/accelerators/order_and_abort/order.py
#    :part: program

launch("order_and_abort/order.py", ranks=2, expected_stderr=stderr)

# %%
# After the first ``wait``, the program's stream waits for the first all-reduce. The second all-reduce waits for the
# program's stream, because its input may come from there. So a rank begins its second all-reduce only when its first
# has ended. The first cannot end, because it is the second call of the other rank, which waits for its own first one.
# The backend cannot know whether the program needs this order. Only the program can prevent the deadlock: all ranks
# call in one order, or they wait later.
#
# How the watchdog notices a deadlock
# -----------------------------------
#
# In both cases, a host that calls ``synchronize`` could stand still forever, and a host that does not wait would
# never learn of the deadlock. So the watchdog of each group checks the calls every 50 ms. The clock of a call starts
# when the watchdog sees that the call has begun, so a call that is queued behind slow ones is not late. Each check
# calls ``look``. There ``launches_`` holds the calls to watch, and ``async_error`` returns the error of the library,
# or an empty text:
#
# .. listing:: extension/frame/c10d_frame/include/streams/watchdog.hpp
#    :start-at: std::string look() {
#    :end-before: // [/watch]
#
# After the first error, the watchdog fails all open calls of the group, warns, and aborts the library:
#
# .. listing:: extension/frame/c10d_frame/include/streams/watchdog.hpp
#    :part: fail
#
# The watchdog never waits for a stream, because a thread that enforces deadlines must not hang.
#
# How a program learns of a late error
# ------------------------------------
#
# A deadlock is not the only failure that no call can report. Some errors are visible only to the library, and only
# when the task of the call runs in the stream. By then the call has returned, so such an error is called
# *asynchronous*. Therefore the watchdog not only looks at its clocks but also asks the library, with
# ``async_error``.
#
# In the next worker, the ranks reduce tensors of different sizes. The library is ``store``, the backend of
# :doc:`/right/smallest-backend`, which compares the sizes and finds the error. ``error_of`` makes a call and returns
# the first line of its error:
#
# .. listing:: gallery/accelerators/order_and_abort/late_error.py
#    :start-at: work = dist.all_reduce(
#    :end-before: # [/late]

launch("order_and_abort/late_error.py", ranks=2, expected_stderr=stderr)

# %%
# The error came after the call had returned. The program can meet it in two places, but not in a third:
#
# - ``wait`` of the work raises it if it is known by then. Otherwise ``wait`` returns, and later kernels use a result
#   that is not there.
# - The next call of the group raises it, because after an error the group takes no more calls.
# - The future has no error, because the backend completed it when the call was launched, as :doc:`futures` shows.
#
# The task has failed, and yet the output says ``completed: True``. The reason is the abort of the library, which lets
# the stream go on. Otherwise all streams that wait for the end event of the call would stand still.
#
# An abort that frees the stream
# ------------------------------
#
# After a deadlock or a late error, the watchdog aborts the library, and a program can do so, too. The abort must
# free the stream, or each ``synchronize`` of the program hangs with it. But the stream runs a task of the library,
# which only the library can end. The last worker aborts a call that rank 1 never makes, with two libraries and a
# timeout of 3 seconds:
#
# .. admonition:: ``abort`` with each library
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/order_and_abort/abort.py
#       :part: abort

launch("order_and_abort/abort.py", ranks=2, expected_stderr=stderr)

# %%
# The work gets the error in both cases, but only ``store`` also frees the stream. PyTorch's ``gloo`` inherits the
# empty ``abort`` of ``Backend``, so it holds the stream until its own deadline.
#
# So before you choose a library, find out what ends a call whose peer is dead. If nothing does, the watchdog can
# still report the call, but only a short timeout or the end of the process frees the device.
#
# .. admonition:: ``shutdown`` and ``abort``
#    :collapsible: closed
#
#    The normal end of a group is ``shutdown``. It waits for calls that other ranks still need, up to the timeout, and
#    then lets go of the memory:
#
#    .. listing:: extension/frame/c10d_frame/include/streams/group.hpp
#       :part: end
#
# .. admonition:: NCCL's backend
#    :collapsible: closed
#
#    NCCL's backend demands more of programs, although its groups have streams of their own, too: the documentation of
#    ``new_group`` says that with several groups the user "must ensure a globally consistent execution order of
#    collectives across ranks".
#
#    According to ``ProcessGroupNCCL.hpp`` of ``nccl-legacy``, the watchdog is a thread because the backend "can't rely
#    on the user calling certain methods like wait(), isCompleted()". By default, the process ends after an error
#    without an abort, for the case that ``ncclCommAbort`` itself hangs. :doc:`/communicate/debug` lists the other
#    values of ``TORCH_NCCL_ASYNC_ERROR_HANDLING``.
#
# .. admonition:: After this page you have decided
#
#    - which order of calls your backend demands between groups;
#    - from when the clock of a call runs;
#    - what your backend does after the first error, and what it tells a program that never waits again;
#    - what frees a stream in which a call waits for a dead rank.
#
# Not run here: NCCL's backend, and a device that cannot run two collectives at once.

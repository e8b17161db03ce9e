"""
Debug a backend
===============

A rank that hangs often has no bug itself: it waits for another rank. This page shows which tool finds that
other rank, the line where a rank hangs, where the time of a step goes, and ranks that call different
operations or pass different tensors.

.. diagram:: communicate/debug/diagram

Some of these tools only work as well as your backend helps them:

.. list-table::
   :header-rows: 1

   * - question
     - tool
     - what your backend does for it
   * - Which rank is missing?
     - ``monitored_barrier``
     - overrides ``monitoredBarrier``
   * - Which operation hangs?
     - ``wait`` with a timeout
     - throws an error that names the operation, and lets it go on
   * - In which line?
     - ``faulthandler``
     - nothing
   * - Which call was the last of each rank?
     - flight recorder
     - reports the ends of its operations to completion hooks
   * - Where does the time go?
     - profiler
     - passes a title to ``c10d::Work``, and says when the operation ends
   * - Do the calls of the ranks differ?
     - ``DETAIL``
     - overrides ``getSequenceNumberForGroup``

The samples use ``shm``, the backend of this site that communicates through shared memory. Its ``Work`` and
the overrides come from the frame, which :doc:`/right/smallest-backend` introduces.

Find a missing rank
-------------------

When a program hangs in a collective, a barrier that names the missing rank is a quick test. In this
program it is rank 2:

.. listing:: gallery/communicate/debug/monitored_barrier.py
   :part: missing

.. admonition:: Before 2.14

   In PyTorch 2.13, the function ``monitored_barrier`` of ``torch.distributed`` is for gloo only. The program
   then calls the method of the group.
"""

import json

from launcher import PROFILER, launch
from result_table import show_table

output = launch("debug/monitored_barrier.py", ranks=3)

# %%
# Read the error of rank 0, because it begins with the missing rank. That of rank 1 begins with the fact that
# rank 1 is not at fault; ``shm``, unlike gloo, then adds the reason of the rank that timed out first.
#
# The base class throws an error for ``monitoredBarrier``. If your backend does not override it, create a gloo
# group with the same ranks, and call the barrier there.
#
# Look at a hanging rank
# ----------------------
#
# In the next program, rank 1 is late, and rank 0 finds out in three ways where it hangs. The first is a
# short ``wait``, whose error tells which operation has not ended and which ranks are missing. The group stays
# usable, so that the program can wait again:
#
# .. listing:: gallery/communicate/debug/hanging_rank.py
#    :part: state
#
# The timeout of the operation also names the missing ranks, but it breaks the group, as
# :doc:`/right/timeouts-and-dead-ranks` shows.
#
# The second is ``faulthandler`` of Python, which tells the line of the program. It works although the main
# thread hangs in C++, because it writes the stack from a thread of its own:
#
# .. listing:: gallery/communicate/debug/hanging_rank.py
#    :part: stack
#
# Rank 1 makes its call as soon as the file contains the stack. The program prints the file and the function
# of each frame, the innermost first.
#
# The third is PyTorch's flight recorder, which notes each call of a collective in memory, for every backend,
# unless the environment variable ``TORCH_FR_BUFFER_SIZE`` is 0. All groups of a backend share one recorder,
# so compare only entries of the same ``process_group``. ``dump`` is the function ``_dump_fr_trace_json`` of
# ``torch._C._distributed_c10d``, which may change, as its underscore says. Its last argument is the name of
# the backend. Here, rank 1 does not call the broadcast:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/debug/hanging_rank.py
#       :part: recorder
#
# .. admonition:: Before 2.15
#
#    In PyTorch 2.14, attach ``FlightRecorderHook`` of ``torch._C._distributed_c10d`` to the group, as the
#    program does. Of the backends for CPUs, PyTorch 2.13 records gloo only, so the program uses a gloo group
#    there.

output = launch("debug/hanging_rank.py", ranks=2)

# %%
# Rank 1 has made one call fewer: its last is the barrier, while rank 0 waits in the broadcast.
#
# Do not rely on the states of the entries before you know what your backend reports. ``shm`` has no
# completion hooks, so the recorder never learns that a call has ended. The entry of an asynchronous call is
# ``retired`` as soon as the ``Work`` is there, even if the call then hangs. A synchronous call of ``shm``
# returns no ``Work``, so its entry stays "scheduled" and is never ``retired``, and each healthy call looks as
# if it hangs.
#
# In your backend, implement completion hooks, so that "completed" means that the operation has ended. Also
# let synchronous calls return a ``Work`` that has ended, because the recorder finds the entry through the
# ``Work``. PyTorch's header ``hooks/FlightRecorderHook.hpp`` describes both.
#
# .. not-executed::
#
#    If you have not prepared the program, ``py-spy`` and ``gdb`` show its stacks. They stop a process
#    from outside, which not every machine allows, so the build does not run them.
#
#    .. code-block:: console
#
#       $ py-spy dump --native --pid 12345
#       $ gdb -p 12345 -batch -ex "thread apply all backtrace"
#
# Where the time goes
# -------------------
#
# PyTorch's profiler shows when each operator is called. To also show how long the communication takes, each
# work must be an event of its own. The constructor of ``c10d::Work`` begins the event if you pass a title,
# but only the backend knows when the event ends:
#
# .. listing:: extension/frame/work.hpp
#    :part: profiler
#
# While a profiler runs, the frame therefore creates a work also for a synchronous collective.
#
# The next worker trains as on :doc:`/right/training`, and profiles the third step. Each operation has two
# events:

output = launch("debug/profile_training.py", ranks=2, expected_stderr=PROFILER, show=False)
results = [json.loads(text) for text in output]
show_table(["feature", "the call", "the operation"], results[0]["events"])

# %%
# The first event is the call of the operator. The second lasts until the operation ends, so it contains the
# time in which the rank waits for others. To show that, rank 1 is 0.3 s late:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/debug/profile_training.py
#       :part: late

for rank, result in enumerate(results):
    print(f"rank {rank}: ends more than 0.2 s after the call: {result['later']}")

# %%
# The event of rank 0 is long because rank 1 was late. So before you blame the backend for a long event,
# compare the same event on all ranks.
#
# Bug: tensors of different shapes
# --------------------------------
#
# A bug in the program can look like one in the backend, for example if the ranks pass tensors that do not
# fit. A backend can find some of these bugs itself: ``shm`` compares the sizes, but not the shapes. In the
# next program, the ranks reduce tensors of one size and different shapes, first without and then with the
# debug level ``DETAIL``. The level belongs to the process, which usually gets it from the variable
# ``TORCH_DISTRIBUTED_DEBUG``:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/debug/ranks_differ.py
#       :part: shapes
#
# At this level, PyTorch puts a wrapper around the backend of each new group, which compares the calls of all
# ranks through a gloo group of its own before each collective. Do not measure at this level, because gloo is
# part of each call.
#
# Each element is ten times its row plus its column, both counted from 0. With two tensors of one shape, the
# sum is twice each element, as in ``the next call``:

output = launch("debug/ranks_differ.py", ranks=2)

# %%
# Without ``DETAIL``, the ranks add numbers that do not belong together, and no error appears: the 12 of
# rank 0 is the sum of its own 2 and of the 10 that begins the second row of rank 1. With ``DETAIL``, all ranks
# raise an error that contains both shapes. The wrapper has not called the backend then, so the group is not
# broken, and the next call returns the sum.
#
# The fix for the program is one run at the level ``DETAIL`` before each long training run of new code. The
# wrapper asks the backend for sequence numbers, so override this method:
#
# .. listing:: extension/frame/backend.hpp
#    :start-at: getSequenceNumberForGroup
#    :end-at: getSequenceNumberForGroup
#
# Exercise
# --------
#
# Three ranks reduce a tensor in each of three steps, and in each step a different rank sleeps for half a
# second before its call. Record the steps with the profiler, and let rank 0 print which rank was the last in
# each step. Do not compare the clocks of the ranks.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The last rank need not wait, so its event is the shortest, and a duration needs only the clock of its
#    own rank. ``step`` sleeps on one rank, and then calls ``all_reduce``.
#
#    .. listing:: gallery/communicate/debug/who_is_late.py
#       :part: solution
#
# Three ranks run the solution. The second line is the order in which they slept:

output = launch("debug/who_is_late.py", ranks=3, expected_stderr=PROFILER)

# %%
# The profiler shows why one step is slow. To find out whether a backend is slow, :doc:`measure` compares it
# with others.

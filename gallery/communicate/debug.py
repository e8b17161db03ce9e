"""
Debug a backend
===============

After this page you can find the rank that a hanging program waits for, and the line where the
others wait. You can also see where the time of a step goes, and find ranks whose calls differ.

A rank that hangs often has no defect: it waits for another rank. PyTorch and Python have tools
for this, and each tool answers a different question:

.. diagram:: communicate/debug/diagram

Find a missing rank
-------------------

``monitored_barrier`` finds a rank that does not come. In this program, rank 2 is missing:

.. listing:: gallery/communicate/debug/monitored_barrier.py
   :part: missing

``monitored_barrier`` in the program calls that of ``torch.distributed``, or the method of the
group: in PyTorch 2.13 the function is for gloo only.
"""

import json

from launcher import PROFILER, launch
from result_table import show_table

output = launch("debug/monitored_barrier.py", ranks=3)

# %%
# The worker prints the first reason in the error of the barrier. On rank 0, it names rank 2. On
# rank 1, it only says that rank 1 is not at fault. ``shm`` then adds the reason of the rank that
# timed out first, and gloo does not.
#
# Look at a hanging rank
# ----------------------
#
# In the next program, rank 1 is late, and rank 0 finds out in three ways where it hangs. First, a
# short ``wait`` tells which operation has not ended, and which ranks are missing. It does not
# break the group:
#
# .. listing:: gallery/communicate/debug/hanging_rank.py
#    :part: state
#
# The timeout of the operation does break it, and names the ranks that it waits for:
# :doc:`/right/timeouts-and-dead-ranks` shows that error.
#
# Second, ``faulthandler`` of Python writes the stack of a program that hangs in C++. It needs
# no signal, because it writes from a thread of its own:
#
# .. listing:: gallery/communicate/debug/hanging_rank.py
#    :part: stack
#
# Rank 1 comes as soon as the file contains the stack. The program prints the file and the
# function of each frame, the innermost first.
#
# Third, PyTorch's flight recorder notes each call of a collective in memory. From PyTorch 2.15
# on, it notes the calls of a backend such as ``shm``, too, unless the environment variable
# ``TORCH_FR_BUFFER_SIZE`` is 0. All groups of a backend share one recorder, so compare entries of
# the same ``process_group``. ``dump`` is the function
# ``_dump_fr_trace_json`` of ``torch._C._distributed_c10d``, and its last argument is the name of
# the backend. The underscore means that it may change. Rank 1 does not call the broadcast:
#
# .. listing:: gallery/communicate/debug/hanging_rank.py
#    :part: recorder
#
# In PyTorch 2.14, the program attaches ``FlightRecorderHook`` to the group. Of the backends for
# CPUs, PyTorch 2.13 records gloo only, and the program uses a gloo group there.

output = launch("debug/hanging_rank.py", ranks=2)

# %%
# Rank 1 has made one call fewer, and its last one is the barrier. Compare the last entries of the
# ranks, and not their states. ``shm`` has no completion hooks, so in 2.15 the recorder never learns
# that a call has ended. A synchronous call also returns no ``Work``, so its entry stays
# "scheduled" and is never ``retired``: each healthy call looks as if it hangs. The entry of an
# asynchronous call is ``retired`` as soon as the ``Work`` is there, even if the call then hangs.
#
# In your backend, implement completion hooks, so that "completed" means that the operation has
# ended. With or without these hooks, let synchronous calls return a ``Work`` that has ended,
# because the recorder finds the entry through the ``Work``. PyTorch's header
# ``hooks/FlightRecorderHook.hpp`` describes this.
#
# .. not-executed::
#
#    The tools ``py-spy`` and ``gdb`` show the stacks of a process that was not prepared. They
#    stop it from outside, which not every machine allows, so the build does not run them.
#
#    .. code-block:: console
#
#       $ py-spy dump --native --pid 12345
#       $ gdb -p 12345 -batch -ex "thread apply all backtrace"
#
# Where the time goes
# -------------------
#
# A work can be an event in PyTorch's profiler. The constructor of ``c10d::Work`` begins the
# event if a title is passed, and only the backend knows when the event ends:
#
# .. listing:: extension/frame/work.hpp
#    :part: profiler
#
# A synchronous collective of ``shm`` creates a work only for this purpose, unless it is coalesced.
# The next worker trains as on :doc:`/right/training`, and profiles the third step. Each operation
# has two events:

output = launch("debug/profile_training.py", ranks=2, expected_stderr=PROFILER, show=False)
results = [json.loads(text) for text in output]
show_table(["feature", "the call", "the operation"], results[0]["events"])

# %%
# The first event is the call of a PyTorch operator. The second lasts until the operation ends, and
# contains the time in which the rank waits for others. Here rank 1 is 0.3 s late:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/debug/profile_training.py
#       :part: late

for rank, result in enumerate(results):
    print(f"rank {rank}: ends more than 0.2 s after the call: {result['later']}")

# %%
# So a long event of one rank can mean that another rank was late. Compare the same event on all
# ranks before you blame the backend.
#
# A mistake: tensors of different shapes
# --------------------------------------
#
# ``shm`` compares notes of its operations, but not all mistakes are in them. Here the ranks
# reduce tensors of one size and of different shapes. The debug level is a property of the
# process. A program usually gets it from the variable ``TORCH_DISTRIBUTED_DEBUG``:
#
# .. listing:: gallery/communicate/debug/ranks_differ.py
#    :part: shapes
#
# At the level ``DETAIL``, PyTorch puts a wrapper around the backend of each new group. Before
# each collective, the wrapper compares the calls of all ranks through a gloo group of its own.
# Do not measure at this level, because gloo is part of each call.
#
# Each element is ten times its row plus its column, both counted from 0. Two tensors of one shape
# give twice each element, as the line ``the next call`` shows:

output = launch("debug/ranks_differ.py", ranks=2)

# %%
# The 12 of rank 0 is the sum of its own 2, and of the 10 that begins the second row of rank 1.
#
# Without ``DETAIL``, the ranks add numbers that do not belong together, and nobody notices. With
# ``DETAIL``, all ranks get an error that contains both shapes. The backend was not called, so the
# group is not broken: the next call returns the sum. The wrapper needs sequence numbers, so ``shm``
# overrides a method for it:
#
# .. listing:: extension/frame/backend.hpp
#    :start-at: getSequenceNumberForGroup
#    :end-at: getSequenceNumberForGroup
#
# The cure is to run a new program at the level ``DETAIL`` once, before a long training run.
#
# Exercise
# --------
#
# Three ranks reduce a tensor in each of three steps. In each step, a different rank sleeps for
# half a second before its own call. Record the steps with the profiler, and let rank 0 print which
# rank was the last in each step. Do not compare the clocks of the ranks.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The last rank waits for nobody, so its event is the shortest. A duration needs only the clock
#    of its own rank. ``step`` sleeps on one rank, and then calls ``all_reduce``.
#
#    .. listing:: gallery/communicate/debug/who_is_late.py
#       :part: solution
#
# Three ranks run the solution. The second line is the order in which they slept:

output = launch("debug/who_is_late.py", ranks=3, expected_stderr=PROFILER)

# %%
# These tools explain a failure that you have seen. :doc:`test-your-backend` shows how to find
# failures before a program does.

"""
Debug hangs and wrong results
=============================

If a job hangs, with DDP, FSDP2 or your own backend, follow the steps of this page in their order. If it computes wrong
results, begin with ``DETAIL``, and if it is slow, with the profiler. Authors of a backend have a section near the end.

.. diagram:: communicate/debug/diagram

The rank that hangs is often not the one with the bug, because it only waits for another rank. It waits until
the timeout of the group, by default 30 minutes, and 10 if ``backend`` is ``"nccl"``. So each step compares all
ranks, to find the one that differs. Step 1, and with NCCL step 2, need no preparation; for the
others, start the job again:

.. list-table::
   :header-rows: 1

   * - tool
     - what you do
     - what it shows
   * - 1. ``py-spy``
     - attach it to the running process
     - the line in which each rank is
   * - 2. flight recorder
     - let each rank write its trace; with NCCL, wait for the timeout
     - the first call that a rank did not make
   * - 3. ``DETAIL``
     - set a variable, and start the job again
     - ranks that call different operations or pass different shapes
   * - 4. ``monitored_barrier``
     - add two lines of code
     - which rank is missing at this line
   * - 5. profiler
     - record a step
     - which rank is late in each call

The samples use ``shm``, this site's backend for shared memory.

Look at a hanging rank
----------------------

To see where the ranks are stuck, take the stack of each from outside, on every host. ``pgrep`` finds the
processes, and ``grep`` reads the rank of one from its environment. ``py-spy`` shows the Python stack and, with
``--native``, its C++ frames. ``gdb`` also shows threads that run only C++, such as a watchdog:

.. not-executed::

   Both tools stop a process from outside, which not every machine allows, so the build does not run them. A
   container needs the capability ``SYS_PTRACE``.

   .. code-block:: console

      $ pip install py-spy
      $ pgrep -af train.py
      $ grep -z ^RANK= /proc/12345/environ
      $ py-spy dump --native --pid 12345
      $ gdb -p 12345 -batch -ex "thread apply all backtrace"

Then compare the stacks:

- If the process of a rank is gone, its log has the cause.
- If all ranks but one are in the same collective, find out what keeps that one away, for example the data loader
  or a checkpoint.
- If ranks are in different collectives, or all wait for a GPU, for example in ``loss.item()``, go on with the next
  step: on GPUs, collectives return before they have ended.
- If only ``init_process_group`` or ``new_group`` is slow, check DNS: each connection to the store asks for the name of
  its address.

Where neither tool is allowed, prepare the program with Python's ``faulthandler``. It writes the stacks from a
thread of its own, so it works although the main thread hangs in C++. Here it writes them every half second
until rank 1 arrives:

.. admonition:: Stacks with ``faulthandler``
   :collapsible: closed

   .. listing:: gallery/communicate/debug/hanging_rank.py
      :part: stack
"""

from launcher import PROFILER, launch

output = launch("debug/hanging_rank.py", ranks=2)

# %%
# The innermost frame is on top. So rank 0 hangs in the ``all_reduce`` of ``train``.
#
# Compare calls with the flight recorder
# --------------------------------------
#
# A stack shows where a rank is now, but not which calls it has made. PyTorch's flight recorder keeps the last 2000
# calls of a backend in memory; ``TORCH_FR_BUFFER_SIZE`` changes the number. With NCCL,
# ranks write them to files at the timeout (settings below); otherwise, the program must do so. In the next
# program, rank 1 skips a call, and the group's timeout of one second ends the wait of rank 0:
#
# .. listing:: gallery/communicate/debug/missing_call.py
#    :part: calls
#
# To compare the ranks, let each write its trace to a file in one folder:
#
# .. listing:: gallery/communicate/debug/missing_call.py
#    :part: trace
#
# The command ``torchfrtrace FOLDER`` then reports the first call that not all ranks have made. For another backend,
# replace ``"shm"`` by the name that it gives itself, which for ``nccl`` of PyTorch 2.15 is ``"nccl2"``. The three
# flags ask for collectives, Python stacks and completed calls. ``c10d`` is ``torch._C._distributed_c10d``, whose
# functions that begin with an underscore may change.
#
# .. admonition:: In a real hang, let a timer write the trace
#    :collapsible: closed
#
#    The group's timeout may be long, and the thread that hangs cannot run these lines. So move them into a function
#    ``write_trace``, and let a timer call it if a training step takes longer than a minute. The step must include the
#    line that waits for the device, such as ``loss.item()``:
#
#    .. not-executed::
#
#       The wait of the program above ends after a second.
#
#       .. code-block:: python
#
#          timer = threading.Timer(60, write_trace)
#          timer.daemon = True  # so that the process can end
#          timer.start()
#          loss = train_step(batch)
#          loss.item()
#          timer.cancel()
#
# .. admonition:: For gloo, the newest entry of each rank
#    :collapsible: closed
#
#    On traces of gloo, ``torchfrtrace`` of PyTorch 2.15 fails with a ``KeyError``. For gloo, print the newest entry
#    of each rank instead. In this code, ``dump`` is ``c10d._dump_fr_trace_json``; replace ``"shm"`` by ``"gloo"``.
#    Compare only entries of the same ``process_group``, because all groups of a backend share one recorder:
#
#    .. listing:: gallery/communicate/debug/missing_call.py
#       :part: recorder
#
# .. admonition:: Before 2.15
#    :collapsible: closed
#
#    In PyTorch 2.14, attach ``FlightRecorderHook`` of ``torch._C._distributed_c10d`` to the group, as the
#    program does. Of the backends for CPUs, PyTorch 2.13 records gloo only, so the program uses a gloo group
#    there.
#
# Rank 0 prints two lines of the report, and each rank its newest entry:

output = launch("debug/missing_call.py", ranks=2)

# %%
# The report names the call and the rank that did not make it. It also contains the line of the call, so search the
# program there for a branch in which rank 1 skips the broadcast. Do not rely on the ``state`` of an entry: if a
# backend, such as ``shm``, does not report the ends of its operations, even a completed call can stay "scheduled".
#
# Check each call with ``DETAIL``
# -------------------------------
#
# To find ranks that call different operations, or pass different shapes, run the program once with the variable
# ``TORCH_DISTRIBUTED_DEBUG=DETAIL``. PyTorch then puts a wrapper around the backend of each new group. Before each
# collective, the wrapper compares the calls of all ranks through a gloo group of its own. If a rank does not arrive,
# rank 0 names it at the timeout of the group.
#
# ``DETAIL`` also finds some wrong results that raise no error. In the next program, the ranks reduce tensors with
# the same number of elements but different shapes, first without and then with ``DETAIL``. So that one run shows
# both, the program calls ``dist.set_debug_level``, which applies to the groups that are created afterwards:
#
# .. admonition:: Tensors of different shapes
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/debug/ranks_differ.py
#       :part: shapes

output = launch("debug/ranks_differ.py", ranks=2)

# %%
# Without ``DETAIL``, the ranks add numbers that do not belong together. With ``DETAIL``, all ranks raise an
# error that contains both shapes. The wrapper has not called the backend then, so the group is not broken,
# and the next call returns the sum.
#
# Run new code with ``DETAIL`` before a long training run, but do not measure with it, because gloo is part of
# each call. ``DETAIL`` cannot see values: to find the first call that passes a NaN, set ``TORCH_DIST_NAN_CHECK=1``,
# which needs PyTorch 2.14.
#
# Find a missing rank
# -------------------
#
# If you know roughly where a rank goes missing, put a barrier there that names it. ``monitored_barrier`` needs
# a backend for CPUs that has this method. So with NCCL, let all ranks create a gloo group once, beside the
# group for training:
#
# .. listing:: gallery/communicate/debug/monitored_barrier.py
#    :part: missing
#
# In the program, rank 2 does not arrive:

output = launch("debug/monitored_barrier.py", ranks=3, expected_stderr="monitoredBarrier")

# %%
# The error of rank 0 names the missing rank; rank 1 fails only because rank 0 gave up. If rank 0 is missing, the
# others fail as rank 1 does here, at the latest at the timeout of the gloo group. With ``wait_all_ranks=True``, rank
# 0 names all missing ranks.
#
# Find a late rank
# ----------------
#
# If a job is slow, one rank may hold up all others. PyTorch's profiler shows the call of each operation and, if
# the backend supports it, an event that lasts until the operation ends. That event contains the time in which the
# rank waits for others. To show this, the program delays rank 1 by 0.3 s, and compares the ends of the
# call, ``c10d::allreduce_``, and of the operation, ``shm:all_reduce``:
#
# .. admonition:: The late rank
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/debug/late_in_a_profile.py
#       :part: late

output = launch("debug/late_in_a_profile.py", ranks=2, expected_stderr=PROFILER)

# %%
# The event of rank 0 is long because rank 1 was late. So before you blame the network or the backend for a long
# event, compare the same event on all ranks. In an all-reduce, the last rank need not wait, so its event is the
# shortest. On GPUs, also record the CUDA activities, with a trace file for each rank: a kernel of NCCL lasts until
# the last rank has arrived.
#
# Settings for NCCL
# -----------------
#
# NCCL's backend has a watchdog, a thread that finds calls that fail or exceed the timeout. Environment
# variables decide whether it then ends the process, and what it leaves for you to read:
#
# .. list-table::
#    :header-rows: 1
#
#    * - variable
#      - meaning
#    * - ``TORCH_NCCL_ASYNC_ERROR_HANDLING``
#      - what happens after an error or a timeout: 0 nothing, 1 abort the communicators and end the process,
#        2 only abort, 3 (the default) only end the process
#    * - ``TORCH_NCCL_DUMP_ON_TIMEOUT``, in 2.15 also ``TORCH_FR_DUMP_ON_TIMEOUT``
#      - each rank that notices an error or a timeout writes its flight recorder to a file on its node; on by
#        default, 0 turns it off
#    * - ``TORCH_FR_DUMP_TEMP_FILE``
#      - the path of these files up to the rank, by default ``~/.cache/torch/comm_lib_trace_rank_``
#
# Collect the files of all nodes in one folder for ``torchfrtrace``. A rank that has noticed nothing leaves no file;
# the command then stops with ``Missing dump files from ranks`` and the rank's number. Add
# ``--allow-incomplete-ranks`` to go on.
#
# .. admonition:: Before 2.15
#    :collapsible: closed
#
#    The rank that noticed an error or a timeout also told the others through the store to write their files. The
#    backend of that time is now called ``nccl-legacy``.
#
# For authors of a backend
# ------------------------
#
# How much these tools show depends on what your backend reports:
#
# .. list-table::
#    :header-rows: 1
#
#    * - tool
#      - what your backend does for it
#    * - flight recorder
#      - reports the ends of its operations to completion hooks
#    * - ``DETAIL``
#      - overrides ``getSequenceNumberForGroup``
#    * - ``monitored_barrier``
#      - overrides ``monitoredBarrier``, for which the base class throws an error
#    * - profiler
#      - passes a title to ``c10d::Work``, and says when the operation ends
#
# .. admonition:: Flight recorder and profiler
#    :collapsible: closed
#
#    **Flight recorder.** An entry is "scheduled", and becomes "completed" when your backend reports the end of the
#    operation. So implement completion hooks, and let synchronous calls return a ``Work`` (on the CPU, one that has
#    ended), because the recorder finds the entry through the ``Work``. PyTorch's header
#    ``hooks/FlightRecorderHook.hpp`` describes both. ``shm`` does neither. So do not trust the field
#    ``retired`` of its entries, which says that the recorder no longer waits: it makes a hanging asynchronous call look
#    healthy, and a completed synchronous one look as if it hung.
#
#    **Profiler.** The constructor of ``c10d::Work`` begins an event if you pass a title, but only the backend knows
#    when to end it. In ``shm``, the frame of :doc:`/right/smallest-backend` ends it as shown here. So that
#    synchronous collectives have an event, too, the frame creates a ``Work`` for them while a profiler runs:
#
#    .. listing:: extension/frame/work.hpp
#       :part: profiler
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
#    A duration needs only the clock of its own rank. ``step`` sleeps on one rank, and then calls ``all_reduce``.
#
#    .. listing:: gallery/communicate/debug/who_is_late.py
#       :part: solution
#
# Three ranks run the solution. The second line is the order in which they slept:

output = launch("debug/who_is_late.py", ranks=3, expected_stderr=PROFILER)

# %%
# Not run here: NCCL, the timer, ``torchfrtrace`` on traces of gloo or with missing files, and the check for NaN.
# NCCL's variables are described as in PyTorch's headers, and the default path as in its library.

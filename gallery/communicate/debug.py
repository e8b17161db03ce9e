"""
Debug hangs and wrong results
=============================

A job that hangs says nothing, and the rank that you look at is often not the one with the bug, because it only waits
for another. So each tool on this page helps you compare all ranks, and find the one that differs.

If a job hangs, with DDP, FSDP2 or your own backend, follow the sections in their order; the last one has a table of
usual causes. If the job computes wrong results, begin with the section on ``DETAIL``, and if it is slow, with that on
a late rank.

.. diagram:: communicate/debug/diagram

Look while the job still hangs, because the wait ends at the timeout of the group: by default after 30 minutes, and
after 10 if ``backend`` is ``"nccl"`` (:doc:`/tutorial/error-messages` says how to raise it). ``py-spy`` and ``gdb`` can
look at a job that already runs, and NCCL's flight recorder writes its files at the timeout. The other tools need a line
in the program or a variable of the environment, so start the job again for them.

Look at a hanging rank
----------------------

First find out where each rank is stuck. Take its stack from outside, on every host: ``pgrep`` finds the
processes, and ``grep`` reads the rank of one from its environment. ``py-spy`` shows the Python stack and, with
``--native``, its C++ frames. ``gdb`` also shows threads that run only C++:

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

- If all ranks but one are in the same collective, find out what keeps the missing rank away, for example the
  data loader or a checkpoint.
- If ranks are in different collectives, or all wait for a GPU, for example in ``loss.item()``, go on with the flight
  recorder: on GPUs, collectives return before they have ended.
- If only ``init_process_group`` or ``new_group`` is slow, check DNS: each connection to the store asks for the name of
  its address.

Where neither tool is allowed, let the program itself write its stacks, with Python's ``faulthandler``. It writes them
from a thread of its own, so it works although the main thread hangs in C++. In the sample, rank 0 validates after each
epoch, while rank 1 waits for it at a barrier:

.. listing:: gallery/communicate/debug/hanging_rank.py
   :part: validate

The first epoch works, because ``model.module`` is the model without DDP. The second one passes ``model``, after
``faulthandler`` has been told to write the stacks to a file every half second:

.. listing:: gallery/communicate/debug/hanging_rank.py
   :part: stack
"""

from launcher import PROFILER, launch

output = launch("debug/hanging_rank.py", ranks=2)

# %%
# Each function stands above its caller. Rank 0 hangs in ``forward`` of DDP, because the model has buffers, those of
# batch normalization: DDP broadcasts them before each forward pass, also in ``eval`` and under ``no_grad``. Rank 1
# takes part in no forward pass, so no rank receives the broadcast.
#
# The fix is to validate with ``model.module``. You can also let all ranks validate, each on its part of the data.
# With FSDP2, only this second fix helps, because a forward pass gathers parameters from all ranks.
#
# Compare calls with the flight recorder
# --------------------------------------
#
# A stack shows where a rank is now, but not which calls it has made. For that, PyTorch's *flight recorder* keeps the
# last 2000 calls of a backend in memory. With NCCL, each rank that notices the timeout writes these calls, its *trace*,
# to a file; with other backends, the program must do so.
#
# In the next program, rank 1 skips a call, and the group's timeout of one second ends the wait of rank 0. This
# program and the following ones use ``shm``, this site's backend for shared memory:
#
# .. listing:: gallery/communicate/debug/missing_call.py
#    :part: calls
#
# .. admonition:: In a real hang, let a timer write the trace
#    :collapsible: closed
#
#    To compare the ranks, let each write its trace to a file in one folder:
#
#    .. listing:: gallery/communicate/debug/missing_call.py
#       :part: trace
#
#    ``c10d`` is ``torch._C._distributed_c10d``, whose functions that begin with an underscore may change. The three
#    flags ask for collectives, Python stacks and completed calls. For another backend, replace ``"shm"`` by the name
#    that the backend gives itself, which for ``nccl`` of PyTorch 2.15 is ``"nccl2"``.
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
# When all traces are in one folder, the command ``torchfrtrace FOLDER`` reports the first call that not all ranks
# have made. Here rank 0 prints two lines of this report. Each rank also prints its newest entry, from
# ``c10d._dump_fr_trace_json``. With gloo, compare these entries yourself, because ``torchfrtrace`` of PyTorch 2.15
# fails there with a ``KeyError``:

output = launch("debug/missing_call.py", ranks=2)

# %%
# The report names the call and the rank that did not make it. It also contains the line of the call, so search the
# program there for a branch in which rank 1 skips the broadcast.
#
# Do not rely on the ``state`` of an entry: if a backend, such as ``shm``, does not report the ends of its operations,
# even a completed call can stay "scheduled".
#
# .. admonition:: Variables of NCCL's backend
#    :collapsible: closed
#
#    NCCL's backend has a watchdog, a thread that finds calls that fail or exceed the timeout. Environment
#    variables decide whether it then ends the process, and what it leaves for you to read:
#
#    .. list-table::
#       :header-rows: 1
#
#       * - variable
#         - meaning
#       * - ``TORCH_NCCL_ASYNC_ERROR_HANDLING``
#         - what happens after an error or a timeout: 0 nothing, 1 abort the communicators and end the process,
#           2 only abort, 3 (the default) only end the process
#       * - ``TORCH_NCCL_DUMP_ON_TIMEOUT``, in 2.15 also ``TORCH_FR_DUMP_ON_TIMEOUT``
#         - each rank that notices an error or a timeout writes its flight recorder to a file on its node; on by
#           default, 0 turns it off
#       * - ``TORCH_FR_DUMP_TEMP_FILE``
#         - the path of these files up to the rank, by default ``~/.cache/torch/comm_lib_trace_rank_``
#
#    Collect the files of all nodes in one folder for ``torchfrtrace``. A rank that has noticed nothing leaves no file;
#    the command then stops with ``Missing dump files from ranks`` and the rank's number. Add
#    ``--allow-incomplete-ranks`` to go on.
#
# Check each call with ``DETAIL``
# -------------------------------
#
# With the flight recorder, you compare calls after the ranks have stopped. To compare operations and shapes before each
# call, run the program once with the variable ``TORCH_DISTRIBUTED_DEBUG=DETAIL``. PyTorch then puts a wrapper around
# the backend of each new group. Before each collective, the wrapper compares the calls of all ranks through a gloo
# group of its own. If a rank does not arrive, rank 0 names it at the timeout of the group.
#
# ``DETAIL`` also finds some wrong results that raise no error. In the next program, the ranks reduce tensors with
# the same number of elements but different shapes, first without and then with ``DETAIL``:
#
# .. admonition:: Tensors of different shapes
#    :collapsible: closed
#
#    So that one run shows both, the program calls ``dist.set_debug_level``, which applies to the groups that are
#    created afterwards:
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
# If you know roughly where a rank goes missing, put a barrier there that names it: ``monitored_barrier``. It needs
# a backend for CPUs that has this method, such as gloo. So with NCCL, let all ranks create a gloo group once, beside
# the group for training:
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
# If a job is slow but does not hang, one rank may hold up all others. PyTorch's profiler records an event for the call
# of each operation and, if the backend supports it, an event that lasts until the operation ends. This second event
# contains the time in which the rank waits for others. To show that, the program delays rank 1 by 0.3 s, and prints
# whether the operation ends long after its call:
#
# .. admonition:: The late rank
#    :collapsible: closed
#
#    It compares the ends of the call, ``c10d::allreduce_``, and of the operation, ``shm:all_reduce``:
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
# From the rank to its bug
# ------------------------
#
# Each tool has led to a rank that differs from the others, but not to the reason. Continue in the program of that rank:
# look for the branch that the other ranks do not take. Often the cause is one of these:
#
# .. list-table:: Usual causes of a hang
#    :header-rows: 1
#
#    * - what you see
#      - cause
#      - how to make sure
#      - page
#    * - near the end of an epoch, all ranks but one wait in ``backward``
#      - that rank has fewer batches
#      - ``py-spy``: it has left the loop, or its process has ended
#      - :doc:`/overview/data-parallel`
#    * - rank 0 waits in ``forward``, and the others in a barrier or the next step
#      - rank 0 validates alone, with DDP
#      - the stacks of all ranks
#      - above
#    * - a rank raises ``Expected to have finished reduction``, and the others wait in ``backward``
#      - it has skipped a layer, so DDP waits for gradients that never come
#      - ``TORCH_DISTRIBUTED_DEBUG=INFO`` names the parameters
#      - :doc:`/overview/gradient-buckets`
#    * - the loss becomes strange, or ranks wait in different steps
#      - a rank has caught an error, such as out of memory, and skipped its step
#      - the log of each rank; the flight recorder
#      - :doc:`/overview/memory`
#    * - the process of a rank is gone, and the others wait
#      - the kernel has killed it for its memory, or it has crashed
#      - its log, and the signal that ``torchrun`` prints
#      - :doc:`/overview/elastic`
#    * - ranks wait in different collectives
#      - they call collectives, or groups, in different orders
#      - ``DETAIL``; the flight recorder
#      - :doc:`/accelerators/order-and-abort`
#    * - on several hosts, the first collective fails or hangs
#      - a rank uses a network interface that the others cannot reach
#      - ``NCCL_DEBUG=INFO`` logs the interface; set ``NCCL_SOCKET_IFNAME`` or ``GLOO_SOCKET_IFNAME``
#      - :doc:`/overview/several-nodes`
#    * - the ranks find each other, and then cannot connect
#      - a firewall opens only the port of the rendezvous
#      - connect to another port of the host with ``nc -zv``
#      - :doc:`/overview/several-nodes`
#    * - ``init_process_group`` or ``new_group`` waits, and then times out
#      - a rank has not started, or has left out an earlier ``new_group``, which all ranks must call, not only the
#        members
#      - the error names the key, or counts the ranks
#      - :doc:`/tutorial/error-messages`
#    * - all work is done, and a process ends with ``SIGABRT``
#      - a thread of the backend lets go of a tensor while Python ends
#      - it stops if each rank calls ``destroy_process_group`` at its end
#      - :doc:`/right/asynchronous-work`
#
# If you write a backend, you decide how much these tools can show:
#
# .. admonition:: What the tools need from your backend
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - tool
#         - what your backend does for it
#       * - flight recorder
#         - reports the ends of its operations to completion hooks (:doc:`/tutorial/every-operation`)
#       * - ``DETAIL``
#         - overrides ``getSequenceNumberForGroup``
#       * - ``monitored_barrier``
#         - overrides ``monitoredBarrier``, for which the base class throws an error
#       * - profiler
#         - passes a title to ``c10d::Work``, and says when the operation ends
#
#    **Flight recorder.** An entry is "scheduled", and becomes "completed" when your backend reports the end of the
#    operation. So implement completion hooks, and let synchronous calls return a ``Work`` (on the CPU, one that has
#    ended), because the recorder finds the entry through the ``Work``. PyTorch's header
#    ``hooks/FlightRecorderHook.hpp`` describes both. ``shm`` does neither.
#
#    **Profiler.** The constructor of ``c10d::Work`` begins an event if you pass a title, but only the backend knows
#    when to end it. In ``shm``, the frame of :doc:`/right/smallest-backend` ends it as shown here. So that
#    synchronous collectives have an event, too, the frame creates a ``Work`` for them while a profiler runs:
#
#    .. listing:: extension/frame/c10d_frame/include/frame/work.hpp
#       :part: profiler
#
# Not run here: NCCL, firewalls, the timer, ``torchfrtrace`` on traces of gloo or with missing files, and the check for
# NaN. NCCL's variables are described as in PyTorch's headers, and the default path as in its library.

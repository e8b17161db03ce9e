"""
Which thread calls the library
==============================

Most libraries make progress only inside of their calls, so a thread of the backend must call them while the program
computes or waits. If the thread of the program makes these calls while it waits, one that does not return hangs the
program past its deadline, without an error. On this page you decide which thread calls, and with it how fast a
small collective is and which thread safety you need.

.. diagram:: library/which_thread_calls/diagram

Two designs
-----------

Either the thread that waits for an operation calls the library itself, or a thread of the backend makes all calls. The
two designs differ in speed, and in which thread hangs if a call does not return:

.. list-table::
   :header-rows: 1

   * - design
     - the caller of ``wait`` calls the library
     - one thread of the process makes all calls
   * - time of a small collective
     - a few microseconds
     - tens of microseconds more, to hand the call over and to wake the caller
   * - a call that does not return
     - hangs the caller, past its deadline
     - hangs that thread, while callers raise at their deadlines
   * - threads that call
     - several at a time, if there are several groups
     - one

If your transport only reads shared memory, let the caller of ``wait`` do it, because reading memory always returns. A
call of a library may not: ``MPI_Test`` must not wait for other ranks, but when a rank was killed while MPICH used TCP,
the test of another rank did not return. So for most libraries, let one thread of the process make all calls.

A form of the second design has one thread for each group instead of one for the process. The frame does this if
``can_block`` of your transport is true, its default. This suits a library with independent communicators that any
thread may call.

Bug: a call that does not return
--------------------------------

In the next program, ``MPI_Recv`` stands for any call that does not return: it receives in ``SELF``, a communicator
whose only rank is this process, which sends nothing. Each design gives the call half a second:

.. listing:: gallery/library/which_thread_calls/call_that_hangs.py
   :part: designs
"""

from launcher import launch, run_program

run_program("which_thread_calls/call_that_hangs.py")

# %%
# In the first line, the thread that should raise the error is itself inside of MPI. A backend that calls ``MPI_Test``
# in a loop and looks at the clock in between has the same bug, although it shows only when a test hangs. The second
# line shows the fix: a thread that enforces a deadline never calls the library.
#
# A thread for the library
# ------------------------
#
# The frame implements one thread for the process in ``library.hpp``, for libraries that make progress when a call is
# tested. Your transport gives this thread a ``Call``. The thread begins the call, tests it until it has ended, and
# wakes the caller. The listings below have these names:
#
# .. list-table::
#    :header-rows: 1
#
#    * - name
#      - what it is
#    * - ``Call``
#      - something that the library is asked to do, with its memory; you write ``begin`` and ``has_ended``
#    * - a look
#      - one test of all that is open; ``rest`` of the transport gets it as ``look()``, which returns whether
#        something has advanced
#    * - ``Idle``
#      - how many looks in a row have found nothing, and since when
#    * - ``Bell``
#      - lets threads sleep until another one rings; ``rings`` counts, so that a sleeper misses no ring
#
# Neither function of a ``Call`` may wait for another rank:
#
# .. listing:: extension/frame/c10d_frame/include/frame/library.hpp
#    :start-at: // The thread of the library alone
#    :end-before: private:
#
# ``Library`` has the thread and a queue of jobs. All groups of the process share it, because a library such
# as MPI has one state for the whole process:
#
# .. admonition:: The whole ``Call``, and ``Library`` with the thread and its jobs
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/frame/library.hpp
#       :part: call
#
#    A fork copies the memory of a process, but not its threads, so a job would wait forever. The frame therefore
#    compares process ids, and raises an error that says how to start ranks instead.
#
#    When the process ends, the thread may be inside of MPI. The frame detaches it and never destroys the
#    ``Library``, because a destructor that joined a thread that hangs would hang, too.
#
#    .. not-executed::
#       :partly:
#
#       No sample uses MPI in a fork, or waits too long for it in ``run``.
#
#       .. listing:: extension/frame/c10d_frame/include/frame/library.hpp
#          :part: library
#
# A caller must not hang with the library, so it only reads what the library's thread has written. The caller sleeps
# in ``rest`` of the transport, on the ``Bell`` of its group, which the library's thread rings when a call has
# ended:
#
# .. listing:: extension/mpi_collectives/src/mpi_transport.hpp
#    :part: rest
#
# Because no caller hangs, the transport of ``mpich`` returns false from ``can_block``. The callers of ``wait`` then
# drive the operations, as :doc:`/right/asynchronous-work` explains.
#
# The next worker shows a deadline. Its function ``threads_of_mpi`` finds the threads of MPI, and ``sum_of_ones``
# reduces in a group:
#
# .. admonition:: ``threads_of_mpi`` and ``sum_of_ones``
#    :collapsible: closed
#
#    .. listing:: gallery/library/which_thread_calls/one_thread.py
#       :part: program
#       :end-before: before = threads_of_mpi()
#
# In a second group, rank 1 arrives only after rank 0 has given up. Then both ranks use the first group:
#
# .. listing:: gallery/library/which_thread_calls/one_thread.py
#    :start-at: before = threads_of_mpi()
#    :end-before: # [/program]

launch("which_thread_calls/one_thread.py", ranks=2)

# %%
# Both groups use the same thread of MPI. The error of the second group arrives at the deadline, although MPI still
# waits for the message of rank 1. Because the thread only tests the request for this message, it is free for the
# first group.
#
# MPI wants to know at its start how threads will use it. One thread makes all calls, so ``MPI_THREAD_SERIALIZED`` is
# enough. If another package calls MPI, let it initialize MPI with ``MPI_THREAD_MULTIPLE``, and start the program with
# ``mpiexec``.
#
# Waiting for data
# ----------------
#
# A job wakes the thread, but the arrival of data does not, because MPI has no file descriptor to sleep on. So the
# thread must look again and again, and you must decide how often. A thread that looks all the time is fast, but
# takes its core from the ranks.
#
# Most answers come soon or not for long. So how the thread waits depends on the time since the last event, which is a
# new job or the end of a call:
#
# - The first 100 looks follow each other at once, for answers that come within microseconds.
# - After these, until 500 microseconds after the event, the thread calls ``sched_yield`` between looks, so that a
#   rank that shares the core can send what this one waits for.
# - Then the thread naps, each time for an eighth of the time since the event, but at most a millisecond, so a nap
#   adds little to an already long wait.
#
# A test that takes more than 20 microseconds has copied data, so it counts as an event, too. Otherwise the thread
# would nap between the pieces of a large tensor.
#
# .. admonition:: ``serve``
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/frame/library.hpp
#       :part: serve
#       :end-before: // Nothing wakes this thread
#
#    After a look that has found nothing, ``rest`` of ``Library`` goes on at once, yields or sleeps:
#
#    .. listing:: extension/frame/c10d_frame/include/frame/library.hpp
#       :start-at: // Nothing wakes this thread
#       :end-before: // [/serve]
#
# Calls that must block
# ---------------------
#
# Some functions have no nonblocking form, such as ``MPI_Init_thread``, or ``MPI_Comm_create_from_group``, which
# connects a new group. The thread of the library executes them in ``Library::run``, whose caller waits for the end,
# but not past the deadline of the rendezvous. At the deadline the caller raises an error. The thread, however, stays
# in MPI, and all groups of the process stand still until MPI returns.
#
# To keep this rare, the frame connects a group only when all ranks have arrived, as :doc:`/right/rendezvous` shows.
#
# Two threads of a process may also create groups A and B at the same time. If rank 0 begins with A and rank 1 with
# B, each waits in MPI for a call that the other one makes later. So a process of ``mpich`` creates one communicator
# at a time, and the ranks of a group take their turns one after another, in an order that all groups share
# (``turn.hpp``).
#
# The other groups pause while one connects. If the communicators of your library are independent, as NCCL's are, each
# group can have a ``Library`` of its own instead, so that no other group pauses.
#
# Other libraries
# ---------------
#
# With MPI, the thread must nap. UCX and libfabric can give it a file descriptor to sleep on instead: it polls the
# descriptor together with an ``eventfd`` that each new job signals. The class for this, ``FileBell`` in
# ``file_bell.hpp``, also lets the threads of a transport over sockets sleep. A library that has only messages needs
# neither this class nor a thread of its own: :doc:`/algorithms/sockets` shows the base class ``Connections``, which
# asks for the descriptor.
#
# .. admonition:: For reference: progress in NCCL, UCX and libfabric
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - library
#         - who makes progress, and how a thread can wait
#       * - NCCL and its relatives
#         - A collective returns when it is enqueued on a CUDA stream; the device and threads of the library do the
#           rest. A thread of the backend polls ``ncclCommGetAsyncError``, and ``ncclCommAbort`` ends what still
#           runs on the device.
#       * - UCX
#         - ``ucp_worker_progress`` must be called; by default a worker is for a single thread. With
#           ``UCP_FEATURE_WAKEUP``, ``ucp_worker_get_efd`` gives a file descriptor to sleep on; call
#           ``ucp_worker_arm`` before each sleep. For these, override ``progress``, ``file`` and ``arm`` of
#           ``Library``, which makes progress also while no call is open, because sends may still be queued.
#       * - libfabric
#         - ``fi_cq_read`` returns at once, ``fi_cq_sread`` waits with a timeout. A completion queue that was opened
#           with ``FI_WAIT_FD`` has a file descriptor; call ``fi_trywait`` before each sleep on it.
#
# .. admonition:: After this page you have decided
#
#    - which thread calls the library: the caller of ``wait``, one for each group, or one for the process;
#    - which other thread enforces the deadlines;
#    - what the thread sleeps on: a descriptor of the library, or naps, and how long they become;
#    - in which order groups connect, if that call blocks;
#    - which thread level you ask of the library.
#
# Not run here: these libraries, for which the table follows their documentation, and a test of MPI that hangs after a
# rank was killed.

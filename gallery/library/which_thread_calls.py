"""
Which thread calls the library
==============================

While a program computes or waits, a thread of the backend must call the library, because most libraries make
progress only inside of their calls. This page helps you decide which thread that is, and what follows for
deadlines, speed and thread safety.

.. diagram:: library/which_thread_calls/diagram

Two designs
-----------

A backend can be built in two ways:

.. list-table::
   :header-rows: 1

   * -
     - the caller of ``wait`` calls the library
     - one thread of the process makes all calls
   * - time of a small collective
     - a few microseconds
     - some tens of microseconds more, to hand the call over and to wake the caller
   * - a call that does not return
     - hangs the caller, past its deadline
     - hangs that thread; callers raise at their deadlines
   * - thread safety that the library needs
     - any thread may call, although one at a time
     - one thread calls

The first design is what :doc:`/right/asynchronous-work` calls a caller that drives, and shared memory deserves
it, because a look at memory always returns. A library promises less than that. ``MPI_Test`` does not wait for
other ranks, as the standard says, but it may meet a problem of the network: when a rank was killed while MPICH
used TCP, the test on another rank did not return. For most libraries, choose the second design.

Bug: a call that does not return
--------------------------------

In the next program, ``MPI_Recv`` stands for any call that does not return. Both designs have half a second for
it:

.. listing:: gallery/library/which_thread_calls/call_that_hangs.py
   :part: designs

Another process watches both, and kills the one that hangs:
"""

from launcher import launch, run_program

run_program("which_thread_calls/call_that_hangs.py")

# %%
# A backend that calls ``MPI_Test`` in a loop and looks at the clock in between has the same bug, although it
# shows only on the day when a test hangs. The fix is that the thread which keeps the deadline never calls the
# library.
#
# A thread for the library
# ------------------------
#
# The frame has the second design for any library in ``library.hpp``. A ``Call`` says how something begins in
# the library and how to ask whether it has ended. Neither function may wait for another rank:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: extension/frame/library.hpp
#       :part: call
#
# The class ``Library`` has the thread and a queue of jobs. All groups of the process share it, because a
# library such as MPI has one state for the whole process:
#
# .. listing:: extension/frame/library.hpp
#    :part: library
#
# When a call has ended, its thread rings the ``Bell`` of the group, on which the caller sleeps. The transport
# of ``mpich`` therefore returns false from ``can_block``: the threads that drive it read only what the thread of
# the library has written, and cannot hang. The caller drives after all, but never enters MPI, so only one
# hand-over remains. Its ``rest`` sleeps on the bell, and wakes every 50 milliseconds to ask for lost ranks:
#
# .. listing:: extension/mpi_collectives/src/mpi_transport.hpp
#    :part: rest
#
# The worker shows a deadline in this design. It makes a second group with a timeout of one second, in which
# rank 1 arrives only after rank 0 has given up. Then both ranks use the first group:
#
# .. listing:: gallery/library/which_thread_calls/one_thread.py
#    :part: program

launch("which_thread_calls/one_thread.py", ranks=2)

# %%
# The error comes at the deadline, although the requests of rank 0 have not ended. MPI keeps them, and the thread
# is free for the first group.
#
# Calls that must block
# ---------------------
#
# Some functions have no nonblocking form: ``MPI_Init_thread``, and ``MPI_Comm_create_from_group``, which
# connects a new group. ``Library::run`` executes them on the thread, and its caller waits until the deadline of
# the rendezvous. If the deadline passes, the caller raises, but the thread stays in MPI, and no other group of
# the process gets on until that function returns.
#
# So the frame calls it only when all ranks have arrived, as :doc:`/right/rendezvous` shows, so the call does
# not begin while a rank is missing. It also means that a new group makes the operations of other groups wait for a moment, and
# that all ranks must create their groups in the same order. PyTorch demands this order anyway.
#
# Waiting for data without a bell
# -------------------------------
#
# Jobs wake the thread, but nothing wakes it when data arrives, because MPI offers neither a file descriptor nor
# a callback for that. So the thread must test again and again, and the question is how often:
#
# .. listing:: extension/frame/library.hpp
#    :part: serve
#
# It begins with 100 looks in a row, for answers that come in microseconds. For the next 500 microseconds it calls
# ``sched_yield`` between two looks, so that a rank that shares the core can send what this one waits for. This
# step matters most when there are more ranks than cores. With four ranks on two cores, a blocking all-reduce of
# MPICH, which spins, took milliseconds for 4 bytes; tests with a yield in between took hundreds of microseconds.
# At last the thread naps, for an eighth of the time in which nothing has ended, and at most a millisecond. A nap
# thus adds little to a wait that is long anyway, and an idle rank leaves the core to others. Without any calls,
# the thread sleeps until the next job.
#
# Thread levels, forks and the end
# --------------------------------
#
# MPI asks at its start how threads will use it. Because one thread makes all calls of the backend,
# ``MPI_THREAD_SERIALIZED`` is enough, and MPI needs no locks. ``MPI_THREAD_MULTIPLE`` would be necessary if
# another package of the process called MPI at the same time.
#
# A fork has a copy of the memory, but not the thread. A job for it would wait for ever, so ``run`` compares
# process ids, and raises an error that says how to start ranks instead.
#
# At the end of the process, the thread may be inside of MPI, perhaps for ever. The frame therefore detaches it
# and never destroys the ``Library``: a destructor that joins the thread would turn a hang of the library into a
# hang of the program's end.
#
# Other libraries
# ---------------
#
# The question is the same for other libraries, but some answer part of it themselves:
#
# .. list-table::
#    :header-rows: 1
#
#    * - library
#      - who makes progress, and how to wait
#    * - NCCL and its relatives
#      - A collective returns when it is enqueued on a CUDA stream, so any thread may call, and the device and
#        threads of the library do the rest. A thread of the backend polls ``ncclCommGetAsyncError``; at the
#        deadline, ``ncclCommAbort`` ends what still runs on the device.
#    * - UCX
#      - ``ucp_worker_progress`` must be called; a worker is by default for a single thread. With
#        ``UCP_FEATURE_WAKEUP``, the thread can sleep on the file descriptor of ``ucp_worker_get_efd``, after
#        ``ucp_worker_arm`` has found no event that is still to be handled.
#    * - libfabric
#      - ``fi_cq_read`` returns at once, ``fi_cq_sread`` waits with a timeout. A completion queue that was opened
#        with ``FI_WAIT_FD`` has a file descriptor; call ``fi_trywait`` before each sleep on it.
#
# With a file descriptor, the naps go away: the thread polls it together with an ``eventfd`` that each new job
# signals.
#
# Not run here: the libraries of this table, from whose documentation it was made, a test of MPI that hangs after
# a rank was killed, and the comparison with four ranks. :doc:`requests-and-works` follows one operation through
# this thread and back.

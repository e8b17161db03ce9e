"""
Timeouts, dead ranks, and what MPI cannot give
==============================================

MPI moves the data of ``mpich``, but it does not promise to report that a rank has died, to give up after a
time, or to let go of a tensor. With MPI alone, one killed rank can leave all others waiting until a user ends the
job. For your library, you must decide who watches the ranks, who enforces the deadlines, and what becomes of the
memory of an operation that has failed. :doc:`/right/timeouts-and-dead-ranks` explains when the frame asks whether a
rank is gone, and what PyTorch expects of the errors.

A watch beside the library
--------------------------

If a rank dies, the requests of the others stay open, as if the rank were late. MPI may report a broken
connection late or never, and over shared memory there is no connection. So the frame has a class ``Watch``,
which uses two other sources, the kernel and the store:

.. diagram:: library/lost_ranks_of_a_library/diagram

For a rank on this host, the watch looks at a *pidfd*, a file descriptor that becomes readable when the process of
the rank ends. The kernel does not know the processes of another host, so each rank counts up a key in the store,
its *heartbeat*. A rank whose counter stands still for ``Options.heartbeat``, by default 10 seconds, counts as dead:

.. admonition:: The keys of ``Watch``, and ``count_beats``
   :collapsible: closed

   .. listing:: extension/frame/c10d_frame/include/frame/watch.hpp
      :part: watch

   ``far`` has the ranks of other hosts, and ``end`` notes how one has ended.

   .. not-executed::

      All ranks of this page are on one host.

      .. listing:: extension/frame/c10d_frame/include/frame/watch.hpp
         :part: beats

A rank that computes for long must not seem dead, so a separate thread counts up the key. Once the group exists, this
thread makes all calls of the store, because a store whose host is down does not answer. If the thread that waits for an
operation also waited for the store, it would not notice that its deadline has passed.

One reason on every rank
------------------------

One rank may see a failure that the others see later or never, such as the death of a process on its own host. So the
rank that finds a failure adds the reason to the list ``news`` in the store, and the others raise the same reason. The
watch of each rank reads this list about ten times a second while an operation waits, and once a second otherwise.

.. admonition:: No rank succeeds alone
   :collapsible: closed

   A late rank must not succeed alone, although MPI may have received all that its call needs before the others
   failed. So if the watch has read ``news`` more than 0.2 seconds ago, the call waits before it returns, until the
   watch has read the list again, or until the store has been silent for a second.

   A rank that fails raises its error 0.2 seconds after its line has come to the store, or after a second if the
   store does not answer, so that by then no other rank relies on what it read before.

   If rank 0 hosts the store, the store ends with its process. A rank that waits for other hosts raises an error when
   the store has not answered for the time of a heartbeat. And when the group has failed, rank 0 leaves only when the
   others know why, or after 1.5 seconds.

The next program loses rank 2 in three ways, while the others wait for it in a barrier with a timeout of two
seconds:

.. listing:: gallery/library/lost_ranks_of_a_library/killed_ranks.py
   :start-at: WAYS = {
   :end-before: # [/ways]

A backend that is tested over shared memory alone may hang over the network. So the program loses rank 2 in each way a
second time with ``MPIR_CVAR_NOLOCAL=1``, which makes MPICH use the network between ranks of one host:
"""

from launcher import launch, run_program

output = run_program("lost_ranks_of_a_library/killed_ranks.py")

# %%
# Over shared memory and over the network, the errors are the same. They name the rank that was killed or has left,
# with the reason. The stopped rank is noticed at the deadline, as one that has not called the barrier.
#
# The watch in your transport
# ---------------------------
#
# To raise such errors, your transport creates the watch in its constructor, and ends it in ``leave``. In between, the
# watch tells the frame whether the group has failed or a rank is lost, and announces a failure to the other ranks:
#
# .. admonition:: The constructor, ``failure``, ``lost`` and ``announce``
#    :collapsible: closed
#
#    .. listing:: extension/mpi_collectives/src/mpi_transport.hpp
#       :start-at: MpiTransport(
#       :end-before: // [exchange]
#
#    .. listing:: extension/mpi_collectives/src/mpi_transport.hpp
#       :start-at: std::optional<std::string> failure()
#       :end-before: // [leave]
#
# The frame calls ``leave`` when a rank leaves the group. The operations in which the rank has taken part must not fail
# then, but MPI may still need the process of this rank to deliver their data. So the rank first waits in a barrier, for
# a quarter of a second at most, and only then adds its line to the list ``news``. After that, only an operation that
# the rank had not called fails, such as the barrier of the program above:
#
# .. admonition:: ``leave``: the barrier, then the line
#    :collapsible: closed
#
#    .. listing:: extension/mpi_collectives/src/mpi_transport.hpp
#       :part: leave
#
# Deadlines without the library
# -----------------------------
#
# A stopped rank is not dead, so on its host only a deadline can end the wait for it, but MPI has no deadlines. The one
# thread that makes all calls of MPI cannot enforce one either, because it may hang there, for example on a connection
# to a dead rank. So the threads that wait for operations enforce the deadlines, and none of them calls MPI, as
# :doc:`which-thread-calls` shows.
#
# A library that ends the process
# -------------------------------
#
# A library that notices a failure may end the process, and then the program cannot say why. The backend asks MPI to
# return errors, but MPICH marks some as fatal, such as a connection that breaks in the middle of a transfer, and calls
# ``exit``. So the backend puts a function of its own in the place of ``exit``, which stops the thread of MPI forever.
# The threads that wait for operations then end them with an error:
#
# .. admonition:: ``Exits``
#    :collapsible: closed
#
#    The backend sets ``MPI_ERRORS_RETURN`` for its communicators, for ``MPI_COMM_WORLD`` and for ``MPI_COMM_SELF``.
#    At a fatal error, MPICH also asks the other ranks of the communicator to end. The backend replaces the entry
#    for ``exit`` in the global offset table (GOT) of ``libmpi``. The new function notes the reason. If the watch
#    names no lost rank within the heartbeat and one more second, operations end with this reason.
#
#    .. not-executed::
#       :partly:
#
#       No sample has such an error. A test of the backend lets a rank call ``MPI_Abort``.
#
#       .. listing:: extension/mpi_collectives/src/exits.hpp
#          :part: exits
#
# What a failed operation leaves behind
# -------------------------------------
#
# When an operation has failed, its requests in MPI may still be open, and the backend cannot withdraw them. The
# standard forbids ``MPI_Cancel`` for nonblocking collectives and deprecates it for sends; MPICH ignores it for
# sends over libfabric. The cancel of a receive can come too late, when its data is already on the way into the
# tensor. So the backend cancels nothing. It no longer tests such a request, whose result is of no use, and keeps
# the memory until the process ends.
#
# Bug: the tensor of a failed receive
# -----------------------------------
#
# The memory that the backend keeps goes to no other tensor, but MPI may still write to it, and the program still has
# the tensor of the failed operation. In the next worker, rank 1 is late, and the group fails on rank 0 while a receive
# is open:
#
# .. listing:: gallery/library/lost_ranks_of_a_library/late_data.py
#    :part: receive
#
# After the error, rank 0 fills a tensor with sevens: first the tensor of the failed receive, and in a second try a
# new one. Rank 1, which has not read of the failure yet, sends in the failed group. The barrier runs in the default
# group, which has not failed:
#
# .. listing:: gallery/library/lost_ranks_of_a_library/late_data.py
#    :part: ways

output = launch("lost_ranks_of_a_library/late_data.py", ranks=2, show=False)
print(output[0], end="")

# sphinx_gallery_start_ignore
assert output[1] == ""
# sphinx_gallery_end_ignore

# %%
# In the first case, the message of rank 1 has replaced the sevens, long after the receive had raised its error:
# while MPI ran the barrier, it also completed the receive. No rank reports that.
#
# The fix is the second case: after an error, a program drops the tensors of the operations that have failed, and
# continues with new ones. Say this in the documentation of your backend. The alternative is to receive into memory
# of the backend, and to copy at the end, as ``mpich`` does for small collectives. For messages ``mpich`` does not,
# because long ones would pay for the copy.
#
# After a failure
# ---------------
#
# With the watch and the deadlines, no rank waits for a dead one: all have raised an error, and the program can go on.
# But a failed group stays failed, and ``MPI_COMM_WORLD`` cannot get a new process in place of a dead one. So let
# ``torchrun --max-restarts`` start all ranks again as new processes, as :doc:`/overview/elastic` shows.
#
# Open MPI and NCCL can make a communicator of the survivors. For PyTorch to continue with them, a backend must also
# override ``shrink``, which ``dist.shrink_group`` calls, and return true in ``supportsShrinking``; otherwise the ranks
# start again, as with MPICH.
#
# .. admonition:: Open MPI with ULFM
#    :collapsible: closed
#
#    In Open MPI 5, with the extension ULFM (User-Level Failure Mitigation), a call that needs a dead rank returns
#    an error. The rank that gets it calls ``MPIX_Comm_revoke``, which ends the calls of the others, and the survivors
#    make a communicator of their own with ``MPIX_Comm_shrink``.
#
#    .. not-executed::
#
#       Open MPI cannot be installed beside MPICH in one environment. The program was run by hand with Open MPI
#       5.0.11, on two cores.
#
#       .. listing:: gallery/library/lost_ranks_of_a_library/survivors.cpp
#          :part: survive
#
#       .. listing:: gallery/library/lost_ranks_of_a_library/survivors.txt
#
#    After rank 2 is killed, the survivors go on; in 20 runs, each had the error within 0.1 seconds. After rank 2 is
#    stopped, no call returns an error within two seconds, because a stopped rank is not dead. So the backend must still
#    enforce the deadlines, also because ``MPI_Finalize`` of the survivors did not return in five of the 20 runs.
#
#    ULFM also needs Open MPI's launcher with ``--with-ft ulfm``: without it, ``mpirun`` ends all ranks when one dies.
#
# .. admonition:: For reference: dead ranks with NCCL, UCX and libfabric
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - library
#         - dead ranks, and operations in progress
#       * - NCCL 2.30
#         - Poll ``ncclCommGetAsyncError``; ``ncclCommAbort`` also ends operations on the device.
#           ``ncclCommRevoke`` stops them but keeps the communicator, from which ``ncclCommShrink`` makes one
#           without the dead ranks. PyTorch's own backend polls in a watchdog thread, which also enforces the
#           deadlines.
#       * - UCX
#         - With ``UCP_ERR_HANDLING_MODE_PEER``, sends end, with an error if need be, and the ``err_handler``
#           of the endpoint is called when the transport notices a failure. Shared memory does not notice one
#           unless ``UCX_MM_ERROR_HANDLING=y``, so by default such endpoints use TCP also within a host. If
#           you use ``Watch``, ``UCP_ERR_HANDLING_MODE_NONE`` is enough.
#       * - libfabric
#         - An operation that fails puts an entry into the completion queue, which ``fi_cq_readerr`` reads.
#           Which failures are noticed, and when, depends on the provider.
#
#    If your library can abort, do so in ``announce``, which the frame calls after a failure, so that operations on
#    the device end, too. First pass the reason to the watch, then queue the abort with ``library().add``, so that
#    the library's thread makes this call, too. If a call that looks at a request can hang, the queue does not move.
#    In that case abort from another thread, if the library allows that during such a call.
#
# .. admonition:: After this page you have decided
#
#    - who notices a dead rank: the library, the kernel or a heartbeat, and after how long a silence;
#    - where a rank writes why the group has failed, so that all ranks raise the same reason;
#    - how long the memory of a failed operation is kept, and what you tell users about its tensors;
#    - how a rank leaves a group without failing the operations of the others;
#    - whether all ranks start again after a failure, or the survivors go on.
#
# Not run here: the libraries of the table, which follows their headers and documentation, and heartbeats,
# which the tests of the backend run between two simulated hosts.

"""
From a request of the library to a Work
=======================================

PyTorch expects a ``Work``, while a library gives you a request and borrows your memory. If a failed operation
lets go of its tensor while the library still has the request, late data can overwrite another tensor, and no rank
raises an error. This page follows one call of ``mpich`` from the request to the ``Work``, so that you can decide
what the ranks compare before data moves, and who owns the memory until the library is done.

.. diagram:: library/requests_and_works/diagram

Steps of a collective
---------------------

For each call, the frame asks your transport for a coroutine, which is suspended where it needs another rank, as
:doc:`/right/asynchronous-work` explains. The coroutine of ``mpich`` has two stages. First, so that a mismatch is
found before data moves, the ranks exchange *heads*. Then MPI runs the collective. The code has these names:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``Head``
     - a message to one other rank: the *note* of the operation, the sizes of the data, and the data itself, if it
       has at most ``kFew`` bytes
   * - ``Heads``
     - the heads of one collective: ``mine`` for the other ranks, ``all`` from them
   * - ``most``
     - the bytes of the longest piece; in an ``all_to_all``, of the piece for the rank that gets the head
   * - ``meet``
     - exchanges the heads, and throws an exception if their notes differ
   * - ``combines_in_steps``
     - whether a reduction may combine two ranks at a time, and round each time

.. listing:: extension/mpi_collectives/src/mpi_transport.hpp
   :part: run-collective

In two cases, which the first branch catches, the ranks only exchange their data, and the frame makes the result. Up to
1 KiB of data fits into the heads, so no other call is needed. Sums of 8-bit floats would be rounded too often by MPI,
as :doc:`types-and-reductions` shows.

Both stages lead to the function ``run``. It hands the thread of the library a ``Call``, which is what this thread has
to bring to an end, and suspends until the call has ended. In ``mpich``, the ``Call`` is a ``Requests``, which holds one
or more requests of MPI:

.. listing:: extension/mpi_collectives/src/mpi_transport.hpp
   :part: run

:doc:`lost-ranks-of-a-library` explains the last line of ``run``. The library's thread begins the ``Requests`` and
tests them:

.. admonition:: Lifetimes in ``run``, and ``Requests``
   :collapsible: closed

   The parameters of ``run`` are values, because the target of a reference may be gone when the coroutine resumes.
   ``collective`` may take a reference, because the frame keeps the ``Operation`` until the coroutine is destroyed.
   The condition ``done`` has a name, because it must live while the coroutine is suspended. A temporary does not
   compile there.

   .. listing:: extension/mpi_collectives/src/requests.hpp
      :part: requests
      :end-before: void begin() override

   The library's thread (:doc:`which-thread-calls`) posts them in ``begin``, then tests the open ones:

   .. listing:: extension/mpi_collectives/src/requests.hpp
      :start-at: void begin() override
      :end-before: // [/requests]

While the coroutine is suspended, the program already has its ``Work``. When MPI is done, this ``Work`` ends in four
steps:

1. The library's thread sees that all requests have ended, and rings the bell of the group.
2. The bell wakes the thread that drives, usually a caller of ``wait``, which resumes the coroutine to its end.
3. If the program has asked for a future, the callback thread completes it.
4. From then on, ``is_completed`` of the ``Work`` is true, and ``wait`` returns.

The collectives of a group end in the order of their calls, but a message may end before a collective that was called
earlier. In the next worker, rank 0 begins three all-reduces. While rank 1 is late for them, rank 0 sends it a message:

.. listing:: gallery/library/requests_and_works/works_side_by_side.py
   :part: program
"""

from launcher import launch, run_program

launch("requests_and_works/works_side_by_side.py", ranks=2)

# %%
# ``send`` returned before any all-reduce had ended: the message has requests of its own, so the message overtook the
# all-reduces. The all-reduces run one after another, so their futures complete in the order of the calls.
#
# Heads before data
# -----------------
#
# MPI does not check that all ranks make the same call. If one rank reduces 1000 numbers and another one 2000,
# MPI may return an error, wait, or write past the end of a tensor, because the standard defines no result. If a
# rank is missing, MPI does not say which. So each rank first sends all others its head:
#
# .. admonition:: ``Head`` and ``Heads``
#    :collapsible: closed
#
#    .. listing:: extension/mpi_collectives/src/calls.hpp
#       :part: head
#
# A rank goes on only when the notes of all ranks agree. In this worker, rank 0 reduces 1000 numbers and rank 1
# reduces 2000:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/library/requests_and_works/heads.py
#       :part: program

launch("requests_and_works/heads.py", ranks=2)

# %%
# Both errors name both calls, 4000 bytes on rank 0 and 8000 on rank 1, so the log of one rank shows the mismatch.
#
# Because each rank's head has a request of its own, the error of a timeout can also name the late ranks.
#
# Comparing in every call costs a message to each other rank. In return, the heads carry up to 1 KiB of data, so small
# collectives need no other call of MPI: each rank combines or copies what it has received. With very many ranks, you
# may prefer to compare only in a debug mode, as PyTorch does with ``TORCH_DISTRIBUTED_DEBUG=DETAIL``.
#
# The nonblocking collective
# --------------------------
#
# For longer data, and for ``all_to_all``, whose sizes may differ by rank, the backend calls a collective of MPI. It
# must be nonblocking, because the thread of the library also serves the other groups. The backend takes the functions
# of MPI 4 whose names end in ``_c``. Their counts have 64 bits, because an ``int`` cannot count the bytes of a tensor
# of 2 GiB:
#
# .. admonition:: ``Collective``
#    :collapsible: closed
#
#    .. listing:: extension/mpi_collectives/src/calls.hpp
#       :part: collective
#
#    PyTorch may pass a list of tensors where MPI takes one buffer. To avoid copies, the backend gives MPI the first
#    tensor as the buffer, and the distance of each tensor from the first as its offset. The standard allows such
#    distances only within one allocation, but MPICH accepts any; with another MPI, copy into one buffer. The input
#    of ``reduce_scatter`` must lie in one piece, so the backend copies it otherwise.
#
# Input and output that overlap
# -----------------------------
#
# A program may pass the same memory as input and output. MPI forbids that they overlap, unless the input is
# ``MPI_IN_PLACE``, as an all-gather of one rank shows:
#
# .. listing:: gallery/library/requests_and_works/aliased.py
#    :part: alias

run_program("requests_and_works/aliased.py")

# %%
# MPICH notices only equal addresses, so do not rely on its error. PyTorch allows overlaps, and FSDP2 makes use of
# that: the input of its all-gather is a slice of the output. So the backend compares the address ranges of all
# pieces. What it does about an overlap depends on the operation:
#
# - ``all_reduce``, and ``reduce`` on its root, pass ``MPI_IN_PLACE``, because PyTorch always calls them in place.
# - The other operations copy the input. An all-gather, for example, could pass ``MPI_IN_PLACE`` only if all ranks
#   did, and a rank does not know whether the others gather in place.
#
# The next worker gathers shards, and exchanges rows with ``all_to_all_single``, both in place:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/library/requests_and_works/own_slice.py
#       :part: program

launch("requests_and_works/own_slice.py", ranks=2)

# %%
# Both ranks have both shards, and have exchanged the rows that begin with 1000 and 10000.
#
# Bug: memory given back too early
# --------------------------------
#
# After a timeout, the ``Work`` has failed, and the caller may drop its tensors. The allocator then gives their memory
# to the next tensor. But MPI still has the request, and cannot cancel a collective. The next program models this with
# one process and a receive that fails before its data comes. ``Pool`` is the allocator:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/library/requests_and_works/memory_given_back.py
#       :part: calls
#
# .. listing:: gallery/library/requests_and_works/memory_given_back.py
#    :part: late

run_program("requests_and_works/memory_given_back.py")

# %%
# In the first line, MPI has written into a tensor that has nothing to do with the operation. The fix is a ``Call``
# that owns everything that MPI may use:
#
# - the tensors, through the ``owner`` of the ``Operation``;
# - the copy of an input that overlaps, and the heads;
# - the counts and offsets, which MPI reads until the request is done;
# - the requests.
#
# The coroutine shares the ``Call`` with the thread of the library. When a failure destroys the coroutine, the
# ``Call`` owns itself until the process ends. Late data can then only reach the tensors of the failed operation,
# which a program must not use after the error.
#
# This leak is deliberate, because MPI may never end the request. The leaked request may hold large tensors, but a
# group leaks only once, because the first failure ends the group.
#
# Other libraries
# ---------------
#
# Other libraries differ from MPI in their collectives, and in when they let go of memory. UCP, the high-level API of
# UCX, has no collectives, and libfabric has them only if the provider has ``FI_COLLECTIVE``. Without them, write each
# collective as a coroutine that sends and receives. Both libraries can try to cancel an operation, with
# ``ucp_request_cancel`` and ``fi_cancel``. Its memory is free only when the library reports the end of the operation,
# so until then, the ``Call`` must own this memory, as with MPI.
#
# .. admonition:: For reference: requests of NCCL, UCX and libfabric
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - library
#         - end of an operation, and lifetime of its memory
#       * - NCCL and its relatives
#         - There is no request. Record a CUDA event on the stream after the collective, query it, and keep the
#           tensors until it is complete. An all-gather may have its input in the rank's own part of the output.
#       * - UCX
#         - A call that is done at once returns ``NULL``, others an error or a request. Ask
#           ``ucp_request_check_status``, or pass a callback, which UCX does not call after ``NULL``; release the
#           request with ``ucp_request_free``. ``ucp_tag_send_sync_nbx`` is done when the receiver takes the message,
#           as ``MPI_Issend`` is. At the end, cancel the requests that are still open, in ``cancel`` of each ``Call``,
#           and make progress until none is. Then close each endpoint with ``ucp_ep_close_nbx``, which flushes it,
#           and destroy the worker. If a send does not end, keep the worker.
#       * - libfabric
#         - You pass a context pointer, which an entry of the completion queue returns: let it point to the ``Call``,
#           or to a ``fi_context`` in it if the provider's mode has ``FI_CONTEXT``.
#           ``fi_cq_readerr`` returns the entries of operations that have failed.
#
# .. admonition:: After this page you have decided
#
#    - whether the ranks compare their calls before data moves, in every call or in a debug mode;
#    - up to which size the data travels with the notes;
#    - which calls your library can run in place, and which inputs you copy;
#    - what owns the tensors, the counts and the requests until the library is done, also after a failure.
#
# Not run here: these libraries, for which the table follows their documentation.

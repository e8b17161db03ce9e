"""
From a request of the library to a Work
=======================================

PyTorch expects a ``Work`` that fails with a clear error or has a result, but a library gives you a request and
borrows your memory. This page follows one call of ``mpich`` through both, so that you can decide what the ranks
compare before data moves, and who owns the memory until the library is done.

.. diagram:: library/requests_and_works/diagram

Steps of a collective
---------------------

PyTorch calls ``allreduce`` of the backend. The frame checks the tensors, describes the call in a ``Note``, and
asks your transport for the steps, a coroutine that is suspended where it needs another rank. For the arguments
and the coroutine, see :doc:`/right/tensors-of-every-kind` and :doc:`/right/asynchronous-work`. A collective of
``mpich`` has two steps: the ranks exchange heads, and then MPI moves the data:

.. listing:: extension/mpi_collectives/src/mpi_transport.hpp
   :part: run-collective

Both steps end in ``run``, which hands a call to the thread of the library and suspends until it has ended:

.. listing:: extension/mpi_collectives/src/mpi_transport.hpp
   :part: run

The condition ``done`` has a name, because GCC 12 destroys some temporaries in a ``co_await`` expression too
early. The parameters are values and not references, since a coroutine keeps copies of its parameters, while what
a reference names may be gone when it resumes.

A call of this transport is a list of requests. The thread of :doc:`which-thread-calls` posts them in ``begin``,
and then tests those that are still open:

.. listing:: extension/mpi_collectives/src/requests.hpp
   :part: requests

When all have ended, the thread rings, ``co_await`` continues, and the last step ends the ``Work``. A callback
thread of the frame then completes the future.

Several works show what this permits. Rank 0 begins three all-reduces, which rank 1 calls late, and meanwhile
sends a message:

.. listing:: gallery/library/requests_and_works/works_side_by_side.py
   :part: program
"""

from launcher import launch, run_program

launch("requests_and_works/works_side_by_side.py", ranks=2)

# %%
# The message overtakes the all-reduces, because messages have requests of their own. The all-reduces start one
# after another, and so their futures complete in the order of the calls. MPI itself would allow several at a
# time on one communicator, as long as all ranks start them in the same order; the frame keeps to one, so that an
# error names the first that cannot go on.
#
# Heads before data
# -----------------
#
# MPI checks little. If one rank reduces 1000 numbers and the other 2000, the standard calls the program wrong,
# and MPI may return an error, wait, or write past the end of a tensor. If a rank is missing, MPI does not say
# which. So each rank first sends each other one a head, with the note of its call:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: extension/mpi_collectives/src/calls.hpp
#       :part: head
#
# The steps go on when all heads have arrived and all notes are equal:

launch("requests_and_works/heads.py", ranks=2)

# %%
# A request for each rank also tells which heads are missing, so the error of a timeout can name the late ranks. A
# collective of MPI has one request, which cannot.
#
# Heads have a price, one more round trip. To make up for it, up to 1 KiB of data travels in the head, and then
# no second step follows: each rank reduces or copies what it has received. A rank sends a head to all others,
# though, so with very many ranks you may prefer to compare notes only in a debug mode, as PyTorch does with
# ``TORCH_DISTRIBUTED_DEBUG=DETAIL``.
#
# The collective
# --------------
#
# Longer data goes to a nonblocking function of MPI. All of them end in ``_c``, the form of MPI 4 with counts of
# 64 bits, because an ``int`` cannot count the bytes of a tensor of 2 GiB:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: extension/mpi_collectives/src/calls.hpp
#       :part: collective
#
# PyTorch may pass a list of tensors where MPI wants one buffer. Most functions take counts and offsets, so the
# backend gives the first tensor as the buffer, and the distance of each other tensor from it as its offset. No
# data is copied. Only a ``reduce_scatter`` wants its input in one piece.
#
# MPI also forbids that input and output overlap, except with ``MPI_IN_PLACE``:

run_program("requests_and_works/aliased.py")

# %%
# MPICH finds only some overlaps. PyTorch programs rely on them: the input of FSDP2's all-gather is a slice of its
# output. So the backend compares the memory of all pieces. If an all-reduce has the same input and output, it
# passes ``MPI_IN_PLACE``, and in all other cases it copies the input:

launch("requests_and_works/own_slice.py", ranks=2)

# %%
# Bug: memory given back too early
# --------------------------------
#
# When an operation times out, its ``Work`` fails, the caller may drop the tensors, and PyTorch's allocator gives
# their memory to the next ones. But MPI still has the request, and a collective cannot be cancelled. The program
# shows what follows with a single process and a receive whose data comes late. ``Pool`` is an allocator, and the
# operation fails before the data arrives:
#
# .. listing:: gallery/library/requests_and_works/memory_given_back.py
#    :part: late

run_program("requests_and_works/memory_given_back.py")

# %%
# In the first line, MPI has written into a tensor that has nothing to do with the operation. The fix is that the
# call owns everything that the library may use:
#
# - the tensors, through ``owner`` in the ``Operation`` that ``Collective`` copies;
# - the copy of an overlapping input, and all heads;
# - the counts and offsets, which MPI reads until the request is done;
# - the requests and statuses.
#
# The steps own the call too. After a failure they are destroyed, and the thread of the library sees that it is
# the last owner. It then keeps the call for ever. That is a leak on purpose, although a bounded one: the first
# failure ends the group. The data may still arrive, but only in memory that no other tensor uses. A program that
# has caught the error must not read the tensors of the failed operation.
#
# Other libraries
# ---------------
#
# Each library has a handle in place of the request, and its own rule for when memory is free again:
#
# .. list-table::
#    :header-rows: 1
#
#    * - library
#      - end of an operation, and lifetime of its memory
#    * - NCCL and its relatives
#      - No request: the order of the stream counts. Record a CUDA event after the collective and query it. Tell
#        the allocator which stream uses a tensor, or keep the tensor until the event. In place is allowed: the
#        input of an all-gather is then the rank's part of the output.
#    * - UCX
#      - A call returns ``NULL`` if it is already done, an error, or a ``ucs_status_ptr_t``. Test that with
#        ``ucp_request_check_status``, or pass a callback, which runs inside of ``ucp_worker_progress``. End with
#        ``ucp_request_free``. ``ucp_request_cancel`` exists, and the memory is free when the request has ended.
#    * - libfabric
#      - You pass a context pointer, and an entry of the completion queue returns it; let it point to the call.
#        Errors come through ``fi_cq_readerr``. ``fi_cancel`` takes the same pointer.
#
# UCX and libfabric move messages, so a backend over them writes the collectives itself. Compared with MPI, they
# can cancel, and a call then ends instead of being kept.
#
# Not run here: the libraries of this table, from whose documentation it was made.

"""
Memory lifetime: stash and record_stream
========================================

A kernel of the communication knows addresses, and it may run long after the program has deleted the tensor behind
them. If the memory has a new owner by then, the kernel sends the numbers of the next tensor, without an error. This
page helps you decide who keeps the memory until the kernel has run, the backend or the allocator, and when your
backend may let go of it.

.. diagram:: accelerators/memory_lifetime/diagram

An allocator that does not wait
-------------------------------

A caching allocator gives the memory of a deleted tensor to the next one, even if kernels that use it are
still queued. Within one stream that is safe, as :doc:`streams` shows. Therefore the allocator of ``sim``
remembers for which stream it allocated a block, which is the stream that *owns* the memory, and gives a free
block only to that stream.

The communication reads the memory in another stream, about which the allocator knows nothing. Hence the rule
of this page: **the memory of a call is kept until it is safe to reuse**.

Bug: memory that belongs to the next tensor
-------------------------------------------

In the next worker, each rank deletes its input after the call, as a function does when it returns, and creates a
tensor of the same size. The worker does this in a group that keeps the rule, and in one that breaks it.
``hold_communication`` returns a gate that holds the stream of the communication:

.. listing:: gallery/accelerators/memory_lifetime/lifetime.py
   :part: program
"""

from launcher import launch

launch("memory_lifetime/lifetime.py", ranks=2)

# %%
# The result is right with the rule kept. With the rule broken, the new tensor gets the memory of the input, and
# the caller's stream writes 99 there while the communication is still held. So each rank sends 99.
#
# The fix: a stash
# ----------------
#
# The backend fixes this with a *stash*, which holds the tensors of the call, so that the allocator does not get
# their memory back. ``launch`` calls ``keep`` in step 2 of :doc:`five-steps`. ``kept_`` is the group's list of
# stashes, and ``work.launch`` has the end event of the call:
#
# .. listing:: extension/frame/c10d_frame/include/streams/group.hpp
#    :start-at: virtual void keep(
#    :end-before: // [/steps]
#
# Do not forget the tensors that the backend itself creates: a temporary copy, such as that of an input with strides,
# must be in the stash, too.
#
# The work and the group share the stash, because either may be the first to know that the reuse is safe:
#
# - The work lets go of the tensors in ``wait``. From then on, the caller's stream waits for the communication, so
#   whatever the program launches there later comes after it, including the kernels of the next owner of the memory.
# - The group lets go of them at its next call, if the end event says that the stream has finished. That is for works
#   which the program drops without a ``wait``:
#
# .. listing:: extension/frame/c10d_frame/include/streams/group.hpp
#    :part: let-go
#
# ``let_go`` runs on the thread that makes the call and not on the watchdog's. The destructor of a tensor may need the
# GIL, as :doc:`five-steps` explains, and a watchdog that waits for the GIL does not watch.
#
# .. admonition:: ``Stash``
#    :collapsible: closed
#
#    For a similar reason, ``clear`` only moves the tensors while it holds the mutex, and they are destroyed after it
#    is unlocked:
#
#    .. listing:: extension/frame/c10d_frame/include/streams/work.hpp
#       :part: stash
#
# When the memory is free
# -----------------------
#
# To see both moments, the next worker asks the allocator how much of the input's 4096 bytes is in use. It gathers
# twice, first with a ``wait``, and then with a work that it drops:
#
# .. admonition:: ``gather`` with and without a wait
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/memory_lifetime/release.py
#       :part: release

launch("memory_lifetime/release.py", ranks=2)

# %%
# After ``wait``, the memory is free although the communication has not begun, and the next tensor gets it. The result
# is right all the same, because the kernel that fills the next tensor is queued behind the end event of the call.
#
# After a dropped work, the memory stays longer than the communication takes, until the group is called
# again. In a training loop the next call comes soon, so a thread that frees memory earlier is not worth the
# deadlocks that it can cause.
#
# The limit: a wait on another stream
# -----------------------------------
#
# The stash has a limit: ``wait`` lets go because *the current stream* waits. If another stream owns the memory,
# nothing orders the next tensor behind the communication. In this worker, a second stream is current during
# ``wait``. The worker runs once with ``record_stream`` and once without it:
#
# .. listing:: gallery/accelerators/memory_lifetime/other_stream.py
#    :part: program

launch("memory_lifetime/other_stream.py", ranks=2)

# %%
# Here ``broken`` is the run without ``record_stream``, in which both ranks gather 99. The backend does not know
# which stream owns the memory, so the fix is a line of the program: ``record_stream`` tells the allocator that
# another stream uses the memory, too. Here that is the second stream, because what it runs after ``wait`` comes
# after the communication.
#
# When the tensor is deleted, the allocator keeps the block until that stream has run what is in its queue, and
# therefore until the communication has ended:
#
# .. admonition:: The allocator
#    :collapsible: closed
#
#    .. listing:: extension/simulated_accelerator/src/memory.hpp
#       :start-at: void release(void* data) {
#       :end-before: // Whether the address
#
#    The block is free again when the stream has reached that place, which the allocator checks at each allocation.
#    ``DeviceGuardImplInterface.h`` asks for this in ``recordDataPtrOnStream``: the allocator should not recycle the
#    memory "until all work on that stream is done".
#
# Stash or record_stream
# ----------------------
#
# Because ``record_stream`` removes the limit, a backend could use it in place of the stash. It would tell the
# allocator, for each tensor of each call, that the stream of the communication uses the memory. Then a ``wait`` on
# any stream is safe.
#
# .. list-table::
#    :header-rows: 1
#
#    * - question
#      - stash
#      - record_stream
#    * - who keeps the memory
#      - work and group
#      - the allocator
#    * - free after
#      - ``wait``, before the device has finished
#      - the end of the stream's queue, as it was when the tensor was deleted
#    * - a ``wait`` on a stream that does not own the memory
#      - wrong without help of the program
#      - right
#
# The second row is the price of ``record_stream``: how much memory a program needs depends on how far the
# device is at each allocation. The documentation of ``Tensor.record_stream`` warns of that
# ("non-deterministically reuse or fail to reuse memory"). So choose the stash, and document its limit.
#
# .. admonition:: NCCL's backend
#    :collapsible: closed
#
#    According to ``ProcessGroupNCCL.hpp`` of ``nccl-legacy``, a ``TensorShelf`` stashes the tensors of asynchronous
#    calls "between op call and ``work.wait()``" so that the allocator cannot recycle them, and the backend thereby
#    achieves safety "without any recordStream calls". If the watchdog sees a finished work that was never waited for,
#    it hands the shelf over, and the next call on the main thread clears it.
#
# .. admonition:: After this page you have decided
#
#    - whether your backend keeps the memory of a call, or the allocator does;
#    - when it lets go: in ``wait``, and at which later moment if the program never waits;
#    - on which thread the tensors are destroyed, because that may need the GIL;
#    - how the temporary tensors of your backend are kept;
#    - how your documentation names the limit, a ``wait`` on a stream that does not own the memory.
#
# Not run here: NCCL's backend.

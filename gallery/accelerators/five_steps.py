"""
The five steps of a call
========================

A method of a backend on streams does not communicate. It queues the communication, arranges that others wait for
it, and returns. This page follows one call of ``simccl`` through the five steps that this takes, so that you can
decide where the call of your own library belongs, and where its errors will appear.

.. list-table::
   :header-rows: 1

   * - step
     - what it is for
     - page
   * - 1. the communication waits
     - The input may still be in the making.
     - :doc:`streams`
   * - 2. the memory stays
     - The stream will use addresses, not tensors.
     - :doc:`memory`
   * - 3. the library is launched
     - The stream makes the call when its turn comes.
     - this page
   * - 4. an event marks the end
     - Others need a place in the stream to wait for.
     - :doc:`waiting`
   * - 5. work and future are complete
     - Callers and callbacks order their streams by them.
     - :doc:`waiting`, :doc:`futures`

The frame of the earlier parts checks the arguments, as on the CPU. Then ``launch`` performs the steps, for one
call or for several that were coalesced:

.. listing:: extension/stream_collectives/src/group.hpp
   :part: launch

The order of the steps matters only where one uses another's result: the event of step 4 must follow the call, and
the future of step 5 records its own event in the same stream. Outputs with strides also belong to step 4.
The library wrote their elements one after another into a buffer, from which a copy in the communication's stream
moves them to their places.

Collectives are matched by their order, so step 1 keeps the order of the host's calls even where a program uses
several devices, and with them several streams. Messages are matched by rank and tag, so they are exempt.

The call in the stream
----------------------

A communication library takes a stream as its last argument: ``ncclAllReduce`` enqueues a kernel there. The header of the
device gives a library what a CUDA stream gives to NCCL, a handle into which it can launch:

.. listing:: extension/simulated_accelerator/include/stream.hpp

The backend gets the handle from the guard, by ``getStreamNativeHandle``. The data of ``simccl`` moves through
another backend, one for the CPU. A kernel of NCCL waits on the device for the other ranks; here, the thread of the
stream does:

.. listing:: extension/stream_collectives/src/group.hpp
   :part: in-the-stream

As a kernel does, the task has addresses and sizes but owns no tensors. In the simulation, there is one more reason for
that. The end of a tensor may need Python's global interpreter lock, which the program may hold while it
waits for this very stream.

With the option ``library``, a group chooses the backend that moves its data, gloo by default:

.. admonition:: The code
   :collapsible: closed

   .. listing:: extension/stream_collectives/src/library.hpp
      :part: library

The worker makes each kind of call, once with gloo and once with ``store``, the backend of :doc:`/right/smallest-backend`:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/accelerators/five_steps/operations.py
      :part: program
"""

from launcher import launch

launch("five_steps/operations.py", ranks=2)

# %%
# Several calls as one
# --------------------
#
# Every launch costs time, on the host and on the device, so a program may *coalesce* calls. ``Backend.hpp`` has two
# methods for that: between ``startCoalescing`` and ``endCoalescing``, calls are only collected, and the second
# method returns one ``Work`` for all. A backend that says ``supportsCoalescing`` must have both:
#
# .. listing:: extension/stream_collectives/src/group.hpp
#    :start-at: void start_coalescing() {
#    :end-before: template <class CallOne>
#
# The next worker reduces three tensors, first in three calls, then coalesced, and at last exchanges two messages
# with ``batch_isend_irecv``, which coalesces them. A gate holds the communication meanwhile:
#
# .. listing:: gallery/accelerators/five_steps/coalescing.py
#    :part: program

launch("five_steps/coalescing.py", ranks=2)

# %%
# Coalesced, the three calls are one task. For messages, this is more than a matter of speed. If the receive of
# each rank were a task of its own, ahead of the send in one stream, both ranks would wait for ever. Therefore
# ``run_in_stream`` begins all calls before it waits for one.
#
# Errors: at once or late
# -----------------------
#
# An error can appear at two moments, and you should prefer the first:
#
# - *At once*, from the call itself. This is possible for all that the arguments of this rank show, such as dtypes and
#   sizes. ``simccl`` refuses there also what its library would refuse later.
# - *Late*, from the stream. Only the library can find out that ranks disagree, or that one is dead. By then, the call
#   has returned, and perhaps ``wait`` has, too.
#
# In the worker, the library is ``store``, because it compares the calls of the ranks. Rank 0 reduces one number,
# and rank 1 reduces two:
#
# .. listing:: gallery/accelerators/five_steps/errors.py
#    :part: program

launch("five_steps/errors.py", ranks=2, expected_stderr="Warning: Backend simccl: ")

# %%
# ``run_in_stream`` catches the exception and keeps it in the ``Call``, because nothing could catch it on the stream's
# thread. A stream does not stop after an error: its event is reached, and later kernels run with whatever
# the tensors contain. The work raises the error, in every ``wait`` from then on, and the group refuses further
# calls. A program that never waits again still learns of it, because the watchdog of :doc:`order-and-abort` writes
# a warning.
#
# If ``wait`` comes before the error, it returns, since it does not make the host wait. So a program should not
# save a checkpoint, say, after ``wait`` alone; ``torch.accelerator.synchronize`` and a second ``wait`` show whether
# all went well.
#
# NCCL's backend
# --------------
#
# It has the same steps. ``ProcessGroupNCCL.hpp`` declares one stream for each key in ``ncclStreams_``, with an event
# in ``ncclEvents_``; a ``TensorShelf`` that keeps the tensors of a call until ``wait``; and in each work an
# event for its end, ``ncclEndEvent_``. Coalesced calls share one work, to which ``coalescedTensors_`` are
# handed over.
#
# Not run here: NCCL and its backend, about which this page repeats what the header says.

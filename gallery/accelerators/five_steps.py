"""
The five steps of a call
========================

When a program calls a collective on a device, the backend only queues the communication, arranges who waits for what,
and returns. If it forgets an event or the memory, results are wrong without an error as soon as a stream is late.
This page follows one call of ``simccl``, the backend of the simulated device, through its five steps, so that you can
decide where the call of your own library belongs, and where its errors will appear.

.. list-table::
   :header-rows: 1

   * - step
     - what it is for
     - page
   * - 1. the communication waits
     - A kernel may still be writing the input.
     - :doc:`streams`
   * - 2. the memory stays
     - The stream will use addresses, not tensors.
     - :doc:`memory-lifetime`
   * - 3. the library is launched
     - The stream makes the call when its turn comes.
     - this page
   * - 4. an event marks the end
     - Other streams, and the host, can wait for it.
     - :doc:`waiting`
   * - 5. work and future are returned
     - Through them, the streams of callers and callbacks wait.
     - :doc:`waiting`, :doc:`futures`

.. diagram:: accelerators/five_steps/diagram

As on the CPU, the *frame*, the shared headers of :doc:`/right/smallest-backend`, first checks the arguments. Then
the method ``launch`` performs the steps, for one call or for several that the program has combined.

Steps 1 and 2: order and memory
-------------------------------

The library will run in a stream of its own, so ``launch`` first makes that stream wait for what the program has
launched so far. It uses these names:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``CallList``
     - the calls of this launch, with their arguments and tensors
   * - ``kind``
     - the operation; it is missing if the program has combined several calls
   * - ``prepare``
     - refuses calls of a group that has failed, and drops the memory of calls that have ended
   * - ``stream_for``
     - returns the stream of the call's *lane*: the collectives of a group have one lane, and messages have others
   * - ``describe``
     - gives the work its title, its timeout and its results
   * - ``lanes_.order``
     - makes a collective wait for the last one of the group, and a message for the last one of its lane

.. listing:: extension/frame/c10d_frame/include/streams/group.hpp
   :part: launch
   :end-before: // 2. The memory stays

In step 3, the library will get addresses and sizes, and no tensors. Because the program may delete its tensors as
soon as the call has returned, ``keep`` puts them into a *stash*, an object that only holds them. The work holds the
stash, and so does the group, in ``kept_``:

.. listing:: extension/frame/c10d_frame/include/streams/group.hpp
   :start-at: virtual void keep(
   :end-before: // [/steps]

Step 3: the call in the stream
------------------------------

Now the library can be called. A call of a communication library has a stream as its last argument:
``ncclAllReduce``, for example, enqueues a kernel there. ``simccl`` calls its library in the same way, through an
interface with the shape of NCCL's, the *communicator*. ``Enqueuer`` translates one operation of c10d into such
calls, for example a gather into messages.

The timeout must not count the time in which the call is only queued. So before these calls, an event marks when the
stream reaches them. Calls between ``group_start`` and ``group_end`` run as one:

.. listing:: extension/frame/c10d_frame/include/streams/group.hpp
   :start-at: // 3. The library gets
   :end-before: // 4. An event says

.. listing:: extension/frame/c10d_frame/include/streams/group.hpp
   :part: enqueue

.. admonition:: The communicator, and the calls of each operation
   :collapsible: closed

   .. listing:: extension/frame/c10d_frame/include/streams/communicator.hpp
      :part: communicator

   .. listing:: extension/frame/c10d_frame/include/streams/calls.hpp
      :part: enqueue

A kernel of NCCL moves the data and waits for the other ranks on the device. In the simulation, a thread of the
device does both in a task of the stream, by calling another backend, one for the CPU.

.. admonition:: The tasks of ``simccl``'s library
   :collapsible: closed

   The library gets the handle of the stream from the guard, by ``getStreamNativeHandle``. Between ``group_start`` and
   ``group_end`` it collects calls, and then launches two tasks: one begins the calls, the other waits for their ends:

   .. listing:: extension/stream_collectives/src/sim/library.hpp
      :part: group

   .. listing:: extension/stream_collectives/src/sim/library.hpp
      :part: in-the-stream

Like a kernel, these tasks have addresses and sizes but own no tensor of the program. If a task owned one, it could be
the last owner, and the destructor of a tensor may need Python's lock, the GIL, for which a stream should not wait.

Steps 4 and 5: the event, and its users
---------------------------------------

The call has returned from the library, but its data may not have moved yet. So that others can wait for the data,
``launch`` records an event in the stream after the library's task. Before that event, ``finish`` copies outputs with
strides from the library's buffer to their places, in the same stream:

.. listing:: extension/frame/c10d_frame/include/streams/group.hpp
   :start-at: // 4. An event says
   :end-before: // [/launch]

In step 5, ``complete`` makes the future, and the *watchdog*, a thread that looks for errors and timeouts, gets the
call. Then ``launch`` returns the work, perhaps before the task of the call has begun.

Proof: two libraries under the same steps
-----------------------------------------

If only step 3 depends on the library, another library must give the same results under the same steps. With the
option ``library``, a group of ``simccl`` chooses the backend that moves its data, gloo by default.

The worker makes each kind of call that has a tensor, once with gloo and once with ``store``, the backend of
:doc:`/right/smallest-backend`:

.. admonition:: The calls and their results
   :collapsible: closed

   .. listing:: gallery/accelerators/five_steps/operations.py
      :part: program
"""

from launcher import launch

launch("five_steps/operations.py", ranks=2)

# %%
# Both libraries give the same results. Only step 3 calls the library, so the other four needed no change.
#
# The same steps for several calls
# --------------------------------
#
# ``launch`` takes a list, because a program may *coalesce* calls, which means to launch several as one to save time.
# It uses ``batch_isend_irecv`` for that, or the private context manager ``dist._coalescing_manager`` with a device
# as an argument.
#
# Both call two methods of the backend. After ``startCoalescing``, the backend only collects calls; ``endCoalescing``
# launches them and returns one ``Work`` for all. A backend whose ``supportsCoalescing`` is true must have both,
# because their default implementations raise an error:
#
# .. admonition:: Both methods in ``simccl``
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/streams/group.hpp
#       :start-at: void start_coalescing() {
#       :end-before: template <class CallOne>
#
#    .. listing:: extension/frame/c10d_frame/include/frame/coalescing.hpp
#       :part: batch
#
# The next worker reduces three tensors, first in three calls and then coalesced, and exchanges messages with
# ``batch_isend_irecv``, which coalesces them. A gate, as in :doc:`streams`, holds the communication until everything
# is launched. Finally, the worker coalesces a sum and a maximum:
#
# .. admonition:: Three all-reduces, and messages
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/five_steps/coalescing.py
#       :part: program

launch("five_steps/coalescing.py", ranks=2)

# %%
# Coalesced, the three calls are one task. A batch runs in one stream, so its messages must also be one task: as
# separate tasks, the receive of each rank would hold up its send, and the ranks would deadlock.
#
# In the last line, the maximum of 1 and 2 became their sum, without an error. PyTorch documents this limit of its
# Python code: if ``dist._coalescing_manager`` collects only calls of ``all_reduce``, it passes them to the
# backend as one call of ``allreduce_coalesced``, with the ``ReduceOp`` of the first. So coalesce only calls with the
# same ``ReduceOp``.
#
# A backend that coalesces must therefore override ``allreduce_coalesced`` and its relatives, too, which
# :doc:`/tutorial/every-operation` lists.
#
# When errors appear: at once or late
# -----------------------------------
#
# Because the call returns before its task runs, an error can appear at two moments, and you should prefer the first:
#
# - *At once*, from the call itself. This is possible for all that the arguments of this rank show, such as dtypes
#   and sizes. Therefore ``simccl`` checks here what its library would refuse later.
# - *Late*, from the stream. Only the library can find out that ranks disagree, or that a rank is dead. By
#   then the call has returned, and perhaps ``wait`` has, too.
#
# In the worker, the library is ``store``, because it compares the calls of the ranks; with gloo, different sizes can
# end the process with ``SIGABRT``. ``show_error`` makes a call and prints the beginning of its error. Rank 0 reduces
# one number, and rank 1 reduces two:
#
# .. listing:: gallery/accelerators/five_steps/errors.py
#    :start-at: options = stream_collectives.Options
#    :end-before: # [program]
#
# .. listing:: gallery/accelerators/five_steps/errors.py
#    :start-at: truths =
#    :end-before: # [/program]

launch("five_steps/errors.py", ranks=2, expected_stderr="Warning: Backend simccl: ")

# %%
# The sum of ``bool`` fails in the call itself. The different sizes become an error only in ``wait``, after the stream
# has ended the call, and again in the next call.
#
# A late error reaches the program in three steps:
#
# 1. The library catches the exception, because an exception that left the task would fail every later wait of the
#    host for this device, as :doc:`device` shows. It keeps the error, as NCCL does for ``ncclCommGetAsyncError``,
#    and holds the stream, so that no later task runs on wrong data unnoticed.
# 2. The watchdog finds the error, fails the open calls, and aborts the library, so the stream goes on.
# 3. From then on, every ``wait`` of the work raises the error, and the group refuses further calls, as
#    :doc:`order-and-abort` shows.
#
# A ``wait`` before the error returns normally, because it does not make the host wait. So before a program saves a
# checkpoint, for example, it calls ``torch.accelerator.synchronize`` and then ``wait``, which by then knows whether
# the call has failed.
#
# .. admonition:: After this page you have decided
#
#    - at which point of the five steps your library is called, and with which stream;
#    - how a gather, a scatter and an all-to-all are made if your library lacks them;
#    - whether your backend coalesces calls;
#    - which errors the call itself raises, and which come late;
#    - where a late error is kept until ``wait`` or the watchdog finds it.
#
# Not run here: NCCL.

"""
Streams and events
==================

On an accelerator, a call returns when its work is queued, so when a method of your backend is called, its input may
not exist yet. A backend that ignores this can reduce old numbers, and then training goes on with wrong gradients and
without an error. This page shows how streams and events order the work, and how a backend uses them to read its
input at the right time.

All programs of this part run on a simulated device, ``sim``, so you need no hardware. :doc:`device` shows how it is
made.

.. diagram:: accelerators/streams/diagram

A stream
--------

The device works beside the *host*, the CPU that runs the program. So that neither waits for the other after each
operation, the host puts work into a *stream*, a queue of the device in which tasks run one after another. To
*launch* a task means to put it into a stream, and the launch returns at once. Most tasks are *kernels*, functions
that run on the device. PyTorch promises their order in ``c10/core/Stream.h``: of two kernels in one stream, the
first is guaranteed to finish before the second begins.

A thread has a *current* stream for each device, into which PyTorch launches every kernel. ``with stream:``
makes another stream current for a block.

A bug in the order of work often shows only if a kernel is late, and on a real device that is a matter of chance. So
the simulated device has *gates*, with which a program makes a stream late in every run. The programs of this part use
these names:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``torch.sim``
     - the module of the simulated device, as ``torch.cuda`` is that of CUDA
   * - ``Gate``
     - a gate: after ``hold``, the current stream runs no later task until ``open``
   * - ``query``
     - of a stream: whether all its tasks have ended
   * - ``synchronize``
     - of an event, a stream or the whole device: makes the host wait for it
   * - ``settle``
     - returns when no stream can go on before a gate is opened
   * - ``start_trace``, ``stop_trace``
     - record when each task is launched, begins and ends
   * - ``draw``
     - draws a time line from a trace

To show that a launch does not wait, the host launches two kernels behind a gate in the next program:

.. listing:: gallery/accelerators/streams/one_stream.py
   :part: program

In the time line, the first line shows the launches, brackets show a running task, and dots a waiting stream:
"""

from launcher import launch, run_program

run_program("streams/one_stream.py")

# %%
# The host has launched everything before the first kernel begins, so ``query`` says that the stream has not
# ended. At that moment, the tensor has a shape and an address, but its memory still contains the old number.
#
# An event
# --------
#
# Two streams have no order between them. If one needs the result of the other, the program orders them with an
# *event*, a mark in a stream that is reached when everything before it has run. The program records the event in the
# stream that produces the result, and makes the stream that needs the result wait for the event. The host does not
# wait: ``wait_event``, or ``block`` of an event in C++, only queues a command at which the stream stops until the
# event is reached.
#
# The next program doubles a number on another stream, with the event and without it:
#
# .. listing:: gallery/accelerators/streams/two_streams.py
#    :part: program

run_program("streams/two_streams.py")

# %%
# Without the event, the other stream doubles the old number, a zero. There is no error, because the device
# cannot know which order the program means. Most bugs of this part are of that kind: a result is wrong, or
# it is right only as long as the device happens to be fast. A gate makes such a bug visible in every run.
#
# A kernel owns nothing
# ---------------------
#
# Late work has a second danger, because memory may change its owner before a kernel uses it. A kernel gets addresses
# and sizes. It does not know the tensors that they came from, so it cannot keep their memory.
#
# The next program deletes a tensor while a kernel that reads it waits behind a gate. A new tensor, filled with 99,
# gets the same memory, so the kernel doubles 99:
#
# .. listing:: gallery/accelerators/streams/dead_tensor.py
#    :part: program

run_program("streams/dead_tensor.py")

# %%
# Within one stream, this reuse is correct, because what the next owner launches comes later in the queue.
# With two streams it is not. A backend has two, its own and the caller's, so it must keep the memory of a
# call, as :doc:`memory-lifetime` shows.
#
# The input of a call
# -------------------
#
# A backend meets the first danger, an input that is not there yet, in each call. ``simccl``, the backend of this
# part, runs its collectives in a stream of its own, so that kernels of the program can run beside them, as
# :doc:`overlap` shows. The *caller's stream* is the one that is current when the program makes the call, and its
# kernels may still be writing the input. Hence the first rule: **the communication waits for the caller's stream**.
#
# The rule costs one event. In the code, ``current`` is the caller's stream, and ``stream`` that of the
# communication:
#
# .. listing:: extension/frame/c10d_frame/include/streams/group.hpp
#    :start-at: virtual void wait_for_program(
#    :end-before: virtual void keep(
#
# To show what a rule is for, the samples also use a group that breaks it on purpose. Here, that group leaves out the
# event, so the all-reduce runs before the ranks have written their numbers:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/streams/input_on_a_time_line.py
#       :part: program

launch("streams/input_on_a_time_line.py", ranks=2)

# %%
# With the rule kept, the all-reduce begins when ``fill`` has ended. With the rule broken, it runs while ``fill``
# still waits behind the gate.
#
# In the first time line, the dots after ``fill`` show that the caller's stream waits for the result. The host does
# not wait, although the call is synchronous; :doc:`waiting` explains why.
#
# The next worker prints the result of such an all-reduce. Rank 0 has the number 1, and rank 1 the number 2. ``show``
# calls the function with a group that keeps the rule, and with one that breaks it:
#
# .. listing:: gallery/accelerators/streams/input.py
#    :part: program

launch("streams/input.py", ranks=2)

# %%
# The right sum is 3. With the rule broken, the ranks add the zeros with which their tensors began, and afterwards
# ``fill`` overwrites the sum with the rank's own number. So one event, for which no host waits, decides whether a
# collective reduces the input or old numbers.
#
# .. admonition:: NCCL's backend
#    :collapsible: closed
#
#    NCCL's backend has the same design. The comments in ``ProcessGroupNCCL.hpp`` say that each call runs on a CUDA
#    stream other than the current one, and that ``wait`` makes the caller's stream wait for it. According to PyTorch's
#    pull request 150398, this now holds for asynchronous calls only. A call with ``async_op=False`` is launched in the
#    current stream, so it needs no events.
#
#    These comments are those of ``nccl-legacy``, which was ``nccl`` before PyTorch 2.15; the present ``nccl`` has the
#    same design.
#
# .. admonition:: After this page you have decided
#
#    - how a call waits for the stream that is current when the program makes it;
#    - whether your library runs in the caller's stream or in one of its own, and whether synchronous calls differ;
#    - which test holds the caller's stream back, because a fast device hides a missing event.
#
# Not run here: NCCL's backend.

"""
Streams, events and late kernels
================================

On an accelerator, a call returns when its work is queued, and the host does not know when the device does it. So
a backend cannot read a tensor when its method is called, as the backends of the parts before do. This page shows
what the host knows instead, so that you can decide, for each step of your backend, whether the host waits, a
stream waits, or nothing does.

All programs of this part run on a simulated device, ``sim``, which needs no hardware. It has the properties that
matter to a communication backend: streams, events, and memory that is used again at once. The next page,
:doc:`device`, shows how it is made.

A stream
--------

A *stream* is a queue of the device, in which tasks run one after another. PyTorch promises that order in
``c10/core/Stream.h``: a kernel does not launch before the one ahead of it in the same stream has finished. To
*launch* means to put a task into a stream; the launch returns at once.

Because samples should not depend on time, a *gate* takes the place of a slow kernel: it holds a stream until the
host opens it. In the next program, the host launches two kernels behind a gate:

.. listing:: gallery/accelerators/streams/two_streams.py
   :part: one

A trace of the device records when each task is launched, begins and ends. In the time line that is drawn from
it, the first line has the launches, brackets show a running task, and dots mean that the stream waits:
"""

from launcher import launch, run_program

run_program("streams/two_streams.py")

# %%
# In the first time line, the host has finished before the first kernel begins. The tensor exists, has a shape and
# an address, and its memory still contains the old number.
#
# An event
# --------
#
# Two streams have no order between them. If one needs the result of the other, the program records an *event* in
# one stream and lets the other stream wait for it. Neither call lets the host wait: ``block``, in
# ``DeviceGuardImplInterface.h``, inserts a command into the queue of the stream, which stops there until the
# event is reached. The program computes ``twice`` in both ways:
#
# .. listing:: gallery/accelerators/streams/two_streams.py
#    :part: two
#
# Without the event, the other stream multiplies the old number, a zero. There is no error, because to the device
# both orders are equally good. That is typical of the bugs in this part: a result is wrong, or is right only as
# long as the device happens to be fast. A gate makes such a bug show in every run.
#
# The call that lets the host wait is ``synchronize``, of an event, a stream or the whole device. It is always
# right and always slow, because the device runs out of work while the host waits for it.
#
# A kernel owns nothing
# ---------------------
#
# A kernel gets addresses and sizes. It does not know the tensors that they came from, so it cannot keep their
# memory. In the simulation, a kernel works on a view that owns nothing, for the same reason:
#
# .. listing:: extension/simulated_accelerator/src/kernels.hpp
#    :part: view
#
# The last lines of the program delete a tensor while a kernel that reads it waits behind a gate. The next tensor
# gets the same memory, and the kernel reads that:
#
# .. listing:: gallery/accelerators/streams/two_streams.py
#    :part: owns-nothing
#
# Within one stream, this reuse is correct, because what the next owner launches comes later in the queue. With
# two streams, the program must keep the memory, and a backend always has two, so :doc:`memory` is about that.
#
# The first rule: the input
# -------------------------
#
# ``simccl`` is the backend of this part. It runs its collectives in a stream of its own, so that kernels of
# the program can run beside them, which :doc:`overlap` shows. Therefore the first rule is: **the
# communication waits for the caller's stream**. The caller's stream is the one that is current when the
# program makes the call; what it contains by then may still be writing the input.
#
# The rule costs an event and two lines:
#
# .. listing:: extension/stream_collectives/src/group.hpp
#    :start-at: // 1. The communication comes after
#    :end-before: // The library wants one order
#
# In each page of this part, a group can break one rule on purpose, so that you see what the rule is for. Without
# ``before.block``, the sum is made before the ranks have written their numbers:
#
# .. listing:: gallery/accelerators/streams/input_on_a_time_line.py
#    :part: program

launch("streams/input_on_a_time_line.py", ranks=2)

# %%
# With the rule kept, the all-reduce begins when ``fill`` has ended, although the host called it long before. The
# dots behind ``fill`` are what a synchronous call means on a device: the caller's stream waits for the result, and
# the host goes on, as :doc:`waiting` explains. With the rule broken, the all-reduce runs while ``fill`` still waits.
#
# The next worker prints what a program gets then. Rank 0 has the number 1, and rank 1 the number 2:
#
# .. listing:: gallery/accelerators/streams/input.py
#    :part: program

launch("streams/input.py", ranks=2)

# %%
# The right sum is 3. With the rule broken, the ranks add the zeros with which their tensors began, and afterwards
# ``fill`` overwrites the sum with the number of the rank. In training, such ranks would go on with different
# gradients, and nothing would stop them.
#
# A test finds this bug only if the kernel ahead of the call is slow. With a fast kernel, the input is almost
# always written in time, so write your tests with a gate or, on hardware, with a kernel that spins for long enough.
#
# NCCL's backend
# --------------
#
# ``ProcessGroupNCCL.hpp`` documents the same design: each call is scheduled on a CUDA stream that is not the
# current one, for concurrency, and it is up to the caller that its stream waits for the result, by ``wait`` or
# ``synchronize`` of the work. On CUDA, an event is a ``cudaEvent_t``, and ``cudaStreamWaitEvent`` takes
# the place of ``block``.
#
# Not run here: NCCL's backend, about which this page repeats what its header says.

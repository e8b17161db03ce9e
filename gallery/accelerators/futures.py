"""
Futures with devices
====================

By default, DDP waits for the futures of its all-reduces and not for their works. So even if ``wait`` of your
backend is right, DDP can train wrongly on it, without an error. This page shows what a future must know about the
device, so that you can decide when your backend completes it, and on which stream.

.. diagram:: accelerators/futures/diagram

A future that is complete at once
---------------------------------

On the CPU, a future completes when the data is there, as :doc:`/right/asynchronous-work` shows. On a device with
streams, ``c10::ivalue::Future`` offers something better: it can be complete while the data is still on its way. A
thread that waits for the future then returns at once, and only its stream waits.

For this, the future must have been constructed with the devices of its value. As ``ivalue_inl.h`` shows, three
functions then order the streams:

- ``markCompleted`` records an event on the current stream of each device that the value has tensors on.
- ``wait`` makes the caller's current stream wait for these events. It also calls ``recordDataPtrOnStream``, so
  that the allocator does not reuse the memory of the value while that stream may need it.
- ``then`` runs a callback under a stream from ``getStreamFromGlobalPool``, which also waits for the events first. The
  future of the callback's result has the same devices, so the next reader waits for that stream.

The event must come after the library's task in the stream of the communication, because readers wait only for the
event. So ``simccl``, our backend, completes the future during the call, after it has queued that task, and makes the
stream current meanwhile. ``device`` is that of the call, and ``outputs`` are its results:

.. listing:: extension/frame/c10d_frame/include/streams/work.hpp
   :part: future

A callback before the communication
-----------------------------------

To show what the host can do before the data arrives, the next worker attaches a callback and waits for its result
while a *gate*, which takes the place of a slow network (:doc:`streams`), holds the communication:

.. listing:: gallery/accelerators/futures/callbacks.py
   :part: callback
"""

from launcher import launch

launch("futures/callbacks.py", ranks=2)

# %%
# The callback has run, and ``wait`` has returned, before the library moved a byte. Both have only queued tasks: the
# callback put the multiplication into its stream, and ``wait`` made the program's stream wait for that stream. Only
# ``item`` makes the host wait for the number.
#
# Users of your backend notice two consequences. First, ``done`` of the future says nothing about the device;
# ``is_completed`` of the work does. Second, a callback runs on the thread that attaches it, and blocks it. If the
# callback above called ``item``, the worker would hang, because the same thread opens the gate only afterwards.
#
# Bug: a future without devices
# -----------------------------
#
# The order above depends on one rule: **the future knows its device**. If a backend omits the devices, PyTorch treats
# the future as one for the CPU, so it records no event, and a callback runs under the stream that is current. To show
# this, a short form of the worker above runs in a group that keeps the rule and in one that breaks it:
#
# .. listing:: gallery/accelerators/futures/devices.py
#    :part: program

launch("futures/devices.py", ranks=2)

# %%
# The sum is 3, so the right result is 30. With the rule broken, the multiplication runs at once and sees the number
# that the rank had before, so the results are 10 and 20.
#
# PyTorch does not report this bug: a comment in ``markCompleted`` calls it "a silent synchronization/correctness
# issue", and gives speed on the CPU as the reason why there is no check.
#
# The same bug in DDP
# -------------------
#
# During the backward pass, DDP collects gradients in buckets, starts an all-reduce for each bucket, and at the end
# waits for the futures of these all-reduces. Each rank of the next worker has a model with one weight, whose gradient
# is the rank's input, 1 or 2:
#
# .. listing:: gallery/accelerators/futures/devices_in_ddp.py
#    :part: program

launch("futures/devices_in_ddp.py", ranks=2)

# %%
# The average is 1.5. DDP divides the gradient by the number of ranks when it copies it into the bucket, and then adds
# up the buckets of all ranks. With the rule broken, DDP copies the bucket back into the gradient between these two
# steps, so rank 0 has 1 / 2, and rank 1 has 2 / 2.
#
# No rank raises an error, and each takes a step in a plausible direction: it trains alone, with half of its own
# gradient. A loss curve may look healthy, so compare the weights of all ranks in a test, with the communication held
# by a gate or a slow kernel.
#
# DDP's communication hooks depend even more on the devices, because they do part of their work in callbacks. The hook
# that compresses to 16 bits, for example, returns ``fut.then(decompress)``. Without the devices, it could decompress
# a bucket before its all-reduce has ended.
#
# What a complete future cannot tell
# ----------------------------------
#
# With its devices, a future orders streams, but it has a limit that your backend must make up for. A future that is
# complete cannot get an error any more. What fails in the stream later is visible in the work, as
# :doc:`order-and-abort` shows, and a program that waits only for the future learns of it at its next call. Because a
# program may make no further call, the backend needs a watchdog, a thread that warns and ends the group by itself.
#
# So complete a future during the call, with its devices and under the stream of the communication. Then DDP reads the
# right gradients, although by default it never waits for a work.
#
# .. admonition:: After this page you have decided
#
#    - with which devices your backend constructs a future, and under which stream it completes it;
#    - how a program that waits only for futures learns of a late error;
#    - which test compares the weights of all ranks after DDP, with the communication held.
#
# Not run here: a communication hook without devices.

"""
Measure a backend
=================

You measure the speed of collectives to decide between two backends, or to see whether a change has made
yours faster. This page shows how to get times that you can compare, and what to read from them: latency,
bandwidth, and the time that communication adds to a step of training.

Measure in turns
----------------

A machine has other work, and its clock frequency changes. If you measure one backend today and another tomorrow, you
therefore compare two states of the machine, too.

So that a disturbance affects all backends, the function ``measure`` lets them take turns in one run, in the opposite
order in every second round. A barrier lets the ranks begin together. An operation is over when it has ended on its
last rank, so each sample is the time of the slowest rank:

.. listing:: gallery/communicate/measure/take_turns.py
   :part: measure

Print the median, which a few disturbed samples do not change, and the quartiles, which say how much the
samples differ. Here three backends reduce 64 MiB: ``fake``, which communicates nothing, gloo, and ``shm``, the
backend of this site that communicates through shared memory:

.. listing:: gallery/communicate/measure/take_turns.py
   :part: turns

To measure your backend, compile it with ``-O2``, import its module in this program, and add its name.
"""

from launcher import launch, run_program

output = launch("measure/take_turns.py", ranks=2, show=False)

# %%
# Believe a difference between two backends only if the ranges between their quartiles do not overlap, and if
# other runs show it, too:
#
# .. not-executed::
#
#    These times are of a run that was recorded on a quiet machine. The build runs the program, too, without
#    its times, which differ from run to run.
#
#    .. listing:: gallery/communicate/measure/take_turns.txt
#
# In these lines, the upper quartile of ``shm`` is below the lower quartile of gloo, so you may believe the difference
# if other runs show it, too.
#
# A single call can be shorter than a disturbance, so take as many calls for one sample as fit into 10 milliseconds.
# The quartiles of one run do not show how much the next run differs, so repeat the measurement in several runs of
# new processes. Publish the range of these runs, and name the machine. ``make bench-backend`` measures the backends
# of this site in this way.
#
# Bug: a time without the end
# ---------------------------
#
# ``all_reduce`` with ``async_op=True`` can return before the result is there, so a measurement without
# ``wait`` contains only the submission. In this program, rank 1 is half a second late, so no all-reduce can
# end before that:
#
# .. listing:: gallery/communicate/measure/call_without_its_end.py
#    :part: calls

output = launch("measure/call_without_its_end.py", ranks=2)

# %%
# The time of the call alone says nothing about the all-reduce. The fix is to call ``wait`` before the clock
# stops. On an accelerator, ``wait`` returns at once, and only a stream waits, as :doc:`/accelerators/waiting`
# shows. There, also synchronize the device before each of the two readings of the clock.
#
# Latency and bandwidth
# ---------------------
#
# One number says little about a backend, because the time of an operation depends on the size of its tensor
# and on the number of ranks. The *latency* is the time of an operation with very little data. The
# *bandwidth* is the number of bytes per second with much data. To see both, draw the time over the size.
#
# The drawings and the tables below show an earlier measurement by ``make bench-backend``. It ran on this machine:

# sphinx_gallery_start_ignore
import sys

sys.path.append("measure")
# sphinx_gallery_end_ignore
from measurements import machine
from published import bandwidths, steps
from result_table import show_table

print(machine)

# %%
# .. diagram:: communicate/measure/latency
#
# Small tensors show the latency: with ``shm`` on two ranks, 1 KiB takes no longer than 4 bytes. Large tensors show
# the bandwidth, because there the time grows with the size. With two ranks, ``shm`` takes less time than gloo at
# every size.
#
# To see how much a backend can save at all, compare it with ``fake``. On the average of many calls, an all-reduce
# of ``fake`` takes less than 15 µs at every size. This is the time of Python, the binding
# and the dispatcher, which every backend pays. The flight recorder, which :doc:`debug` describes, is off in this
# measurement, because it would slow down ``shm`` and gloo but not ``fake``.
#
# A part of the latency comes from the machine and not from the backend. Here all ranks share the two CPUs of a virtual
# machine, and the threads of gloo sleep more than once in an average all-reduce. The time of a small all-reduce with
# gloo is therefore largely that of waking threads, which depends on the machine more than on gloo.
#
# For large tensors, divide the size by the time. The result is the bandwidth that a program sees. It does not count
# how many bytes the ranks have moved, so even ``fake``, which moves nothing, has a line in this drawing:
#
# .. diagram:: communicate/measure/bandwidth
#
# The table has the bandwidths of the slowest and the fastest run, in megabytes per second:

show_table(["ranks", "bytes", "shm", "gloo"], bandwidths())

# %%
# On two ranks, the bandwidth of ``shm`` falls between 1 and 16 MiB, perhaps because the data no longer fits into the
# caches. So quote a bandwidth together with the size of the tensor.
#
# .. admonition:: Bus bandwidth
#    :collapsible: closed
#
#    To see how near a backend is to the limit of the network, count what each of *n* ranks sends on average. In an
#    all-reduce of *S* bytes, that is at least (*n* - 1)/*n* times *S* for other ranks to add up, and as many bytes of
#    results, unless switches compute the sums. On four ranks, both together are 1.5 times *S*. An all-gather or a
#    reduce-scatter, where *S* is the size of the whole tensor, sends only half of that.
#
#    The bandwidth of an all-reduce times 2(*n* - 1)/*n* is called *bus bandwidth*. When the bus bandwidth is near the
#    bandwidth of the network, a faster backend hardly helps.
#
# A step of training
# ------------------
#
# A training program does not only communicate, so in the end the time of a whole step counts: one forward pass, one
# backward pass and one update. The column "floor" has the time of a step that sends nothing. For DDP that is the bare
# model; for FSDP2 it is the same program on ``fake``. Times are in milliseconds, from the fastest to the slowest run:

show_table(["step", "parameters", "ranks", "floor", "shm", "gloo"], steps())

# %%
# For DDP, compare the columns of a row: a faster backend can save at most the time that yours takes above the
# floor. Even this time contains DDP's own work.
#
# For FSDP2, the floor may be a little too high, because it contains the copies that ``fake`` makes. On two ranks, the
# ranges of ``shm`` and of this floor overlap, so the measurement does not show what ``shm`` costs there.
#
# So decide between two backends by the time of a step of your program, measured in turns and in several runs. Latency
# and bandwidth say at which sizes a difference arises, and the profiler of :doc:`debug` shows in which operation. When
# your backend is right and fast, :doc:`ship-it` makes a release of it.
#
# Exercise
# --------
#
# A simple model says that an operation takes a constant time, plus the size divided by a constant rate. Draw this
# line through the medians of the smallest and the largest all-reduce. For ``shm`` and gloo, print at how many of the
# sizes between them the line stays between the fastest and the slowest run.
#
# The times are in ``shared/measurements.csv``, in microseconds. Take the rows in which ``sessions`` is the number of
# ranks, because ``torchrun`` starts each rank in a session of its own (see :doc:`wait-without-wasting`).
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    A byte per microsecond is a megabyte per second.
#
#    .. listing:: gallery/communicate/measure/line_through_two_points.py
#       :part: solution
#
# The solution prints the line of each backend:

output = run_program("measure/line_through_two_points.py")

# %%
# Where the line leaves the range of the runs, two numbers do not describe the backend, so
# measure more sizes there instead of interpolating.
#
# Not run here: a measurement on an accelerator.

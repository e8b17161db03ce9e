"""
Measure a backend
=================

You measure the speed of collectives to decide between two backends, or to see whether a change has made
yours faster. This page shows how to get times that you can compare, and what to read from them: latency,
bandwidth, and the time that communication adds to a step of training.

Measure in turns
----------------

A machine has other work, and its clock frequency changes. If you measure one backend today and another
tomorrow, you therefore compare two states of the machine, too. The function ``measure`` lets all backends
take turns in one run, in the opposite order in every second round, so that a disturbance affects all of
them. A barrier lets the ranks begin together. An operation is over when it has ended on its last rank, so
each sample is the time of the slowest rank:

.. listing:: gallery/communicate/measure/take_turns.py
   :part: measure

Print the median, which a few disturbed samples do not change, and the quartiles, which say how much the
samples differ. Here each backend reduces 64 MiB:

.. listing:: gallery/communicate/measure/take_turns.py
   :part: turns

A single call can be shorter than a disturbance. ``make bench-backend``, which measures the backends of
this site in the same way, therefore takes as many calls for one sample as fit into 10 milliseconds, from
one to 1000, with Python's garbage collector off. It takes three samples of each backend in each of five
runs of new processes, because the quartiles of one run do not show how much the next one differs. So
publish the range of several runs, and name the machine.

Latency and bandwidth
---------------------

One number says little about a backend, because the time of an operation depends on the size of its tensor
and on the number of ranks. The *latency* is the time of an operation with very little data. The
*bandwidth* is the number of bytes per second with much data. The example is ``shm``, the backend of this
site that communicates through shared memory, beside gloo:

.. diagram:: communicate/measure/latency

The drawings and tables of this page show an earlier measurement, which is in
``shared/measurements.csv``. Its column ``sessions`` says how many login sessions the ranks were in; ``torchrun``
gives each rank one. :doc:`a-backend-that-communicates` lists its times for two ranks, in
microseconds. The line below describes the machine:
"""

import csv
from pathlib import Path

from result_table import show_table

machine, *lines = Path("shared/measurements.csv").read_text().splitlines()
measured = {}
for row in csv.DictReader(lines):
    case = row["operation"], int(row["size"]), int(row["ranks"]), int(row["sessions"])
    times = [float(row[name]) for name in ("median", "lowest", "highest")]
    measured.setdefault(case, {})[row["backend"]] = times
print(machine.removeprefix("# "))

# %%
# Small tensors show the latency: 64 KiB is 16,384 times as much as 4 bytes, but takes at most 14
# times as long. Large tensors show the bandwidth, because there the time grows with the size.
#
# To see how much a backend can save at all, compare it with ``fake``, which communicates nothing. Its
# times, below 15 µs for every size, contain Python, the binding and the dispatcher, which every backend
# pays for. The flight recorder, which :doc:`debug` describes, is off in this measurement, because it
# would slow down ``shm`` and gloo but not ``fake``.
#
# Know what the machine adds. Here all ranks share the two CPUs of a virtual machine, and the threads of
# gloo sleep several times in each all-reduce. The time of a small one is therefore largely that of waking
# up, which depends on the machine more than on gloo. ``torchrun`` starts each rank in a session of its own,
# which can make ``shm`` sleep, too, as :doc:`wait-without-wasting` explains.
#
# For large tensors, divide the size by the time. The result is the bandwidth that a program sees, which
# does not count how many bytes the ranks have moved for it. For ``fake``, which moves nothing, it is only
# the size divided by the time of a call:
#
# .. diagram:: communicate/measure/bandwidth
#
# In megabytes per second, the slowest and the fastest run are:

rows = []
for (operation, size, ranks, sessions), times in measured.items():
    if operation == "all_reduce" and size >= 1024 and sessions == ranks:
        speeds = [size / times[x][run] for x in ("shm", "gloo") for run in (2, 1)]
        shown = [f"{speed:,.1f}" if speed < 10 else f"{speed:,.0f}" for speed in speeds]
        rows.append([f"{ranks}", f"{size:,}", "–".join(shown[:2]), "–".join(shown[2:])])
show_table(["ranks", "bytes", "shm", "gloo"], rows)

# %%
# A step of training
# ------------------
#
# A program rarely waits for a single operation, so in the end the time of a step counts. We call the time
# of a step without communication its floor. For DDP that is the bare model; for FSDP2 it is the same
# program on ``fake``. Times are in milliseconds: the median of the runs, and for gloo the fastest and the
# slowest run:

rows = []
for (operation, size, ranks, _), times in measured.items():
    if operation.startswith("step of "):
        floor, shm, lowest, highest = (
            f"{time / 1000:.1f}" for time in (times["fake"][0], times["shm"][0], *times["gloo"][1:])
        )
        what, count = operation.removeprefix("step of "), f"{size // 10**6} million"
        rows.append([what, count, f"{ranks}", floor, shm, f"{lowest}–{highest}"])
show_table(["step", "parameters", "ranks", "floor", "shm", "gloo"], rows)

# %%
# A faster backend can save at most the time above the floor. For DDP that time also contains DDP's own
# work.
#
# Bug: a time without the end
# ---------------------------
#
# ``all_reduce`` with ``async_op=True`` can return before the result is there, so a measurement without
# ``wait`` contains only the submission. In this program, rank 1 is half a second late, so no all-reduce can
# end before that:
#
# .. listing:: gallery/communicate/measure/take_turns.py
#    :part: mistake

from launcher import launch, run_program

output = launch("measure/take_turns.py", ranks=2)

# %%
# The first line belongs to the measurement in turns above, and names only the smallest median, because the
# order of the other two may vary. The time of the call alone says nothing about the all-reduce. The fix is
# to call ``wait`` before the clock stops. On an accelerator, ``wait`` returns at once, and only a stream
# waits, as :doc:`/accelerators/waiting` shows. There, also synchronize the device before you read the
# clock.
#
# Exercise
# --------
#
# A simple model says that an operation takes a constant time, plus the size divided by a constant rate.
# Draw this line through the medians of the smallest and the largest all-reduce. For ``shm`` and gloo,
# print at how many of the sizes between them the line stays between the fastest and the slowest run.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    A byte per microsecond is a megabyte per second.
#
#    .. listing:: gallery/communicate/measure/line_through_two_points.py
#       :part: solution
#
# The program reads the same measurement:

output = run_program("measure/line_through_two_points.py")

# %%
# Where the line leaves the range of the runs, two numbers do not describe the backend, and you must not
# interpolate between two sizes; measure more of them there.
#
# A measurement shows that a backend is slow, and the profiler of :doc:`debug` shows where. When it is
# right and fast, :doc:`ship-it` makes a release of it.
#
# Not run here: a measurement on an accelerator.

"""
Measure a backend
=================

After this page you can measure a backend so that the numbers can be trusted, and read its
latency and bandwidth from curves.

One number says little about a backend. The time of an operation depends on the size of its
tensor, on the number of ranks, and on what else the machine does. The *latency* is the time of an
operation with very little data. The *bandwidth* is the number of bytes per second with much data:

.. diagram:: communicate/measure/latency

Latency and bandwidth
---------------------

Both drawings on this page show the accepted measurement in ``extension/measurements.csv``,
which :doc:`a-backend-that-communicates` introduces. The build draws them and measures nothing.
These are the numbers behind the first drawing, in microseconds: the median of the runs, and the
fastest and the slowest run in parentheses. For gloo, only these two are shown, because its runs
differ most:
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

rows = []
for (operation, size, ranks, sessions), times in measured.items():
    if operation == "all_reduce":
        row = [f"{ranks}", f"{sessions}", f"{size:,}"]
        for backend in ("fake", "shm", "gloo"):
            median, lowest, highest = times[backend]
            span = f"{lowest:,.0f}–{highest:,.0f}"
            row.append(span if backend == "gloo" else f"{median:,.0f} ({span})")
        rows.append(row)
show_table(["ranks", "sessions", "bytes", "fake", "shm", "gloo"], rows)

# %%
# Small tensors show the latency: 64 KiB is 16,384 times as much as 4 bytes, and takes less than a
# thousand times as long. Large tensors show the bandwidth: the time grows with the size.
# ``fake`` communicates nothing, and is the floor: its times contain what no backend can save, and
# stay below 100 µs for every size. The flight recorder, which :doc:`debug` describes, is off in
# this measurement: it records the calls of ``shm`` and gloo, and none of ``fake``.
#
# All ranks share the two CPUs of a virtual machine. The threads of gloo sleep several times in each
# all-reduce, so the time of a small one is largely that of waking up, which depends on the machine
# more than on gloo. ``torchrun`` starts each rank in a session of its own, and so does the
# measurement. If Linux groups threads by session, as it does here (``autogroup on``),
# ``sched_yield`` does not let a rank of another session run. So four ranks, which share the CPUs,
# are also measured in one session.
#
# The second drawing divides the size by the time. This is the bandwidth that a program sees:
# the bytes that the ranks move in the shared memory are not counted. ``fake`` moves nothing: its
# curve is the size divided by the time of a call.
#
# .. diagram:: communicate/measure/bandwidth
#
# The numbers behind it are in megabytes per second, with the slowest and the fastest run:

rows = []
for (operation, size, ranks, sessions), times in measured.items():
    if operation == "all_reduce" and size >= 1024 and sessions == ranks:
        speeds = [size / times[x][run] for x in ("shm", "gloo") for run in (2, 1)]
        shown = [f"{speed:,.1f}" if speed < 10 else f"{speed:,.0f}" for speed in speeds]
        rows.append([f"{ranks}", f"{size:,}", "–".join(shown[:2]), "–".join(shown[2:])])
show_table(["ranks", "bytes", "shm", "gloo"], rows)

# %%
# Measure in turns
# ----------------
#
# A machine has other work, and its clock frequency changes. Whoever measures gloo today and
# ``shm`` tomorrow measures the machine, too. The function ``measure`` below lets all backends
# take turns in one run. Every second round has the opposite order:
#
# .. listing:: gallery/communicate/measure/take_turns.py
#    :part: measure
#
# The barrier lets the ranks begin together. Each sample is the time of the slowest rank. The
# median is not affected by a few samples that something disturbed, and the quartiles say how
# much the samples differ:
#
# .. listing:: gallery/communicate/measure/take_turns.py
#    :part: turns
#
# ``zeros`` has 64 MiB. ``make bench-backend`` runs ``tools/measure``, which does the same for
# all cases, in five runs of new processes, each with three samples of each backend. A sample is as
# many calls as fit into 10 milliseconds, at least one and at most 1000. Python's garbage collector
# is off. The quartiles of one run do not show how much the next run differs, so publish the range
# of several runs, and name the machine.
#
# The worker prints only the backend with the smallest median. The order of ``shm`` and gloo can
# change while other programs use all cores of the machine.
#
# A step of training
# ------------------
#
# The accepted measurement also contains steps of training, with larger models than that of
# :doc:`/right/training`. Times are in milliseconds: the median of the runs, and for gloo the
# fastest and the slowest run. We call the time of a step without communication its floor. For
# DDP that is the bare model; for FSDP2 it is the same program on ``fake``:

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
# The time above the floor is what a faster backend can save. For DDP it also contains DDP's own
# work.
#
# A mistake: a time without the end
# ---------------------------------
#
# ``all_reduce`` with ``async_op=True`` can return before the result is there. A measurement
# without ``wait`` measures how long it takes to submit the operation. In this program, rank 1 comes
# half a second late, so no all-reduce can end earlier:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/measure/take_turns.py
#       :part: mistake

from launcher import launch, run_program

output = launch("measure/take_turns.py", ranks=2)

# %%
# The time of the call alone says nothing about the all-reduce. The cure is ``wait`` before the
# clock stops, as the last line shows.
#
# Exercise
# --------
#
# A simple model says that an operation takes a constant time, plus the size divided by a
# constant rate. Draw this line through the medians of the smallest and the largest all-reduce.
# Print for ``shm`` and gloo for how many of the sizes between them it stays between the fastest and
# the slowest run.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    A byte per microsecond is a megabyte per second.
#
#    .. listing:: gallery/communicate/measure/line_through_two_points.py
#       :part: solution
#
# The program reads the accepted measurement:

output = run_program("measure/line_through_two_points.py")

# %%
# Where the line leaves the range of the runs, the two numbers do not describe the backend, and
# interpolating between two sizes is wrong. Measure more sizes there. Measure before and
# after each change of your backend, in turns.
#
# A measurement shows that a program is slow. The tools of :doc:`debug` show why, and also why a
# program hangs.

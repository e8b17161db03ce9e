"""
Measure a backend
=================

After this page you can measure a backend so that the numbers can be trusted, and read its
latency and bandwidth from curves.

One number says little about a backend. The time of an operation depends on the size of its
tensor, on the number of ranks, and on what else the machine does. The *latency* is the time of an
operation with very little data. The *bandwidth* is the number of bytes per second with much data:

.. diagram:: communicate/latency

Latency and bandwidth
---------------------

Both drawings on this page show the accepted measurement in ``extension/measurements.json``,
which :doc:`a-backend-that-communicates` introduces. The build draws them and measures nothing.
These are the numbers behind the first drawing, in microseconds: the median, and the quartiles
in parentheses.
"""

import json
from pathlib import Path

from result_table import show_table

measured = json.loads(Path("measurements.json").read_text())["cases"]
cases = [case for case in measured if case["operation"] == "all_reduce"]

rows = []
for case in cases:
    row = [f"{case['ranks']}", f"{case['size']:,}"]
    for backend in ("fake", "shm", "gloo"):
        time = case["microseconds"][backend]
        quartiles = f"{time['lower_quartile']:,.0f}–{time['upper_quartile']:,.0f}"
        row.append(f"{time['median']:,.0f} ({quartiles})")
    rows.append(row)
show_table(["ranks", "bytes", "fake", "shm", "gloo"], rows)

# sphinx_gallery_start_ignore
medians = {
    (case["ranks"], case["size"], backend): case["microseconds"][backend]["median"]
    for case in cases
    for backend in ("fake", "shm", "gloo")
}
assert len(rows) == 14, rows
speeds = {case["size"] / case["microseconds"]["shm"]["median"]: case for case in cases}
assert (speeds[max(speeds)]["size"], speeds[max(speeds)]["ranks"]) == (2**20, 2)
for ranks in (2, 4):
    assert medians[ranks, 8192, "shm"] < 1.5 * medians[ranks, 1024, "shm"]
    assert medians[ranks, 2**26, "shm"] > 3 * medians[ranks, 2**24, "shm"]
    times = [medians[ranks, size, "fake"] for size in (4, 2**16, 2**26)]
    assert max(times) < 3 * min(times), times
    ratios = [case["ratio"] for case in cases if case["ranks"] == ranks]
    assert 1 < max(ratios[-2:]) < min(ratios[:-2]), ratios
# sphinx_gallery_end_ignore

# %%
# Small tensors show the latency. From 1 to 8 KiB, the time of ``shm`` grows by less than half.
# Large tensors show the bandwidth: from 16 to 64 MiB, the time of ``shm`` becomes more than three
# times as long. ``fake`` communicates nothing, and is the floor: its times contain what no backend
# can save. The flight recorder, which :doc:`debug` describes, is off in this measurement: it
# records the calls of ``shm`` and gloo, and none of ``fake``.
#
# The second drawing divides the size by the median. This is the bandwidth that a program sees:
# the bytes that the ranks move in the shared memory are not counted. With two
# ranks, ``shm`` is fastest at 1 MiB, where their tensors still fit in the caches of the machine.
# ``fake`` moves nothing: its curve is the size divided by the time of a call.
#
# .. diagram:: communicate/bandwidth
#
# The numbers behind it are in megabytes per second:

rows = []
for case in cases:
    if case["size"] >= 1024:
        row = [f"{case['ranks']}", f"{case['size']:,}"]
        for backend in ("shm", "gloo"):
            speed = case["size"] / case["microseconds"][backend]["median"]
            row.append(f"{speed:,.1f}" if speed < 10 else f"{speed:,.0f}")
        rows.append(row)
show_table(["ranks", "bytes", "shm", "gloo"], rows)

# sphinx_gallery_start_ignore
assert len(rows) == 12, rows
assert all(float(row[2].replace(",", "")) > float(row[3].replace(",", "")) for row in rows)
# sphinx_gallery_end_ignore

# %%
# Measure in turns
# ----------------
#
# A machine has other work, and its clock frequency changes. Whoever measures gloo today and
# ``shm`` tomorrow measures the machine, too. The function ``measure`` below lets all backends
# take turns in one run. Every second round has the opposite order:
#
# .. literalinclude:: /../gallery/communicate/workers/take_turns.py
#    :language: python
#    :caption: gallery/communicate/workers/take_turns.py
#    :start-after: # [measure]
#    :end-before: # [/measure]
#
# The barrier lets the ranks begin together. Each sample is the time of the slowest rank. The
# median is not affected by a few samples that something disturbed, and the quartiles say how
# much the samples differ:
#
# .. literalinclude:: /../gallery/communicate/workers/take_turns.py
#    :language: python
#    :caption: gallery/communicate/workers/take_turns.py
#    :start-after: # [turns]
#    :end-before: # [/turns]
#
# ``zeros`` has 64 MiB. ``make bench-backend`` runs ``tools/measure``, which does the same for
# all cases, with 21 samples of each backend. A sample is as many calls as fit into 30
# milliseconds, at least one and at most 1000. Python's garbage collector is off. The result also
# contains the processor, the caches and the release of PyTorch.
#
# The worker prints only the backend with the smallest median. The order of ``shm`` and gloo can
# change while other programs use all cores of the machine.
#
# How much faster
# ---------------
#
# The accepted measurement also contains steps of training, with larger models than that of
# :doc:`train-with-it`. Times are in milliseconds. The floor of a step is the same step without
# communication: DDP's model alone, and FSDP2 with the backend ``fake``. The next cell also computes
# which share of a step is above the floor:

rows = []
for case in measured:
    if case["unit"] == "parameters":
        floor, *times = (case["microseconds"][x]["median"] for x in ("fake", "shm", "gloo"))
        shares = [f"{time / 1000:.1f} ({1 - floor / time:.0%})" for time in times]
        what = case["operation"].removeprefix("step of ")
        size, ranks = f"{case['size'] // 10**6} million", str(case["ranks"])
        rows.append([what, size, ranks, f"{floor / 1000:.1f}", *shares, f"{case['ratio']:.1f}"])
show_table(["step", "parameters", "ranks", "floor", "shm", "gloo", "gloo / shm"], rows)


# sphinx_gallery_start_ignore
def share(cell):
    return int(cell.partition("(")[2].partition("%")[0])


assert len(rows) == 8 and all(float(row[-1]) > 1 for row in rows)
assert all(share(gloo) > 50 > share(shm) for *_, shm, gloo, ratio in rows)
# sphinx_gallery_end_ignore

# %%
# With gloo, more than half of each step is above the floor; with ``shm``, less than half. For
# DDP this part also contains DDP's own work. Four ranks share the two cores of the machine.
#
# A mistake: a time without the end
# ---------------------------------
#
# ``all_reduce`` with ``async_op=True`` returns before the result is there. A measurement without
# ``wait`` measures how long it takes to submit the operation. In this program, rank 1 comes half
# a second late, so no all-reduce can end earlier:
#
# .. literalinclude:: /../gallery/communicate/workers/take_turns.py
#    :language: python
#    :caption: gallery/communicate/workers/take_turns.py
#    :start-after: # [mistake]
#    :end-before: # [/mistake]

from launcher import launch, run_program

output = launch("workers/take_turns.py", ranks=2)

# sphinx_gallery_start_ignore
assert output[0].splitlines() == [
    "the smallest median: fake",
    "the call: less than 0.25 s",
    "the call and wait(): more than 0.25 s",
]
# sphinx_gallery_end_ignore

# %%
# The time of the call alone says nothing about the all-reduce. The cure is ``wait`` before the
# clock stops, as the last line shows.
#
# Exercise
# --------
#
# A simple model says that an operation takes a constant time, plus the size divided by a
# constant rate. Draw this line through the medians of the smallest and the largest all-reduce.
# Print for ``shm`` and gloo at which size the measured time exceeds the line by the largest factor.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    A byte per microsecond is a megabyte per second.
#
#    .. literalinclude:: /../gallery/communicate/workers/line_through_two_points.py
#       :language: python
#       :caption: gallery/communicate/workers/line_through_two_points.py
#       :start-after: # [solution]
#       :end-before: # [/solution]
#
# The program reads the accepted measurement:

output = run_program("workers/line_through_two_points.py")

# sphinx_gallery_start_ignore
factors = [float(line.split()[-4]) for line in output.splitlines()]
assert max(factors[:2]) < 3 < min(factors[2:]), factors
# sphinx_gallery_end_ignore

# %%
# The line describes ``shm`` within a factor of three. It does not describe gloo: from 1 to 64
# KiB, its times are more than three times as long as those of the line. Such a difference is a
# reason to measure more sizes. Measure before and after each change of your backend, in turns.
#
# A measurement shows that a program is slow. The tools of :doc:`debug` show why, and also why a
# program hangs.

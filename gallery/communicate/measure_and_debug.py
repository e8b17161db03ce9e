"""
Measure and debug
=================

After this page you can measure a backend so that the numbers can be trusted, and read its
latency and bandwidth from curves. You can also find the rank that a hanging program waits for,
and the line where the others wait.

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

cases = json.loads(Path("measurements.json").read_text())["cases"]
cases = [case for case in cases if case["operation"] == "all_reduce"]

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
for ranks in (2, 4):
    assert medians[ranks, 8192, "shm"] < 2 * medians[ranks, 4, "shm"]
    assert medians[ranks, 2**26, "shm"] > 3 * medians[ranks, 2**24, "shm"]
    times = [medians[ranks, size, "fake"] for size in (4, 2**16, 2**26)]
    assert max(times) < 3 * min(times), times
    ratios = [case["ratio"] for case in cases if case["ranks"] == ranks]
    assert min(ratios) == ratios[-1] > 1, ratios
# sphinx_gallery_end_ignore

# %%
# Small tensors show the latency. From 4 bytes to 8 KiB, the time of ``shm`` does not even
# double. Large tensors show the bandwidth: from 16 to 64 MiB, the time of ``shm`` becomes more
# than three times as long. ``fake`` communicates nothing, and is the floor: its times contain
# what no backend can save. From PyTorch 2.15 on, the times of the others also contain the flight
# recorder, which is described below.
#
# The second drawing divides the size by the median. This is the bandwidth that a program sees:
# the bytes that the ranks move in the shared memory are not counted. ``fake`` moves
# nothing: its curve is the size divided by the time of a call.
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

from launcher import launch

output = launch("workers/take_turns.py", ranks=2)

# sphinx_gallery_start_ignore
assert output[0].splitlines() == [
    "from fast to slow: fake shm gloo",
    "the call: less than 0.25 s",
    "the call and wait(): more than 0.25 s",
]
# sphinx_gallery_end_ignore

# %%
# The time of the call alone says nothing about the all-reduce. The cure is ``wait`` before the
# clock stops, as the last line shows.
#
# Find ranks that differ
# ----------------------
#
# ``shm`` compares notes of its operations, but not all mistakes are in them. Here the ranks
# reduce tensors of one size and of different shapes. The debug level is a property of the
# process. A program usually gets it from the variable ``TORCH_DISTRIBUTED_DEBUG``:
#
# .. literalinclude:: /../gallery/communicate/workers/ranks_differ.py
#    :language: python
#    :caption: gallery/communicate/workers/ranks_differ.py
#    :start-after: # [shapes]
#    :end-before: # [/shapes]
#
# At the level ``DETAIL``, PyTorch puts a wrapper around the backend of each new group. Before
# each collective, the wrapper compares the calls of all ranks through a gloo group of its own.
# Do not measure at this level, because gloo is part of each call.
#
# ``monitored_barrier`` finds a rank that does not come. In the second half of the program, rank
# 2 is missing:
#
# .. literalinclude:: /../gallery/communicate/workers/ranks_differ.py
#    :language: python
#    :caption: gallery/communicate/workers/ranks_differ.py
#    :start-after: # [missing]
#    :end-before: # [/missing]
#
# ``monitored_barrier`` in the program calls that of ``torch.distributed``, or the method of the
# group: in PyTorch 2.13 the function is for gloo only.

output = launch("workers/ranks_differ.py", ranks=3)

# sphinx_gallery_start_ignore
for rank, text in enumerate(output):
    shapes = ["2 3", "3 2"] if rank == 0 else ["3 2", "2 3"]
    lines = text.splitlines()
    assert lines[0].startswith("OFF:    [[3.0, 3.0") and "[3.0, 3.0]" in lines[2], lines
    assert lines[1] == "DETAIL: Tensor Tensor shapes: {}vs {}".format(*shapes)
assert output[0].endswith("Rank 2 failed to pass monitoredBarrier\n")
assert output[1].endswith("Rank 1 successfully reached monitoredBarrier\n")
# sphinx_gallery_end_ignore

# %%
# Without ``DETAIL``, the ranks add numbers that do not belong together, and nobody notices. With
# ``DETAIL``, all ranks get an error that contains both shapes. The backend was not called, so the
# group is not broken: the next call returns the sum. The wrapper needs
# ``getSequenceNumberForGroup`` of the backend:
# :doc:`/tutorial/step-4-unimplemented-collective` overrides it.
#
# The worker prints the first reason in the error of the barrier. On rank 0, it names rank 2. On
# rank 1, it only says that rank 1 is not at fault. ``shm`` adds the reason of rank 0 to that error,
# and gloo does not.
#
# Look at a hanging rank
# ----------------------
#
# In the last program, rank 1 is late, and rank 0 finds out in three ways where it hangs. First, a short
# ``wait`` tells which operation has not ended. It does not break the group:
#
# .. literalinclude:: /../gallery/communicate/workers/hanging_rank.py
#    :language: python
#    :caption: gallery/communicate/workers/hanging_rank.py
#    :start-after: # [state]
#    :end-before: # [/state]
#
# The timeout of the operation does break it, and names the ranks that it waits for:
# :doc:`timeouts-and-lost-ranks` shows that error.
#
# Second, ``faulthandler`` of Python writes the stack of a program that hangs in C++. It needs
# no signal, because a thread of its own writes:
#
# .. literalinclude:: /../gallery/communicate/workers/hanging_rank.py
#    :language: python
#    :caption: gallery/communicate/workers/hanging_rank.py
#    :start-after: # [stack]
#    :end-before: # [/stack]
#
# Rank 1 comes as soon as the file contains the stack. The program prints the file and the
# function of each frame, the innermost first.
#
# Third, PyTorch's flight recorder notes each call of a collective in memory. From PyTorch 2.15
# on, it notes the calls of a backend such as ``shm``, too, unless the environment variable
# ``TORCH_FR_BUFFER_SIZE`` is 0. All groups of a backend share one recorder, so compare entries of
# the same ``process_group``. ``dump`` is the function
# ``_dump_fr_trace_json`` of ``torch._C._distributed_c10d``, and its last argument is the name of
# the backend. The underscore means that it may change. Rank 1 does not call the broadcast:
#
# .. literalinclude:: /../gallery/communicate/workers/hanging_rank.py
#    :language: python
#    :caption: gallery/communicate/workers/hanging_rank.py
#    :start-after: # [recorder]
#    :end-before: # [/recorder]
#
# In PyTorch 2.14, the program attaches ``FlightRecorderHook`` to the group. PyTorch 2.13 records
# gloo only, and the program uses a gloo group there.

output = launch("workers/hanging_rank.py", ranks=2)

# sphinx_gallery_start_ignore
lines = output[0].splitlines()
assert lines[0] == "all_reduce #1 has not ended within the 500 ms of this wait()"
assert lines[1] == "the second wait() has returned"
assert lines[2] == "    distributed_c10d.py: all_reduce", lines
assert lines[-4:-2] == ["    hanging_rank.py: train", "    hanging_rank.py: <module>"], lines
assert lines[-2:] == ["the broadcast has failed", "collective 3 is broadcast"], lines
assert output[1] == "collective 2 is barrier\n"
# sphinx_gallery_end_ignore

# %%
# Rank 1 has made one call less, and its last one is the barrier. Compare the last entries of the
# ranks, and not their states. In 2.15, the entries of ``shm`` remain "scheduled" after their
# end, because ``shm`` has no completion hooks. The entry of an asynchronous call is at least marked
# as ``retired``. A synchronous call returns no ``Work`` that the recorder could watch. PyTorch's header ``hooks/FlightRecorderHook.hpp`` says what a backend can
# add. ``shm`` adds nothing.
#
# .. not-executed::
#
#    The tools ``py-spy`` and ``gdb`` show the stacks of a process that was not prepared. They
#    stop it from outside, which not every machine allows, so the build does not run them.
#
#    .. code-block:: console
#
#       $ py-spy dump --native --pid 12345
#       $ gdb -p 12345 -batch -ex "thread apply all backtrace"
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
#    A byte in a microsecond is a megabyte in a second.
#
#    .. literalinclude:: /../gallery/communicate/workers/line_through_two_points.py
#       :language: python
#       :caption: gallery/communicate/workers/line_through_two_points.py
#       :start-after: # [solution]
#       :end-before: # [/solution]
#
# The program reads the accepted measurement:

from launcher import run_program

output = run_program("workers/line_through_two_points.py")

# sphinx_gallery_start_ignore
factors = [float(line.split()[-4]) for line in output.splitlines()]
assert max(factors[:2]) < 2 < min(factors[2:]), factors
# sphinx_gallery_end_ignore

# %%
# The line describes ``shm`` within a factor of two. It does not describe gloo: between the two
# points, its times are several times as long as those of the line. Such a difference is a reason to measure more sizes.
# Measure before and after each change of your backend, in turns.

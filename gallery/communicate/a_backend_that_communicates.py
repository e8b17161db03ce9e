"""
A backend that communicates
===========================

This page introduces the backend ``shm``: what it does, which file of it contains which decision,
and how long its operations take.

This part is a case study, for readers who design a protocol of their own. If you wrap a library,
you need only :doc:`the part before it </right/smallest-backend>`. There, each byte passes through
the store. Here the ranks of one host communicate through memory that they share, so that an
operation takes microseconds. The backend is ``extension/shm_collectives``, with the c10d name
``shm``. It implements the operations of ``c10d::Backend`` for dense CPU tensors, and DDP and FSDP2
train with it. The end of this page lists what it leaves out.

.. diagram:: communicate/a_backend_that_communicates/diagram

One decision for each file
--------------------------

The names of the files show the design. A decision that also serves other transports is in
``extension/frame``, which :doc:`/right/smallest-backend` introduces, and the others are in
``shm_collectives/src``. The only source is ``registration.cpp``, so the compiler reads PyTorch's
headers once:

.. list-table::
   :header-rows: 1

   * - frame
     - shm
     - decision
   * - ``transport``
     - ``transport``
     - what the frame leaves to ``shm``
   * - ``rendezvous``, ``keys``, ``store_keys``
     -
     - how the ranks of a group find each other
   * -
     - ``memory``, ``process``, ``others``
     - what they share, who may read it, and who is lost
   * - ``steps``, ``note``
     - ``step``
     - in which order they write and read
   * -
     - ``waiting``
     - how a rank waits for another one
   * - ``reductions``, ``sparse``
     - ``collectives``
     - what a collective writes and reads, and how numbers are combined
   * -
     - ``messages``
     - how a message finds its receive
   * - ``arguments``, ``bytes``, ``backend``
     -
     - which tensors each method of ``c10d::Backend`` takes
   * - ``group``, ``engine``, ``pending``, ``threads``, ``process``, ``work``
     -
     - who runs an operation, and how a program learns of its end
   * - ``options``, ``registration``
     - ``registration``
     - how Python finds the backend

You build and install it like the dummy: :doc:`/tutorial/step-3-build-and-install` shows how.
It needs Linux, PyTorch and a C++20 compiler. To begin a backend of your own, take the project of
:doc:`/tutorial/next-steps`.

The first real sum
------------------

The program of the home page needs a different import and a different name. Each rank starts with
a different number:

.. listing:: gallery/communicate/a_backend_that_communicates/first_results.py
   :part: program
"""

from launcher import launch
from result_table import show_table

launch("a_backend_that_communicates/first_results.py", ranks=2)

# %%
# Both ranks have ``1 + 2 = 3``. With the dummy, both had zero.
#
# What to compare it with
# -----------------------
#
# Gloo is PyTorch's own backend for CPUs. It also works between hosts, and sends its data
# through sockets. ``fake`` is a backend that communicates nothing. For operations in place,
# its times are the floor: they contain Python, the binding and the dispatcher, which every backend
# pays for. In an operation with separate outputs, ``fake`` also fills these from the rank's own
# input, which a backend can do faster.
#
# ``make bench-backend`` measures all three in turns, in runs of new processes. The table shows
# microseconds for two ranks: the median of the runs, and for gloo the fastest and the slowest run.
# The build does not measure: it reads the result that somebody accepted with
# ``make accept-bench-backend``. The line below the table describes the machine.

import csv
from pathlib import Path

machine, *lines = Path("shared/measurements.csv").read_text().splitlines()
measured = {}
for row in csv.DictReader(lines):
    case = row["operation"], int(row["size"]), int(row["ranks"]), int(row["sessions"])
    times = [float(row[name]) for name in ("median", "lowest", "highest")]
    measured.setdefault(case, {})[row["backend"]] = times
print(f"{machine.removeprefix('# ')}, {row['runs']} runs")

SIZES = {0: "", 4: "4 B", 65536: "64 KiB", 2**24: "16 MiB"}
SHOWN = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "barrier"]

rows = []
for (operation, size, ranks, _), times in measured.items():
    if ranks == 2 and operation in SHOWN and size in SIZES:
        (fake, *_), (shm, *_), (_, lowest, highest) = times.values()
        shown = f"{fake:,.0f}", f"{shm:,.0f}", f"{lowest:,.0f}–{highest:,.0f}"
        rows.append([operation, SIZES[size], *shown])
show_table(["operation", "size", "fake", "shm", "gloo"], rows)

# %%
# Both processes run in a virtual machine with two CPUs, where gloo's time is largely that of
# waking up, as :doc:`measure` shows. On another machine, the times and their ratios differ. For
# this machine, count the cases in which even the slowest run of ``shm`` is faster than the
# fastest run of gloo:

for ranks in (2, 4):
    cases = [times for (_, _, x, sessions), times in measured.items() if x == sessions == ranks]
    below = sum(times["shm"][2] < times["gloo"][1] for times in cases)
    print(f"{ranks} ranks: shm is faster in every run in {below} of {len(cases)} cases")

# %%
# What it leaves out
# ------------------
#
# ``shm`` has every operation on dense tensors, but not every feature of ``c10d::Backend``. It
# lacks
#
# - completion hooks and abort hooks, so the flight recorder does not learn that an operation
#   has ended (:doc:`debug`);
# - coalesced messages: ``supportsCoalescing`` is false, so ``batch_isend_irecv`` submits each
#   message alone;
# - windows, ``reconfigure``, ``shrink`` and time estimates;
# - allocator, ``suspend``, ``resume`` and memory statistics, which concern memory of a device.
#
# :doc:`share-memory` begins with the decision from which all others follow: what the ranks share.

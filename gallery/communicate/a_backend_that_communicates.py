"""
A backend that communicates
===========================

After this page you know what the backend ``shm`` does, which file of it contains which
decision, and how long its operations take.

The dummy has all the parts of a backend and moves no data. The pages of this part rebuild
it, one decision at a time, until the ranks of one host communicate through memory that they
share. The result is ``extension/shm_collectives``, with the c10d name ``shm``. It
implements the operations of ``c10d::Backend`` for dense CPU tensors, and DDP and FSDP2 train with
it. The end of this page lists what it leaves out.

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

The same decisions for several hosts
------------------------------------

Ranks of different hosts share no memory. A backend that connects them with TCP sockets needs the
same decisions, but makes them differently. No page runs such a backend.

.. list-table::
   :header-rows: 1

   * - decision
     - with sockets
   * - how the ranks find each other
     - Each rank writes its address and port into the store. In each pair, one rank connects
       to the other. It first sends its rank and a number from the store, because a program that
       does not belong to the group can connect, too.
   * - what they share
     - A connection for each pair. TCP does not preserve the boundaries of messages, so each
       message begins with its length and a note of the operation.
   * - in which order they write and read
     - The buffers of a connection have a limited size. If all ranks only send, nobody reads, and
       all of them wait. So a rank must send and receive at the same time.
   * - how a rank waits
     - It passes all its connections to one call of ``poll``, with the rest of its timeout.
   * - who runs an operation
     - A thread owns all connections. Other threads append operations to a list, and write to an
       ``eventfd`` that wakes its ``poll``. A second thread calls the callbacks.
   * - who is lost
     - The kernel closes the connections of a process that ends: then ``recv`` of the other ranks
       returns 0 or fails with ``ECONNRESET``. But a forked child, such as a worker of a
       ``DataLoader``, keeps them open, and a host that fails sends nothing. Only the timeout ends
       these waits. On a closed connection, ``send`` raises the signal ``SIGPIPE``, which Python
       ignores. A program that does not ignore it passes ``MSG_NOSIGNAL``.
   * - one failure, all ranks
     - The rank that finds it sends the reason to all others. In the middle of a message it cannot,
       and closes that connection. A rank that leaves the group says so before it closes, or it
       looks like one that has died.
   * - how data finds its operation
     - Each message contains its tag, or the number of its collective. A rank keeps a message for
       which nobody waits yet, and data of a collective that it has not begun.

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
# The next page begins where every backend begins: :doc:`the ranks must meet
# <meet-the-other-ranks>`.

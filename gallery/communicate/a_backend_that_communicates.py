"""
A backend that communicates
===========================

After this page you know what the backend ``shm`` does, which file of it contains which
decision, and how fast it is.

The dummy has all the parts of a backend and moves no data. The pages of this part rebuild
it, one decision at a time, until the ranks of one host communicate through memory that they
share. The result is ``extension/shm_collectives``, with the c10d name ``shm``. It
implements all collectives and messages of ``c10d::Backend`` for dense CPU tensors, and DDP and
FSDP2 train with it.

.. diagram:: communicate/design

One decision for each file
--------------------------

The names of the files show the design. All of them are headers in ``include``, except
``src/registration.cpp``. It is the only source, so the compiler reads PyTorch's headers once:

.. list-table::
   :header-rows: 1

   * - file
     - decision
   * - ``rendezvous``
     - how the ranks of a group find each other
   * - ``memory``, ``group``
     - what they share, who may read it, and who is lost
   * - ``steps``, ``channel``, ``note``
     - in which order they write and read
   * - ``waiting``
     - how a rank waits for another one
   * - ``collectives``, ``reductions``, ``sparse``
     - what a collective writes and reads, and how numbers are combined
   * - ``point_to_point``
     - how a message finds its receive
   * - ``call``, ``backend``
     - which tensors each method of ``c10d::Backend`` takes
   * - ``call_runner``, ``operation``, ``lanes``, ``progress``, ``callbacks``, ``threads``,
       ``work``
     - who runs an operation, and how a program learns of its end
   * - ``registration``
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

.. literalinclude:: /../gallery/communicate/workers/first_results.py
   :language: python
   :caption: gallery/communicate/workers/first_results.py
   :start-after: # [program]
   :end-before: # [/program]
"""

from launcher import launch

launch("workers/first_results.py", ranks=2)

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
# ``make bench-backend`` measures all three in turns, in one run. The table shows the medians of
# such a run in microseconds, for two ranks on a machine with two cores. The build does not
# measure: it reads the result that somebody accepted with ``make accept-bench-backend``.

import json
from pathlib import Path

from result_table import show_table

measured = json.loads(Path("measurements.json").read_text())
SIZES = {0: "", 4: "4 B", 65536: "64 KiB", 2**24: "16 MiB"}
SHOWN = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "barrier"]

rows = []
for case in measured["cases"]:
    if case["ranks"] == 2 and case["operation"] in SHOWN and case["size"] in SIZES:
        medians = [case["microseconds"][x]["median"] for x in ("fake", "shm", "gloo")]
        times = [f"{median:,.0f}" for median in medians]
        rows.append([case["operation"], SIZES[case["size"]], *times, f"{case['ratio']:.0f}"])
show_table(["operation", "size", "fake", "shm", "gloo", "gloo / shm"], rows)

# sphinx_gallery_start_ignore
assert len(rows) == 16, rows
assert all(case["ratio"] > 1 for case in measured["cases"])
# sphinx_gallery_end_ignore

# %%
# ``shm`` is faster than gloo in all cases of the measurement, also with four ranks on the two
# cores. A step of training contains more than communication, and gains less:

for case in measured["cases"]:
    if case["unit"] == "parameters":
        size, ranks = f"{case['size']:,}", case["ranks"]
        print(f"{case['operation']:13} {size} parameters, {ranks} ranks: {case['ratio']:.1f}")

# sphinx_gallery_start_ignore
assert sum(case["unit"] == "parameters" for case in measured["cases"]) == 8
# sphinx_gallery_end_ignore

# %%
# The numbers are gloo's time divided by that of ``shm``. The next page begins where every
# backend begins: :doc:`the ranks must meet <meet-the-other-ranks>`.

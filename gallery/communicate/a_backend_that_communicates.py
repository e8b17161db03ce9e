"""
shm, a backend in shared memory
===============================

The ranks of one host can communicate through memory that they share, so that a small operation takes microseconds.
This page introduces ``shm``, a backend that uses such memory. It runs a first sum, compares the times with those of
gloo, and lists the decisions, most of which the next pages explain.

The backend is in ``extension/shm_collectives``. It implements the operations of ``c10d::Backend`` for dense
CPU tensors, and the sum of sparse ones; DDP and FSDP2 train with it.

.. diagram:: communicate/a_backend_that_communicates/diagram

The first sum
-------------

You build and install ``shm`` :doc:`like the dummy </tutorial/step-3-build-and-install>`, on Linux and with a C++20
compiler.

To check the installation, run the program of the home page with ``shm``. Each rank starts with a different number:

.. listing:: gallery/communicate/a_backend_that_communicates/first_results.py
   :part: program
"""

from launcher import launch
from result_table import show_table

launch("a_backend_that_communicates/first_results.py", ranks=2)

# %%
# Both ranks print ``1 + 2 = 3``, where the dummy left zeros.
#
# Compared with gloo
# ------------------
#
# A time alone does not say whether a backend is fast, so the table below has two more backends beside ``shm``:
#
# - ``fake`` communicates nothing. So its time for ``all_reduce``, which works in place, is that of Python, the
#   binding and the dispatcher. A backend can hardly be faster. For an operation with separate outputs, such as
#   ``all_gather``, this does not hold, because ``fake`` is slow to fill the outputs.
# - Gloo is PyTorch's own backend for CPUs. It also works between hosts, and sends its data through
#   sockets even on one host.
#
# The numbers are microseconds for two ranks: the median of the runs, and for gloo the fastest and the slowest run,
# because gloo's runs differ most. ``make bench-backend`` has measured them, on the machine that is named below the
# table:

from measurements import machine, measured, runs

print(f"{machine}, {runs} runs")

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
# For ``all_reduce`` and ``broadcast`` of 4 B, ``shm`` takes only a little longer than ``fake``, so most of
# this time goes to Python, the binding and the dispatcher.
#
# On these two CPUs of a virtual machine, gloo spends most of its time for small tensors waking threads, as
# :doc:`measure` explains. On another machine the ratios differ, so do not rely on them.
#
# What can be compared here is which backend is faster, so the next lines count the cases in which even the slowest
# run of ``shm`` is faster than the fastest run of gloo.

for ranks in (2, 4):
    cases = [times for (_, _, x, sessions), times in measured.items() if x == sessions == ranks]
    below = sum(times["shm"][2] < times["gloo"][1] for times in cases)
    print(f"{ranks} ranks: shm is faster in every run in {below} of {len(cases)} cases")

# %%
# In the remaining cases, the runs of the two backends overlap, so this measurement does not decide which one is
# faster there.
#
# One decision for each file
# --------------------------
#
# A transport of your own must answer the same questions as ``shm``. The table names the files that contain each
# answer. Files in the first column belong to the *frame*, the code in ``extension/frame`` that serves every
# transport (:doc:`/right/smallest-backend`). Files in the second column, in ``shm_collectives/src``, depend on shared
# memory:
#
# .. list-table::
#    :header-rows: 1
#
#    * - frame
#      - shm
#      - decision
#    * - ``transport``
#      - ``transport``
#      - what the frame leaves to ``shm``
#    * - ``host``
#      - ``memory``, ``others``
#      - what the ranks share, who may read it, and which rank is dead
#    * - ``steps``, ``note``
#      - ``step``
#      - in which order the ranks write and read
#    * -
#      - ``waiting``
#      - how a rank waits for another one
#    * - ``reductions``, ``sparse``
#      - ``collectives``
#      - what a collective writes and reads, and how numbers are combined
#    * -
#      - ``messages``
#      - how a message finds its receive
#    * - ``options``, ``registration``
#      - ``registration``
#      - how Python finds the backend
#
# .. admonition:: What ``shm`` leaves out
#    :collapsible: closed
#
#    Some features of ``c10d::Backend`` would distract from the decisions above, or concern a device, so
#    ``shm`` lacks
#
#    - completion hooks and abort hooks, so the flight recorder does not learn that an operation
#      has ended (:doc:`debug`);
#    - coalesced messages: ``supportsCoalescing`` is false, so ``batch_isend_irecv`` submits each
#      message alone;
#    - windows, ``reconfigure``, ``shrink`` and time estimates;
#    - an allocator, ``suspend``, ``resume`` and memory statistics, which concern memory of a device.
#
# The next pages explain one decision each: what the ranks share, how they divide it, in which order
# they use it, how a collective is made of steps, and how a rank waits.
#
# To begin a backend of your own, take the project of :doc:`/tutorial/next-steps`, not ``shm``, because the transport
# of that project is easier to replace.
#
# :doc:`share-memory` begins with the decision from which all others follow: what the ranks share.

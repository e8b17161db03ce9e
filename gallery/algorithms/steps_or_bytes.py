"""
Few steps or few bytes
======================

To all-reduce 8 bytes on 64 ranks, the ring of :doc:`collectives-from-messages` takes 20 times as long as an algorithm
with fewer steps. To all-reduce 64 MiB, that algorithm takes four times as long as the ring. The reason is that each
message has two costs: a latency, which is the same for every size, and the time for its bytes. This page counts both,
and shows which algorithm suits which size, which number of ranks, and which dtype.

Doubling
--------

To take few steps, let pairs of ranks exchange their whole tensors. After the first step, each rank has the sum of two
ranks, then of four, then of eight. So 64 ranks need only 6 steps, but in each of them, a rank sends the whole tensor:

.. listing:: extension/frame/c10d_frame/include/frame/algorithms/all_reduce.hpp
   :start-at: inline Steps doubling_core
   :end-before: inline Steps doubling(

Partners add in the order of the ranks, so all ranks get the same bits, even from a reduction in which the order
counts.

Halving
-------

To send fewer bytes, let two partners share the work: each sends half of the tensor, and adds up the other half. In
the next step, each shares its half with another partner. After 6 steps, each of 64 ranks has the sum of one share,
and 6 steps back bring the shares together:

.. diagram:: algorithms/steps_or_bytes/diagram

.. admonition:: ``halving_core``
   :collapsible: closed

   .. listing:: extension/frame/c10d_frame/include/frame/algorithms/all_reduce.hpp
      :start-at: inline Steps halving_core
      :end-before: // The largest halves

Steps and bytes of each algorithm
---------------------------------

To compare these algorithms and two further ones, count what a rank does with a tensor of ``s`` bytes on ``n`` ranks,
where ``n`` is a power of two:

.. list-table::
   :header-rows: 1

   * - algorithm
     - number of steps
     - bytes that each rank sends
   * - ``ring``
     - ``2 (n - 1)``
     - ``2 s (n - 1) / n``
   * - ``doubling``
     - ``log2 n``
     - ``s log2 n``
   * - ``halving``
     - ``2 log2 n``
     - ``2 s (n - 1) / n``
   * - ``tree``: chunks go up a tree to rank 0, and their sums come down
     - about ``2 log2 n``, and one for each further chunk
     - up to ``3 s``: once up, and down to two children
   * - ``direct``: each rank sends to every other rank the share that the receiver adds up, and later the sum of its own
     - 2
     - ``2 s (n - 1) / n``

The simulator counts what 64 ranks send to all-reduce 1 MiB, and the program prints the average of a rank. With
``tree``, a rank sends less than ``3 s`` on average, because half of the ranks have no children:
"""

from shared.tables import print_table, rows, time

ALGORITHMS = "algorithm=ring,doubling,halving,tree,direct"
counted = rows(ALGORITHMS, "ranks=64", "hosts=64", "bytes=1048576")
for row in counted:
    messages, tensors = int(row["messages"]) / 64, int(row["sent"]) / 64 / 1048576
    print(f"{row['algorithm']:9}{messages:6.1f} messages, {tensors:.2f} times the tensor")

# sphinx_gallery_start_ignore
by_name = {row["algorithm"]: row for row in counted}
for name, messages, tensors in [("ring", 126, 126 / 64), ("doubling", 6, 6), ("halving", 12, 126 / 64)]:
    assert int(by_name[name]["messages"]) == 64 * messages
    assert int(by_name[name]["sent"]) == 64 * tensors * 1048576
# sphinx_gallery_end_ignore

# %%
# Latency and rate
# ----------------
#
# Because a step takes about ``latency + bytes / rate``, the counts become times once the links are known. The next
# table has times in microseconds. Each of 64 hosts has one rank and a card of 400 Gbit/s, and the latency is 5
# microseconds:

SIZES = "bytes=8,65536,262144,1048576,67108864"
print_table(rows(ALGORITHMS, "ranks=64", "hosts=64", SIZES), time, across="bytes")

# sphinx_gallery_start_ignore
fast = rows(ALGORITHMS, "ranks=64", "hosts=64", SIZES)
ends = {(row["algorithm"], row["bytes"]): float(row["time"]) for row in fast}
assert ends["ring", "8"] > 20 * ends["doubling", "8"]
assert ends["doubling", "67108864"] > 4 * ends["ring", "67108864"]
# sphinx_gallery_end_ignore

# %%
# For small tensors, few steps win, and for large ones, few bytes. Between them is a size for which doubling and
# halving take the same time. Halving takes ``log2 n`` more steps, and each costs a latency. In return, it sends about
# two tensors instead of ``log2 n``. So both take the same time if ``latency * log2 n = s (log2 n - 2) / rate``.
#
# With 64 ranks, ``log2 n`` is 6, so ``s`` is 6/4, or 1.5 times the bytes that a card sends during one latency. A link
# with 1 millisecond and 1 Gbit/s sends 125 KB in that time, so there halving should win from about 188 KB:

slow = "latency=1000", "rate=1"
print_table(rows(ALGORITHMS, "ranks=64", "hosts=64", SIZES, *slow), time, across="bytes")

# %%
# On the fast links of the first table, the formula gives 375 KB, but halving wins from about 100 KB. The formula
# leaves out the time to add, which matters here: the simulator adds at 20 GB/s, while a card sends at 50 GB/s. In
# doubling, each rank adds six tensors; in halving, only about one.
#
# The times of ``direct`` are too good to rely on, as :doc:`predictions` explains. Its 63 messages reach one card at
# the same time. In the simulator, they follow each other without loss; in a real network, a switch may have to drop
# some of them.
#
# Any number of ranks
# -------------------
#
# Doubling and halving need a power of two, because every rank needs a partner in each step. Of 48 ranks, only 32
# therefore take the steps. Each of the other 16 ranks first gives its input to a neighbour, and at the end gets the
# result from this neighbour, so the whole tensor is sent twice more:
#
# .. admonition:: ``folded``
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/frame/algorithms/all_reduce.hpp
#       :part: folded
#
#    ``Part`` renumbers the 32 ranks from 0.
#
# For a large tensor, the ring is now faster than halving:

print_table(rows(ALGORITHMS, "ranks=48", "hosts=48", SIZES), time, across="bytes")

# %%
# Other collectives
# -----------------
#
# Other collectives have the same choice between few steps and few bytes:
#
# - *All-gather*: ``ring`` passes on one piece in each step, while ``bruck`` sends all the pieces that a rank has, so
#   their number doubles.
# - *Broadcast*: ``binomial`` sends the whole tensor down a tree, and ``chain`` sends chunks from rank to rank.
#   ``scatter_gather`` sends shares down the tree, which a ring then brings together.
#
# The sizes are those of the whole tensor, which has 64 pieces in the all-gather:

for operation in "all_gather", "broadcast":
    options = f"operation={operation}", "ranks=64", "hosts=64", SIZES
    print_table(rows(*options), time, across="bytes")

# %%
# Which dtypes may be combined two at a time
# ------------------------------------------
#
# Before the size, the dtype may decide. Except for ``direct``, these algorithms combine two pieces at a time, and each
# time round to the dtype of the tensor. For a dtype with few bits, the results can then be wrong by a lot. This loop
# adds 3,000 ones:

import torch

for dtype in torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2:
    total = torch.zeros(1, dtype=dtype)
    for _ in range(3000):
        total = (total.float() + 1).to(dtype)
    print(f"{dtype}: {total.item():.0f}")

# %%
# With 8 bits, the sum stops at 16 or at 8, so it is wrong for larger groups. The frame therefore combines
# floating-point types with 8 bits two at a time only for MIN and MAX, which do not round. For their other reductions,
# a transport runs ``direct``, where one rank has all inputs of a share, combines them as ``float32``, and rounds
# once. If ``bfloat16`` is not exact enough for your gradients, reduce them in ``float32``.
#
# The choice of an algorithm
# --------------------------
#
# If ranks choose different algorithms, they wait for messages that no rank sends. So they decide by what all of them
# know: the bytes, the ranks and the hosts, and not by a latency that each has measured.
#
# The function below chooses the algorithm of an all-reduce in the frame. It uses three new names. ``has_levels`` tells
# whether a group has several hosts, and several ranks on at least one of them. ``two_level`` and ``halving_near`` are
# algorithms for hosts with several ranks, which :doc:`near-and-far` explains. Where each host has one rank,
# ``halving_near`` takes as long as ``halving``:
#
# .. listing:: extension/frame/c10d_frame/include/frame/algorithms/algorithms.hpp
#    :start-at: static const char* all_reduce_for
#    :end-before: // [/sizes]
#
# No limit is right for all links. If you know your machines, name algorithms instead: the option ``algorithms`` of
# ``tcp`` takes ``all_reduce=ring,broadcast=chain``.
#
# A result has the same bits on all ranks, but not with all algorithms: a ring adds in another order than a tree. So the
# last bits of a loss can change with the layout of the hosts, unless the program names an algorithm that ignores hosts.
#
# Exercise
# --------
#
# Eight hosts with one rank each have links with 1 millisecond and 1 Gbit/s. Predict the times of ``ring``,
# ``doubling`` and ``halving`` for 1 MiB. Then ask the simulator.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    At 1 Gbit/s, a byte takes 8 nanoseconds, and the tensor 8.4 milliseconds. The ring has 14 steps, each with 1 ms and
#    an eighth of the tensor: 28.7 ms. Doubling has 3 steps with 1 ms and the whole tensor: 28.2 ms. Halving has 6 steps
#    with 1 ms, and sends 7/4 of the tensor: 20.7 ms.
#
# The simulator also counts the time of processors:

eight = "ranks=8", "hosts=8", "bytes=1048576", *slow
print_table(rows(ALGORITHMS, *eight), time, across="bytes")

# %%
# .. admonition:: After this page you have decided
#
#    - up to which size few steps matter on your links: about the bytes that a card sends in a latency;
#    - which algorithm runs in groups whose number of ranks is no power of two;
#    - which dtypes your backend combines two at a time.
#
# Not run here: a network that drops messages.

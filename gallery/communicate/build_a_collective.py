"""
Collectives in steps
====================

If two ranks add the same numbers in different orders, their sums can differ, and with DDP the copies of a model drift
apart silently. So a collective decides which rank adds which numbers, and in which order. This page implements two
collectives of ``shm`` on the step protocol: an all-gather, which only moves data, and an all-reduce, which also adds.

.. diagram:: communicate/build_a_collective/diagram

All-gather
----------

The all-gather comes first, because it shows how a tensor passes through the slots. A tensor can be larger than a slot,
so most collectives move it in parts, one part in each step. If a rank read part ``i`` before it wrote part ``i + 1``,
the others would have to wait for that part. So the function ``pipeline`` writes one part ahead. It uses these names:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``Channel``
     - what one rank uses to write and read the slots of all ranks, operation after operation
   * - ``all_posted``
     - compares the notes of all ranks, which describe the operation, and raises the error if they differ
   * - ``from``
     - whom this rank waits for after the first step: one rank, all ranks (``kEveryone``), or no other rank (its own
       number)
   * - ``write``, ``read``
     - two functions of the collective, for one part: they fill this rank's slot, and use the slots of others
   * - ``posted_early``
     - whether the thread of the caller has already posted the first part
   * - ``parts``, ``part``
     - the number of parts of a tensor, and one part of some bytes

.. listing:: extension/shm_collectives/src/collectives.hpp
   :start-at: Steps pipeline(
   :end-before: // [/pipeline]

In each turn, the inner loop writes until this rank is one part ahead. Before each part, ``free`` waits until the slot
may be used again. Then the rank waits until part ``done`` is posted, and reads it. Each ``co_await`` continues when
the counters have reached the values that the step needs. :doc:`/right/asynchronous-work` shows what happens until
then.

If the other ranks answer at once, it is fastest to run a short operation on the calling thread. A collective should
not have to decide that. So it passes ``parts``, ``from``, ``write`` and ``read`` to a function ``run``. With a single
short part, ``run`` first lets the calling thread try. Otherwise, or if the other ranks do not answer at once, ``run``
calls ``pipeline``.

The next function is an all-gather if all ranks have outputs, and a gather if only one rank has outputs:

.. listing:: extension/shm_collectives/src/collectives.hpp
   :part: all-gather

Two ranks that call different operations must both get an error, and no wrong result. So in the first step, every rank
waits for all others, even if it needs no data of theirs. Before it reads data, it compares the *digests* in all slots,
the numbers computed from the notes.

All-reduce
----------

An all-reduce also adds, so it must decide which rank does that. For a small tensor, the number of steps decides the
time. So every rank writes its input, waits for all others, and adds up all slots, which takes one step. All ranks add
in the order of the ranks, and therefore get the same bits:

.. listing:: extension/shm_collectives/src/collectives.hpp
   :start-after: // [all-reduce]
   :end-before: // [/all-reduce-by-all]

For a large tensor, the number of bytes decides. If every rank adds up all slots, each of ``n`` ranks reads ``n``
tensors. So the work of a large sum is shared among the ranks: rank ``r`` reduces block ``r`` of each part, and all
others read the result. Each rank then reads about two tensors, however many ranks there are. ``shm`` does that if a
tensor has more than 16 KiB, with two ranks more than 64 KiB, or does not fit into one slot.

The price is a second step for each part, in which the ranks read the sums. But a slot has room for a rank's sum of
one part and its input of the next, so ``p`` parts take only ``p + 1`` steps:

.. admonition:: ``all_reduce_by_shares``
   :collapsible: closed

   .. listing:: extension/shm_collectives/src/collectives.hpp
      :part: all-reduce-by-shares

   Each rank may begin the sum with its own block, and not with that of rank 0, because only one rank reduces each
   block, and the others copy the sum. If two ranks share the work, each still reads two tensors. But each leaves its
   sum in the slot of the other, whose memory is in its cache after reading, so less data moves between their caches.

The worker below reduces 10 numbers and 100,000 numbers, and compares the results of all ranks. Its slots have
4,096 bytes, so the second tensor needs about a hundred parts:

.. listing:: gallery/communicate/build_a_collective/all_reduce_in_steps.py
   :part: numbers
"""

from launcher import launch

output = launch("build_a_collective/all_reduce_in_steps.py", ranks=4)

# sphinx_gallery_start_ignore
launch("build_a_collective/all_reduce_in_steps.py", ranks=2, show=False)
# sphinx_gallery_end_ignore

# %%
# Every line ends with ``True``: both ways, one step for 10 numbers and shared work for 100,000, give all four ranks
# the same bits.
#
# Bug: each rank begins the sum with its own number
# -------------------------------------------------
#
# With small tensors, every rank adds for itself. If each rank began with its own number, the ranks would add in
# different orders. In the next worker, each rank collects the numbers of all ranks with ``all_gather``, and adds
# them twice: with its own number first, and in the order of the ranks:
#
# .. listing:: gallery/communicate/build_a_collective/own_number_first.py
#    :part: orders

output = launch("build_a_collective/own_number_first.py", ranks=3)

# %%
# Near ``1e8``, neighbouring numbers of type ``float32`` are 8 apart, so ``1 + 1e8`` is rounded to
# ``1e8``. Rank 2 begins with this addition, and gets 0, although no rank gets an error.
#
# The fix is one order for all ranks. The order of the ranks is not more exact than others: with ``1e8``,
# ``1`` and ``-1e8``, every rank would get 0. But all ranks get the same bits, so the copies of a model stay equal.
#
# Exercise
# --------
#
# Let the slots have 4,096 bytes, as in the first worker. Predict how many steps the all-reduce of 10,
# 1,024, 1,025 and 100,000 numbers of type ``float32`` takes on four ranks. Then check your numbers with
# the counter ``read`` in the shared memory. :doc:`lay-out-the-memory` shows where the counters are.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    With these slots, a tensor that fits in one of them takes one step. A larger tensor is cut into
#    parts of 4,096 bytes, with a block of 1,024 bytes for each rank. The loop in
#    ``all_reduce_by_shares`` has two rounds more than there are parts. In the last one, the ranks
#    only read, and post nothing. So there is one step more than there are parts. ``mapped_memory``
#    returns the addresses at which the shared memory begins and ends.
#
#    .. listing:: gallery/communicate/build_a_collective/steps_of_all_reduce.py
#       :part: solution
#
# Four ranks run the solution, and rank 0 prints:

output = launch("build_a_collective/steps_of_all_reduce.py", ranks=4)

# %%
# The steps of the parts overlap, so 98 parts need only 99 steps. In each step, a rank may have to wait for
# the others, and :doc:`wait-without-wasting` decides how.
#
# .. admonition:: After this page you have decided
#
#    - what each rank writes and reads in each step;
#    - in which order numbers are added, so that all ranks get the same bits;
#    - from which size on the ranks share the work, and what more steps cost;
#    - where ranks notice that they call different operations.

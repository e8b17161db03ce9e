"""
A step protocol and its model
=============================

The third decision of ``shm`` is the order in which the ranks write and read their memory. If this order has a gap, a
rank reads old data once in a while, and training goes on without an error. So this page explains one protocol for all
collectives, and checks the protocol with a model that tries every order of events of a small group.

.. diagram:: communicate/step_by_step/diagram

One step
--------

All collectives consist of *steps*, in each of which a rank writes one of its four slots and reads the slots of
others. A rank must not read a slot before its owner has written it, and the owner must not overwrite a slot before
all ranks have read it. Of two ranks that share a large sum, each also writes its half into the slot of the other while
it may read it: :doc:`build-a-collective`.

Two kinds of counters keep this order. Each slot has a counter ``posted``, which tells the other ranks what they can
read there: it is 1 more than the number of the last step that was posted in the slot. Each rank has a counter
``read``, which tells the other ranks which of their slots they may overwrite: it is the number of steps that the rank
has finished reading.

In each step, a rank does six things:

1. It waits until its slot is free: every rank has read what the slot held before.
2. It writes to the slot.
3. It posts the step: it sets ``posted`` of the slot.
4. It waits for the ranks whose data it needs.
5. It reads their slots.
6. It is done: it increases ``read``.

The class ``Step`` has one method for each of these. Its code uses these names:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``Reached``
     - the counters that a rank waits for, and the value that they must reach
   * - ``ring_others``
     - wakes the ranks that sleep, if there is news for them: :doc:`wait-without-wasting`

A rank posts a step, and waits for those of the others, with these two methods:

.. listing:: extension/shm_collectives/src/step.hpp
   :start-at: void post(
   :end-before: Bytes of(int rank) const {

.. admonition:: All methods of ``Step``
   :collapsible: closed

   .. listing:: extension/shm_collectives/src/step.hpp
      :part: step

Every rank takes every step, even in a broadcast, where only one rank has data. The counters of all ranks
therefore count the same steps, and one operation begins where the last one has ended, without a reset.

Why four slots
--------------

A rank that must wait for its own slot loses time, so a rank has more than one. Step ``n`` uses slot ``n % 4``, so a
rank can be at most four steps ahead of the slowest one. The number four comes from how most collectives of ``shm`` take
their steps: *one step ahead*. For example, a rank posts step 6 as soon as it has read step 4, so that the others find
data while it reads step 5.

Step 6 uses the slot of step 2, so all ranks must have read step 2 before. They have, because the rank that posts step 6
could read step 4 only after all ranks had posted step 4, and each rank posts step 4 only after it has read step 2. So
with four slots, a rank never waits for its own slot, as long as all ranks read from all.

Two or three slots would be correct, too, but ranks would wait. With three, step 6 would use the slot of step 3, which
the slowest rank may not have read yet. A fifth slot would only help where not all ranks read from all, such as in a
gather.

Memory order
------------

The six things must also happen in this order for the other ranks. But a compiler and a processor may reorder the reads
and writes of a thread, because the thread itself does not notice it. Another process does: if ``posted`` becomes
visible before the slot, a reader takes old data, and if ``read`` is visible before the slot has been read, the owner
overwrites it too early.

A release store and an acquire load of the counter prevent both. But to wake a rank, a stronger order is needed
(:doc:`wait-without-wasting`), so ``shm`` uses sequential consistency, the default of C++. The loads are in
``Reached``:

.. listing:: extension/shm_collectives/src/step.hpp
   :part: counter

Do not rely on a test of results to find a wrong order. On x86-64, the processor keeps the writes of a thread in
order, so if the compiler does, too, a program that orders nothing can pass there and fail on aarch64. Justify
the order in a comment, and run ranks as threads under ThreadSanitizer (:doc:`ship-it`).

A model of the protocol
-----------------------

Even in the right memory order, the protocol itself can have a gap. Tests try a few orders of events out of millions. A
model tries all of them, but for a small case: here two ranks with four steps, and two slots each, so that the third
step already reuses one. In the model, each action is visible to all ranks at once, so it checks the protocol and not
the memory order.

A program lists a rank's actions: ``free``, ``write`` and ``post`` are the first three of a step, and ``read`` stands
for the others:

.. listing:: gallery/communicate/shared/step_protocol_model.py
   :part: programs
   :end-before: def reads_in

``reads_in`` replaces each ``read`` with the last three actions of a step: wait until each source rank has posted,
look at the slot of each, and count the step as read.

``explore`` tries all orders. It begins where no rank has acted, and in each state that it reaches, every rank that
need not wait takes its next action:

.. admonition:: ``explore``
   :collapsible: closed

   .. listing:: gallery/communicate/shared/step_protocol_model.py
      :part: explore

``explore`` raises ``Wrong`` if a rank writes a slot that another rank still needs, or reads another step than
the one that it expects. It also does so in a deadlock, a state in which no rank can act, although not all have ended.
Here rank 0 gathers from rank 1, which only posts, and both post one step ahead:
"""

from shared.step_protocol_model import Wrong, explore, one_after_another, one_ahead, reads_in

gathers = reads_in(one_ahead(4), sources=[1])
sends = reads_in(one_ahead(4), sources=[])
print(explore([gathers, sends]), "states, nothing wrong")

# %%
# Bug: a slot that is free one step too early
# -------------------------------------------
#
# Would the model find a gap? The slot of step 6 is free when all ranks have read step 2. Steps count from 0, so each
# rank must by then have read three steps, not two. This function computes that number, and it is easy to forget its
# ``+ 1``:
#
# .. listing:: extension/shm_collectives/src/step.hpp
#    :start-at: static uint64_t reads_before(uint64_t step) {
#    :end-before: Reached free() const {
#
# ``too_early=1`` removes the ``+ 1`` in the model, so a slot counts as free before every rank has read the step in
# it:

try:
    explore([gathers, sends], too_early=1)
except Wrong as error:
    print(error)

# %%
# The model finds the bug in milliseconds. Tests of an all-reduce cannot find it: all ranks read from all, so with
# four slots, a slot is free before its rank checks. The same is true of the model's two slots, if each rank reads
# a step before it writes the next one:

symmetric = reads_in(one_after_another(4), sources=[0, 1])
print(explore([symmetric, symmetric], too_early=1), "states, nothing wrong")

# %%
# Such a bug stays hidden until ranks run a collective of several parts in which not all read from all, such as a long
# gather or broadcast. Then a result is wrong once in a while, mostly without an error. The fix is the ``+ 1``. To
# catch the next such bug, change the model before you change the protocol.
#
# Exercise
# --------
#
# Predict what happens to ranks with a single slot, if they post one step ahead and if they do not. Then ask the model:
# ``explore`` has the parameter ``slots``.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    With one slot, a rank that posts one step ahead waits forever: before it reads, it waits for
#    its only slot, which is not free until it has read. For the others, one slot is enough.
#
#    .. listing:: gallery/communicate/step_by_step/one_slot.py
#
# The solution prints:

from launcher import run_program

answer = run_program("step_by_step/one_slot.py")

# %%
# .. admonition:: After this page you have decided
#
#    - in which order a rank writes, posts, reads and frees;
#    - how many slots a rank has, and so how far it can be ahead;
#    - which memory order each counter needs, with the reason in a comment;
#    - which small case a model checks before you change the protocol.
#
# Not run here: a processor other than x86-64, and other numbers of slots in ``shm``.

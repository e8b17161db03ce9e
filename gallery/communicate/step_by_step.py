"""
Step by step
============

After this page you can let several ranks write and read the same memory in steps, and check
with a model that no order of events breaks the protocol.

All ranks see the same memory now. The next decision is the order in which they may write and
read it. ``shm`` has one answer for all collectives: the *step*.

.. diagram:: communicate/step_by_step/diagram

One step
--------

Each rank has four *slots* in the shared memory, and a counter ``read``, the number of steps that
it has finished reading. Each slot has a counter ``posted``, the number of its step plus 1. It
shares a cache line with the first 48 bytes of data, so small data needs no line of its own.
A rank writes only its own slots and its own counters. In each step it does six things:

1. It waits until its slot is free: every rank has read what the slot held before.
2. It writes to the slot.
3. It posts the step: it sets ``posted`` of the slot.
4. It waits for the ranks whose data it needs.
5. It reads their slots.
6. It is done: it increases ``read``.

The class ``Step`` has one method for each of these:

.. listing:: extension/shm_collectives/src/step.hpp
   :part: step

``Reached`` contains the counters that a rank waits for, and the value that they must reach. The
``note`` of a slot says which operation it is, and :doc:`build-a-collective` shows its purpose.
``ring_others`` wakes the ranks that sleep. :doc:`wait-without-wasting` explains this and ``Bell``.

Step number ``n`` uses slot ``n % 4``. A rank can therefore be at most four steps ahead of the
slowest rank. Every rank takes every step, also in a broadcast, where only one rank has data.
The counters of all ranks then count the same steps, and no operation needs to reset them.

Memory order
------------

A compiler and a processor may change the order of two writes of one thread, because the
thread itself does not notice it. Another process does. If ``posted`` becomes visible before
the slot, a reader takes old data. Atomic operations forbid this where the protocol needs it:

.. listing:: extension/shm_collectives/src/step.hpp
   :part: post

The other half of the pair is in ``Reached``, which reads the counter of a rank:

.. listing:: extension/shm_collectives/src/step.hpp
   :part: counter

On x86-64 the processor keeps the writes of a thread in their order. A program that orders
nothing can pass all its tests there, as long as the compiler leaves the order alone, and
fail on aarch64. Therefore justify the order in a comment, next to the atomic operation. Do not
rely on a test to find a wrong order.

A model of the protocol
-----------------------

Tests try a few orders of events out of millions. A model tries all of them. This one has
ranks with two counters and two slots, and programs of the actions above. A rank posts its steps
in order, so one counter ``posted`` for a rank says as much as one for each slot:

.. listing:: gallery/communicate/shared/step_protocol_model.py
   :part: programs

A rank that posts *one step ahead* posts each step before it reads the one before. Most
collectives of ``shm`` do this, and :doc:`build-a-collective` shows their code.

``explore`` begins with the state in which nothing has happened. It lets each rank take its
next action, if it need not wait, and goes on from every state that it has not seen:

.. listing:: gallery/communicate/shared/step_protocol_model.py
   :part: explore

An action raises ``Wrong`` if it breaks the protocol. A rank must not write a slot that
another rank still needs, and must not read any step but the one that it expects. A deadlock is a
state in which nobody can act. Here rank 0 gathers from rank 1, and both post one step ahead:
"""

from shared.step_protocol_model import Wrong, explore, one_after_another, one_ahead, reads_in

gathers = reads_in(one_ahead(4), readers=[1])
sends = reads_in(one_ahead(4), readers=[])
print(explore([gathers, sends]), "states, nothing wrong")

# %%
# A mistake: the slot that is free one step too early
# ---------------------------------------------------
#
# It is easy to be off by one in ``reads_before``. Suppose that a slot counts as free although a
# rank has not yet read the step in it:

try:
    explore([gathers, sends], too_early=1)
except Wrong as error:
    print(error)

# %%
# The model finds it in milliseconds. Tests often do not: in an all-reduce, every rank reads
# the data of every rank, and nobody gets far enough ahead to fill four slots. If each rank reads
# a step before it writes the next one, the model finds nothing wrong either:

symmetric = reads_in(one_after_another(4), readers=[0, 1])
print(explore([symmetric, symmetric], too_early=1), "states, nothing wrong")

# %%
# The mistake stays hidden until somebody adds a gather. Then the result is wrong once in a while,
# and no rank gets an error. When you change a protocol, change the model first.
#
# Exercise
# --------
#
# A rank of ``shm`` has four slots. Predict what one slot does to ranks that post one step ahead,
# and to ranks that do not. Then ask the model: ``explore`` has the parameter ``slots``.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    With one slot, a rank that posts one step ahead waits for ever. Before it reads, it waits
#    until its only slot is free, but the slot is not free until this rank has read.
#
#    .. listing:: gallery/communicate/step_by_step/one_slot.py
#
# The build ran the solution, too:

from launcher import run_program

answer = run_program("step_by_step/one_slot.py")

# %%
# The protocol orders the writes and reads of a step. It leaves open what a rank writes, and what
# it does with what it reads. :doc:`build-a-collective` decides this for two collectives.

"""
The other collectives and messages
==================================

``shm`` needs no new protocol for the other operations. For each collective, this page says what a rank
writes and what it reads, and then it gives messages a ring of slots of their own.

.. diagram:: communicate/the_other_operations/diagram

What a rank writes and reads
----------------------------

In :doc:`build-a-collective`, the all-reduce of a small tensor is a call of ``run`` with two functions: what
a rank writes into its slot, and what it reads from the slots. The other collectives differ only in these:

.. list-table::
   :header-rows: 1

   * - operation
     - a rank writes
     - a rank reads
   * - ``broadcast``
     - the root: its tensor
     - the slot of the root
   * - ``scatter``
     - the root: a block for each rank
     - its own block in the slot of the root
   * - ``all_gather``
     - its tensor
     - all slots
   * - ``gather``
     - its tensor
     - the root: all slots
   * - ``reduce_scatter``
     - a block for each other rank
     - its own block in all other slots
   * - ``all_to_all``
     - a block for each other rank
     - its own block in all other slots
   * - ``barrier``
     - nothing
     - nothing

A slot contains data for all ranks, or a *block* for each rank. ``scatter`` shows both the root and the
blocks:

.. listing:: extension/shm_collectives/src/collectives.hpp
   :part: scatter

``reduce`` is an all-reduce in which only the root has an output. The second argument of ``run`` says for
whom a rank waits after the first step: for everyone, or for one rank, such as the root. What all
collectives have in common, such as the comparison of the notes, is in ``run``.

Different sizes in all_to_all
-----------------------------

The note of an operation contains the size of its tensor, so different sizes are an error on all ranks. An
all-to-all needs more, because each pair of ranks may exchange a different number of bytes. So each block
begins with the number of bytes that the writing rank sends to the reading rank, and the number that it
expects from there. In the next worker, rank 0 sends two rows to rank 1, which expects one:

.. listing:: gallery/communicate/the_other_operations/messages.py
   :part: sizes

Rings for messages
------------------

A message concerns two ranks, so it takes no step of the collectives. Each pair of ranks has a ring of slots
in each direction. For each message that comes in, ``shm`` looks for the first receive that fits:

.. listing:: extension/shm_collectives/src/messages.hpp
   :part: first-receive

If receives wait for the sending rank, but none with this tag, the message is copied and kept, so that a
later one can overtake it. ``shm`` keeps 64 MiB of each sender, and the message that exceeds them. The next
message stays in the ring, and its sender waits until the program receives it or one that is kept. Without
such a limit, a program that forgets a receive would fill the memory:

.. listing:: gallery/communicate/the_other_operations/messages.py
   :part: messages
"""

from launcher import launch

output = launch("the_other_operations/messages.py", ranks=2)

# %%
# The message with tag 6 has overtaken the one with tag 5 that was sent before it. A send ends when a receive
# has taken its message, or has begun to wait for another one: then the message is kept.
#
# Exercise
# --------
#
# Rank 0 sends three messages of 40 MiB with tag 5, then a short one with tag 6. Rank 1 first receives the one
# with tag 6. Predict what happens, and which of the sends end.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The first two long messages are kept: the first has less than 64 MiB, and the second exceeds them. The
#    third one stays in the ring, and with it the short one behind it, so the receive of tag 6 does not end.
#    When rank 1 receives a message with tag 5, there is room again. The first two sends end at once.
#
#    .. listing:: gallery/communicate/the_other_operations/too_many_messages.py
#       :part: solution
#
# Two ranks run the solution:

output = launch("the_other_operations/too_many_messages.py", ranks=2)

# %%
# A receive that no rank answers would wait for ever. :doc:`lost-ranks` shows how it ends when the other rank
# is gone.

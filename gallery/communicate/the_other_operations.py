"""
The other operations
====================

After this page you can build the other collectives from the same steps, and match messages with
their receives. You can also handle the roots and sizes that PyTorch passes.

``c10d::Backend`` has more than twenty methods that communicate, and ``allreduce`` is one of them.
``shm`` needs no new protocol for the other collectives. Six functions say what a rank writes
and reads in them.

.. diagram:: communicate/the_other_operations/diagram

What a rank writes and reads
----------------------------

In :doc:`build-a-collective`, the all-reduce of a small tensor is a call of ``run`` with two
functions: what a rank writes into its slot, and what it reads from the slots. The other
collectives differ in these two functions:

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

A slot contains data for all ranks, or a *block* for each rank. ``scatter`` shows both the root
and the blocks:

.. listing:: extension/shm_collectives/src/collectives.hpp
   :part: scatter

``reduce`` is an all-reduce in which only the root has an output. An argument of
``run`` says for whom a rank waits after the first step: for everyone, or for one rank, such
as the root. The rest is the same for all collectives: the comparison of the notes, the errors,
and the asynchronous work.

Ranks of the group and of the world
-----------------------------------

``opts.rootRank`` is a rank of the group. The arguments ``src`` and ``dst`` of Python are ranks of
the world, and PyTorch converts them. ``group_src`` and ``group_dst`` are ranks of the group. In
the next worker, ranks 1 and 2 of the world are ranks 0 and 1 of a group. The numbers that they
scatter name both ranks: rank 1 sends 102 to rank 2.

.. listing:: gallery/communicate/the_other_operations/roots_and_messages.py
   :part: roots

Tags and sources
----------------

A message has a *tag*, and the rank at its other end is a rank of the group, too. Each pair of ranks
has a ring of slots in each direction. So a message takes no step of the collectives. For each
message that comes in, ``shm`` looks for the first receive that fits:

.. listing:: extension/shm_collectives/src/messages.hpp
   :part: first-receive

If receives wait for the sending rank, but none with this tag, the message is copied and kept. A
later message can then overtake it. ``shm`` keeps 64 MiB of each sender, and the message that
exceeds them. The next message stays in the ring, so its sender waits until the program receives
it or one that is kept. A receive for a message behind it waits as long. Messages with the same
tag stay in order. ``recvAnysource`` takes a message of any rank, and ``Work::sourceRank``
returns that rank:

.. listing:: gallery/communicate/the_other_operations/roots_and_messages.py
   :part: messages

Calls that belong together
--------------------------

A send of ``shm`` does not end before the other rank calls a receive. If all ranks send to their
neighbours first and wait, nobody receives. ``batch_isend_irecv`` begins all messages before the
program waits. A backend can return true from ``supportsCoalescing``. Then it gets the messages
between ``startCoalescing`` and ``endCoalescing``, and returns one ``Work`` for all. But PyTorch
then also holds back an ``all_reduce`` that another thread calls in the group, which no sample
shows. So ``shm`` returns a work for each message:

.. listing:: gallery/communicate/the_other_operations/roots_and_messages.py
   :part: batch

Sizes that differ
-----------------

The note of an operation contains the size of its tensor. Different sizes are therefore an error
on all ranks, as :doc:`lost-ranks` shows. An all-to-all needs more: each pair of ranks
may exchange a different number of bytes. So each block begins with the number of bytes that the
writing rank sends to the reading rank, and the number that it expects from there. At the end of the
worker, rank 0 sends two rows to rank 1, which expects one:

.. listing:: gallery/communicate/the_other_operations/roots_and_messages.py
   :part: sizes
"""

from launcher import launch

output = launch("the_other_operations/roots_and_messages.py", ranks=3)

# %%
# ``src=1`` and ``group_src=1`` are different ranks. A program that fills in the options itself and
# writes the rank of the world gets an error only if the group has no such rank. In the group of
# the worker, a root of 1 would be rank 2 of the world, without an error.
#
# A mistake: to wait for the send before the receive
# --------------------------------------------------
#
# Each rank passes a number to its right neighbour, and gets one from its left neighbour. The
# first way is to wait for each message before the next one begins. ``dist.send`` followed by
# ``dist.recv`` does the same:
#
# .. listing:: gallery/communicate/the_other_operations/wait_for_each_message.py
#    :part: mistake
#
# If nobody receives, ``dist.send`` fails only after the timeout of the group, by default 30
# minutes. The function waits one second for each message, with the timeout of ``wait`` from
# :doc:`timeouts`. The cure is a batch:
#
# .. listing:: gallery/communicate/the_other_operations/wait_for_each_message.py
#    :part: cure
#
# Three ranks use both functions with the same messages:
#
# .. listing:: gallery/communicate/the_other_operations/wait_for_each_message.py
#    :part: use

output = launch("the_other_operations/wait_for_each_message.py", ranks=3)

# %%
# With the first function, all ranks send and none of them receives. Each rank waits in its own
# send, and its receive never begins. With the batch, each rank begins its receive before it waits.
# Two ranks do not show the mistake if one of them only sends and the other only receives.
#
# Exercise
# --------
#
# The all-gather of ``shm`` takes tensors of one size. Suppose that each rank has a tensor of
# a different size, and that all ranks know all sizes. Write a function that gathers these tensors
# with one collective.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    An all-gather is an all-to-all in which a rank sends the same tensor to everyone. The pieces
#    of an all-to-all may have any size.
#
#    .. listing:: gallery/communicate/the_other_operations/gather_other_sizes.py
#       :part: solution
#
#    It has a price: a rank writes its tensor once for each other rank, and not once for all.
#
# Two ranks try ``all_gather`` first, and then the solution:

output = launch("the_other_operations/gather_other_sizes.py", ranks=2)

# %%
# The steps and the messages move bytes, but a program passes tensors.
# :doc:`tensors-of-every-kind` shows how the tensors of a call become bytes, and how
# bytes become tensors again.

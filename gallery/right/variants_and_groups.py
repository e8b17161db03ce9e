"""
Method variants, groups and messages
====================================

PyTorch calls one operation through several methods, numbers the ranks of each group anew, and gives messages tags. A
backend that has only ``allgather`` fails when FSDP2 calls ``all_gather_single``, and one that takes a rank of the
world for a rank of the group sends to the wrong process. This page shows how the frame turns all this into ten kinds
of collectives, ``send`` and ``receive``, and ranks from 0 to ``size() - 1``, so that your transport sees nothing
else.

.. diagram:: right/variants_and_groups/diagram

Many methods, ten kinds
-----------------------

``c10d::Backend`` has a method for each form of an operation. An all-gather, for example, is ``allgather`` with a list
of tensors, ``_allgather_base`` with one large tensor, and ``allgather_into_tensor_coalesced`` as several calls at once.
The transport does not see the difference:

.. admonition:: For reference: the methods of each kind
   :collapsible: closed

   .. list-table::
      :header-rows: 1

      * - kind
        - methods of the backend
      * - ``barrier``
        - ``barrier``
      * - ``monitored_barrier``
        - ``monitoredBarrier``
      * - ``broadcast``
        - ``broadcast``
      * - ``all_reduce``
        - ``allreduce``, ``allreduce_coalesced``
      * - ``reduce``
        - ``reduce``
      * - ``all_gather``
        - ``allgather``, ``_allgather_base``, ``allgather_coalesced``, ``allgather_into_tensor_coalesced``
      * - ``gather``
        - ``gather``, and since PyTorch 2.14 ``gather_into_tensor``
      * - ``scatter``
        - ``scatter``
      * - ``reduce_scatter``
        - ``reduce_scatter``, ``_reduce_scatter_base``, ``reduce_scatter_tensor_coalesced``
      * - ``all_to_all``
        - ``alltoall``, ``alltoall_base``
      * - ``send``, ``receive``
        - ``send``, ``recv``, ``recvAnysource``

   Newer methods of PyTorch such as ``all_gather_single`` call the methods of this table by default.
   :doc:`/tutorial/every-operation` lists which Python function calls which of them.

The transport needs one piece of the output for each rank. So the methods ``allgather`` and ``_allgather_base`` differ
only in how they get these pieces. Their listing uses these names:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``run``
     - makes the ``Arguments`` of a call of this kind, lets the function fill them, and submits the call
   * - ``single``
     - returns the only element of a list, and refuses any other list
   * - ``outputs``, ``pieces``
     - return one piece for each rank, all as large as ``in``: from a list of tensors, or cut from one tensor
   * - ``set_size``
     - writes the size into the note, which all ranks compare

.. listing:: extension/frame/c10d_frame/include/frame/backend.hpp
   :part: all-gathers

A *coalesced* method gets several tensors and returns one ``Work``. In Python, ``_coalescing_manager`` turns several
calls of ``all_reduce``, ``all_gather_single`` or ``reduce_scatter_single`` into one such call. The frame runs one
operation for each tensor, and the work is complete when the last one ends.

If one rank found a wrong tensor after it had begun some of these operations, the other ranks would wait for the rest.
So ``together`` checks all tensors before the first operation begins:

.. listing:: extension/frame/c10d_frame/include/frame/backend.hpp
   :part: coalesced

The worker calls three of the variants. Rank 0 passes the numbers 10 and 20, and rank 1 passes 11 and 21:

.. listing:: gallery/right/variants_and_groups/variants.py
   :part: variants
"""

from launcher import launch

launch("variants_and_groups/variants.py", ranks=2)

# %%
# The list and the one tensor have the same numbers in the same order. The coalesced call runs two all-gathers, one for
# each position, so each of its results contains one number of each rank.
#
# Ranks of the group and of the world
# -----------------------------------
#
# A transport knows only the ranks of its own group, but a program mostly uses those of the *world*, the group of all
# ranks. In Python, the arguments ``src`` and ``dst`` are ranks of the world, and PyTorch converts them before it fills
# in ``opts.rootRank``; ``group_src`` and ``group_dst`` are ranks of the group.
#
# In the next worker, ranks 1 and 2 of the world are ranks 0 and 1 of a group. First rank 1 of the world scatters,
# then rank 2. Each number names its sender and its receiver by their ranks in the world, such as 102 from rank 1 to
# rank 2. Then both ranks call ``broadcast`` of the group directly, with 2 as ``rootRank``, which PyTorch does not
# convert:
#
# .. admonition:: Roots of a group
#    :collapsible: closed
#
#    .. listing:: gallery/right/variants_and_groups/roots.py
#       :part: roots

launch("variants_and_groups/roots.py", ranks=3)

# %%
# With ``src=1``, the numbers come from rank 1, and with ``group_src=1`` from rank 2. The broadcast fails because the
# group has no rank 2. In a larger group, another rank would silently become the root.
#
# The reader of a log knows only the ranks of the world, which PyTorch calls *global ranks*. So where an error names a
# rank that failed, is late or has left, the frame adds the global rank if it differs, as in ``rank 0 (global rank
# 3)``. The frame takes the global ranks from ``global_ranks_in_group`` of ``DistributedBackendOptions``. This list is
# ``[0, 2]`` for a group of ranks 0 and 2, and empty for the world, where both numbers are equal.
#
# Groups and splitting
# --------------------
#
# Each group is a backend of its own, with a rendezvous, a transport and two threads. This keeps groups
# independent: a failure in one does not reach another, and their operations run side by side.
#
# A library can often create a sub-group faster from a group that exists, as ``ncclCommSplit`` does. So
# ``split_group`` calls ``split`` of the backend if ``supportsSplitting`` returns true, and since PyTorch 2.15 it does
# so on CPUs as well. The next worker splits a group of three:
#
# .. listing:: gallery/right/variants_and_groups/split.py
#    :part: split
#
# .. admonition:: The method ``split``
#    :collapsible: closed
#
#    ``split`` of the frame only renumbers the ranks, and starts another group with ``merge``:
#
#    .. listing:: extension/frame/c10d_frame/include/frame/backend.hpp
#       :part: split

launch("variants_and_groups/split.py", ranks=3)

# %%
# Each sum is that of one new group: ranks 0 and 2 of the world both have 0 + 2, and rank 1, alone in its group, has
# its own number.
#
# Tags and sources
# ----------------
#
# With tags, a program says which message a receive is for. The first receive that waits for the sender and the tag of a
# message gets it. So a later message can overtake an earlier one with another tag, while messages of one sender with
# the same tag stay in order. ``recvAnysource``, which ``dist.recv`` without ``src`` calls, accepts any sender, and the
# work returns the sender from ``sourceRank``:
#
# .. listing:: gallery/right/variants_and_groups/messages.py
#    :part: messages

launch("variants_and_groups/messages.py", ranks=3)

# %%
# The message 20 with tag 6 has overtaken the message 10, which rank 1 sent first. The messages 10 and 30 have the
# same tag, so they have arrived in their order.
#
# Messages do not count as collectives: they have no sequence number, and run beside the collectives. A transport must
# therefore keep messages and collectives apart, for example with other keys, tags or connections.
#
# Bug: waiting for the send before the receive
# --------------------------------------------
#
# A program can hang if a send ends only when its message has been received. In the next program, each rank passes a
# number to its right neighbour, and gets one from its left neighbour. The first function waits for each message before
# the next one starts, as ``dist.send`` followed by ``dist.recv`` does:
#
# .. listing:: gallery/right/variants_and_groups/wait_for_each_message.py
#    :part: mistake
#
# If all ranks send to their neighbour and wait, no rank receives. The fix is a batch, because
# ``batch_isend_irecv`` starts all messages before the program waits:
#
# .. listing:: gallery/right/variants_and_groups/wait_for_each_message.py
#    :part: cure
#
# The batch returns two works, because ``supportsCoalescing`` of the frame is false. For a library with group
# calls, such as NCCL, return true, and launch the messages together, as :doc:`/accelerators/five-steps`
# shows.
#
# Three ranks use both functions with the same messages. ``one_after_another`` waits for one second at most, with
# the timeout of ``wait`` from :doc:`timeouts-and-dead-ranks`:
#
# .. admonition:: The call of both functions
#    :collapsible: closed
#
#    .. listing:: gallery/right/variants_and_groups/wait_for_each_message.py
#       :part: use

launch("variants_and_groups/wait_for_each_message.py", ranks=3)

# %%
# With ``one_after_another``, each ``wait`` for a send times out, so every rank keeps the -1 it began with. A backend
# whose sends end as soon as the data is copied hides the bug, until a message is too large for
# the buffer. In ``store``, a send ends when its message has been received, so a test finds the bug with a
# message of any size.
#
# Exercise
# --------
#
# ``all_gather`` takes tensors of one size. Suppose that the tensors of the ranks differ in size, and
# that all ranks know all sizes. Write a function that gathers these tensors with one collective.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    An all-gather is an all-to-all in which a rank sends the same tensor to everyone. The pieces of an
#    all-to-all may have any size.
#
#    .. listing:: gallery/right/variants_and_groups/gather_other_sizes.py
#       :part: solution
#
#    The price is that a rank writes its tensor once for each other rank, and not once for all.
#
# Two ranks try ``all_gather`` first, and then the solution:

launch("variants_and_groups/gather_other_sizes.py", ranks=2)

# %%
# On each rank, the first line is the error of ``all_gather``, and the second shows the tensors of both ranks, which
# one all-to-all has delivered.
#
# .. admonition:: After this page you have decided
#
#    - which methods you override, and which you leave to PyTorch's defaults;
#    - whether a coalesced call runs one operation for each tensor, or one call of your library;
#    - whether your library can split a group;
#    - what keeps messages and collectives apart;
#    - whether a send ends when its data is copied, or only when it has been received.
#
# Not run here: NCCL and its group calls.

"""
The other collectives, messages and dead ranks
==============================================

With only two collectives, ``shm`` runs few programs, and if a rank dies, the others wait until the deadline. So
this page adds the other collectives, which differ only in what a rank writes and reads. It also adds messages between
two ranks, and an error that all other ranks raise when one of them dies.

.. diagram:: communicate/the_other_operations/diagram

What a rank writes and reads
----------------------------

In :doc:`build-a-collective`, the all-reduce of a small tensor passes two functions to ``run``: one writes
the slot of the rank, and the other reads the slots of all. To add a collective, replace these two:

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

If each rank gets other data, the writer divides its slot into *blocks*, one for each rank, as in ``scatter``:

.. listing:: extension/shm_collectives/src/collectives.hpp
   :part: scatter

In a scatter, a rank reads only the slot of the root. So after the first step it waits only for the root, which
``scatter`` passes to ``run`` as ``op.note.root``. A collective in which a rank reads all slots waits for everyone.
``reduce`` is not in the table, because it is an all-reduce in which only the root has an output.

Detect another operation or size
--------------------------------

If ranks call different operations, or pass different sizes, all of them must get an error, because otherwise one would
read bytes that another has not written. Therefore each slot contains a note with the operation, its number, size,
dtype, ``ReduceOp`` and root, and in the first step of a collective every rank compares the notes of all.

The comparison is part of every call, so it must be cheap: a digest of the note, 8 bytes long, is in the cache line
of the counter, which is read anyway. A rank reads the notes themselves only if the digests differ:

.. admonition:: The comparison
   :collapsible: closed

   .. listing:: extension/shm_collectives/src/step.hpp
      :part: compare

Different sizes in all_to_all
-----------------------------

In an all-to-all, the note is not enough, because each pair of ranks may exchange a different number of bytes. So each
block starts with two sizes: how many bytes the writer sends to this reader, and how many it expects back.

In the next worker, rank 0 sends two rows to rank 1, which expects one:

.. listing:: gallery/communicate/the_other_operations/sizes.py
   :part: sizes
"""

from launcher import launch, run_program

launch("the_other_operations/sizes.py", ranks=2)

# %%
# Both ranks raise the same error, because both compare all of these sizes.
#
# Rings for messages
# ------------------
#
# If a message took a step of the collectives, all other ranks would have to take it too. Therefore each pair of ranks
# has a ring of four slots in each direction.
#
# A program may receive messages in another order than the one in which they arrive. So for each message, ``shm`` looks
# for the first waiting receive that accepts its sender and its tag:
#
# .. listing:: extension/frame/c10d_frame/include/frame/receives.hpp
#    :part: first-receive
#
# A receive may wait for a message that is behind others in the ring. So that this message can overtake them, ``shm``
# copies the messages before it out of the ring, and keeps them for later receives.
#
# Without a limit, a program that forgets a receive would fill the memory. Therefore, once ``shm`` keeps 64 MiB or
# more from a sender, the next message stays in the ring. Its sender waits until the program receives that message,
# or enough of the kept ones.
#
# In the next worker, rank 0 sends three messages, and rank 1 receives them in another order:
#
# .. listing:: gallery/communicate/the_other_operations/messages.py
#    :part: messages

output = launch("the_other_operations/messages.py", ranks=2)

# %%
# The message with tag 6 overtakes the first one with tag 5, which is kept meanwhile. A send ends when a receive has
# taken its message, or when the message is kept.
#
# Dead ranks
# ----------
#
# When a rank that shares memory with others dies, no connection closes: the memory stays, and the counter of
# the rank stands still. So ``shm`` asks the kernel, and all ranks raise an error with the same reason:
#
# .. diagram:: communicate/the_other_operations/one_rank_dies
#
# So that an error names the right rank, the test looks only at the ranks whose counters the step still waits for.
# :doc:`/right/timeouts-and-dead-ranks` explains when the frame asks for it:
#
# .. listing:: extension/shm_collectives/src/others.hpp
#    :part: lost
#
# A rank that destroys the group sets the flag ``left`` in the shared memory. A rank that is killed cannot do that, so
# ``ended`` tests the *pidfd* of the rank, a descriptor of its process that becomes readable when the process has ended.
#
# Give all ranks the same reason
# ------------------------------
#
# After a failure, the group is broken for all ranks, although only one of them may know why. So the first rank that
# detects the failure writes the reason into the shared memory, and wakes the others:
#
# .. admonition:: ``fail``
#    :collapsible: closed
#
#    .. listing:: extension/shm_collectives/src/memory.hpp
#       :part: fail
#
#    Several ranks may detect failures at once, and the atomic exchange lets exactly one of them write. The others
#    must not read half a sentence, so they wait for ``explained``. If the writer is killed before that, they report
#    its death instead.
#
# The next program tries six cases: rank 2 is killed, leaves the group, aborts it, calls another operation, passes
# another size, or is killed after its last operation:
#
# .. admonition:: The six ways
#    :collapsible: closed
#
#    The program starts the ranks itself, because ``torchrun`` would stop all of them when the first one dies:
#
#    .. listing:: gallery/communicate/the_other_operations/lost_ranks.py
#       :part: ways
#
#    .. listing:: gallery/communicate/the_other_operations/lost_ranks.py
#       :part: show

output = run_program("the_other_operations/lost_ranks.py")

# sphinx_gallery_start_ignore
launch("the_other_operations/errors.py", ranks=2, show=False)
# sphinx_gallery_end_ignore

# %%
# In each of the first five cases, all errors give the same reason: what rank 2 has done, or how its call differs
# from that of rank 0. Where rank 2 is alive and made a different call, it raises the error too. In the sixth case
# there is no error, because rank 2 had done its part before it was killed.
#
# Bug: a wait that looks only at the counter
# ------------------------------------------
#
# Why does each wait have to test more than the counter? The shortest wait is a loop, which is right as long as the
# other process posts:
#
# .. listing:: gallery/communicate/the_other_operations/endless_wait.py
#    :part: mistake
#
# The fix also tests the process and the time. Once the process has ended, the loop reads the counter again, because
# the process may have posted before its end:
#
# .. listing:: gallery/communicate/the_other_operations/endless_wait.py
#    :part: cure
#
# In the program, the other process posts, is killed, or is stopped with ``SIGSTOP``. An alarm ends the
# first loop after three seconds:

output = run_program("the_other_operations/endless_wait.py")

# %%
# ``wait_for_counter`` never notices that the process was killed. ``wait_for_process`` raises one error for the killed
# process and another for the stopped one, so the caller can tell them apart.
#
# With this, ``shm`` is complete: it has the other collectives and messages, and if a rank dies, the others raise the
# same error instead of waiting for the deadline. :doc:`/communicate/measure` compares its times with those of gloo.
#
# Exercise
# --------
#
# Rank 0 sends three messages of 40 MiB with tag 5, then a short one with tag 6. Rank 1 first receives the
# one with tag 6. What happens, and which of the sends end?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The first long message is below the limit of 64 MiB, and the second exceeds it, so both are kept and
#    their sends end at once. The third fills the ring with its first parts, and the short one waits behind it
#    at the sender, so the receive of tag 6 does not end. When rank 1 receives a message with tag 5, there is
#    room again.
#
#    .. listing:: gallery/communicate/the_other_operations/too_many_messages.py
#       :part: solution
#
# Two ranks run the solution:

output = launch("the_other_operations/too_many_messages.py", ranks=2)

# %%
# The two sends that have ended are those whose messages ``shm`` keeps. The last line shows that one receive with
# tag 5 makes enough room for the short message.
#
# .. admonition:: After this page you have decided
#
#    - what a rank writes and reads in each collective, and for whom it waits;
#    - in which operations ranks must also compare the sizes of each pair;
#    - how many bytes of unexpected messages a rank keeps, and what the sender then does;
#    - how a rank learns that another one is dead, without a connection;
#    - who writes the reason of a failure, so that all ranks report the same.

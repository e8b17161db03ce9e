"""
Dead ranks and pidfd
====================

When a rank that shares memory with others dies, no connection closes: the memory stays, and the counter of
the rank stands still. On this page, ``shm`` detects a dead rank within about 50 milliseconds, because it
asks the kernel, and all ranks raise an error with the same reason.

:doc:`/right/timeouts-and-dead-ranks` explains when the frame asks a transport whether a rank can still
arrive. Here is how a transport for the ranks of one host can answer.

.. diagram:: communicate/lost_ranks/diagram

Detect a dead rank
------------------

So that an error names the right rank, ``shm`` tests only the ranks whose counters the step still waits
for:

.. listing:: extension/shm_collectives/src/others.hpp
   :part: lost

A rank that destroys the group sets the flag ``left`` in the shared memory. A rank that is killed cannot
do that, so ``ended`` asks the kernel through a *pidfd*, a file descriptor for one process. A PID would not
be enough, because Linux may give the PID of a dead process to a new one, and the rank would seem to be
alive. Each of these questions is a system call, so the frame asks only about every 50 milliseconds.

A rank may post its last step and then end, which is no failure. Therefore the frame tests the counter once
more after these two tests, and the others get no error for a rank that they no longer wait for.

Detect another operation or size
--------------------------------

A rank that is alive can still break the group, if it calls another operation or passes another size.
Therefore each slot contains a note with the operation, its number, size, dtype, ``ReduceOp`` and root, and
in the first step of a collective every rank compares the notes of all. The comparison is part of every
call, so it must be cheap: a digest of the note, 8 bytes long, is in the cache line of the counter, which
is read anyway. A rank reads the notes themselves only if the digests differ:

.. listing:: extension/shm_collectives/src/step.hpp
   :part: compare

Give all ranks the same reason
------------------------------

After a failure, the group is broken for all ranks, although only one of them may know why. The rank that
detects the failure first writes the reason into the shared memory, and wakes the others:

.. listing:: extension/shm_collectives/src/memory.hpp
   :part: fail

Several ranks may detect failures at once, and the atomic exchange lets exactly one of them write. The
others must not read half a sentence, so they wait for ``explained``. If the writer is killed before that,
they report its death instead.

In the next program, rank 2 misbehaves or dies in six ways. The program starts the ranks itself, because
``torchrun`` would stop all of them when the first one dies:

.. listing:: gallery/communicate/lost_ranks/lost_ranks.py
   :part: ways

So that two runs print the same, the PID of a dead process is left out:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/communicate/lost_ranks/lost_ranks.py
      :part: show
"""

from launcher import launch, run_program

output = run_program("lost_ranks/lost_ranks.py")

# sphinx_gallery_start_ignore
launch("lost_ranks/errors.py", ranks=2, show=False)
# sphinx_gallery_end_ignore

# %%
# In each of the first five cases, all errors give the same reason. Where rank 2 is alive and made a
# different call, it raises the error too. In the last case there is no error, because rank 2 had done its
# part before it was killed.
#
# Bug: a wait that looks only at the counter
# ------------------------------------------
#
# The shortest wait is a loop, which is right as long as the other process posts:
#
# .. listing:: gallery/communicate/lost_ranks/endless_wait.py
#    :part: mistake
#
# The fix also tests the process and the time, and once the process has ended, the counter again:
#
# .. listing:: gallery/communicate/lost_ranks/endless_wait.py
#    :part: cure
#
# In the program, the other process posts, is killed, or is stopped with ``SIGSTOP``. An alarm ends the
# first loop after three seconds:

output = run_program("lost_ranks/endless_wait.py")

# %%
# A pidfd becomes readable when its process ends. A stopped process has not ended, so only the deadline ends
# that wait.
#
# With this, ``shm`` is complete: its ranks exchange tensors, leave the processor to other threads while
# they wait, and fail together. :doc:`/communicate/measure` compares its times with those of gloo.

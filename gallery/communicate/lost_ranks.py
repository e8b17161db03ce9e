"""
Dead ranks and pidfd
====================

A rank that shares memory with others can die without a word: the memory stays, and its counter stands
still. This page shows how ``shm`` notices that within 50 milliseconds, and how all ranks get the same
reason.

:doc:`/right/timeouts-and-dead-ranks` has explained when the frame asks a transport whether a rank can
still arrive. This is the answer for ranks of one host.

.. diagram:: communicate/lost_ranks/diagram

Which rank is gone
------------------

A step knows the ranks that it waits for. ``lost`` tests each of them:

.. listing:: extension/shm_collectives/src/others.hpp
   :part: lost

``left`` is a flag in the shared memory, which a rank sets when it destroys the group. ``ended`` asks
the kernel through a *pidfd*, a file descriptor for one process. A PID would not do, because Linux may
give the PID of a dead process to a new one, and the rank would look alive.

The frame tests the counter once more after these two, because a rank may post its last step and then
end, which is no failure. So a rank that is killed in ``destroy_process_group`` is not noticed either:
the others wait for nothing more.

A rank with another operation
-----------------------------

A rank that runs can be lost, too, when it is at another line of the program. So each slot contains a
note: the operation, its number, size, dtype, ``ReduceOp`` and root. In the first step of a collective,
every rank compares the notes of all. To keep this cheap, there is a digest of 8 bytes in the cache line
of the counter, and a rank reads the notes only if the digests differ:

.. listing:: extension/shm_collectives/src/step.hpp
   :part: compare

The reason in the shared memory
-------------------------------

A failure breaks the group for all ranks. The rank that finds it first writes the reason into the shared
memory, and wakes the others:

.. listing:: extension/shm_collectives/src/memory.hpp
   :part: fail

The atomic exchange lets exactly one rank write, and ``explained`` tells the others that the reason is
complete. If that rank is killed in between, the others report its death instead.

The program below starts three ranks itself, because ``torchrun`` would end all ranks with the first
that dies. It loses rank 2 in six ways:

.. listing:: gallery/communicate/lost_ranks/lost_ranks.py
   :part: ways

It prints the end of each error. The message about a dead process contains its PID, which differs from
run to run:

.. listing:: gallery/communicate/lost_ranks/lost_ranks.py
   :part: show
"""

from launcher import launch, run_program

output = run_program("lost_ranks/lost_ranks.py")

# sphinx_gallery_start_ignore
launch("lost_ranks/errors.py", ranks=2, show=False)
# sphinx_gallery_end_ignore

# %%
# All ranks that raise an error give the same reason. Where rank 2 called something else, it got the
# error, too. In the last case no rank raises one, because rank 2 had done its part.
#
# Bug: a wait that looks only at the counter
# ------------------------------------------
#
# The shortest wait is a loop. This one is correct as long as the other process posts:
#
# .. listing:: gallery/communicate/lost_ranks/endless_wait.py
#    :part: mistake
#
# The fix tests the counter, the process and the time, and after the process the counter again:
#
# .. listing:: gallery/communicate/lost_ranks/endless_wait.py
#    :part: cure
#
# The program forks a process for each case. The process posts, is killed, or is stopped with
# ``SIGSTOP``. A hidden alarm ends the first loop after three seconds:

output = run_program("lost_ranks/endless_wait.py")

# %%
# A stopped process is not dead, so only the deadline ends that wait.
#
# The backend is complete: its ranks exchange tensors, wait without wasting the processor, and end
# together. :doc:`measure` compares its times with those of gloo.

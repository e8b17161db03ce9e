"""
Lost ranks
==========

After this page you can end a wait as soon as it is certain that the other rank never comes.
Your error names the rank at fault, and all ranks get the same reason.

A rank may die, leave the group, abort it, or call a different operation than the others. With
:doc:`timeouts` alone, the others wait until the deadline, and their error does not say what has
happened.

.. diagram:: communicate/lost_ranks/diagram

The reasons to give up
----------------------

A rank that waits looks for a reason to give up about every 50 milliseconds. The first is a
failure that another rank has found. The second is a rank that never comes, and the last is the
deadline, which only collectives have. ``check`` says that it is time to look for the second:

.. listing:: extension/frame/engine.hpp
   :part: reasons

The condition of the step, which :doc:`asynchronous-work` describes, knows the ranks that the step
waits for. ``lost`` tests each of them:

.. listing:: extension/shm_collectives/src/others.hpp
   :part: lost

``ended`` comes from a *pidfd*, a file descriptor of Linux for one process. Linux can give the
number of a dead process to a new one, but the pidfd still belongs to the old one. ``left`` is
a flag in the shared memory, which a rank sets when it destroys the group.

The counter is tested last, by ``advance``. A rank may post its last step and then end, and this is
no failure. If the counter were tested first, the rank could post and end between the two tests.
So a rank that is killed in ``destroy_process_group`` is not noticed either: the others wait for
nothing more.

A rank with another operation
-----------------------------

A rank that runs can be lost, too: it is at another line of the program. Each slot therefore
contains a note: the operation, its number, size, dtype, ``ReduceOp`` and root. At least in the
first step of a collective, every rank compares the notes of all ranks. Beside the counter there is
a digest of 8 bytes, so that a rank reads the notes only if they differ:

.. listing:: extension/shm_collectives/src/step.hpp
   :part: compare

One failure, all ranks
----------------------

After a failure, the counters of the ranks no longer count the same steps. One rank may have
given up in step 5 while another one still waits in it. To begin anew, all ranks would have to
agree, and one of them may be dead. So the group is broken for good, on all ranks. The first
rank that finds a failure writes the reason into the shared memory, and wakes the others:

.. listing:: extension/shm_collectives/src/memory.hpp
   :part: fail

The atomic exchange lets exactly one rank write, and ``explained`` tells the others that the reason
is complete. A rank that is killed in between has died, and the others say so.

The program below starts three ranks itself, because ``torchrun`` would end all ranks with the
first that dies. It loses rank 2 in six ways:

.. listing:: gallery/communicate/lost_ranks/lost_ranks.py
   :part: ways

It prints the end of each error. The message about a dead process contains its number, which
differs from run to run:

.. listing:: gallery/communicate/lost_ranks/lost_ranks.py
   :part: show
"""

from launcher import run_program

output = run_program("lost_ranks/lost_ranks.py")

# %%
# All ranks that raise an error give the same reason. Where rank 2 called something else, it got
# the error, too. In the last case no rank raises one, because rank 2 had done its part. A program calls ``abort`` to break a group on purpose.
#
# A mistake: a wait that looks at the counter only
# ------------------------------------------------
#
# The shortest wait is a loop. This one is correct as long as the other process posts:
#
# .. listing:: gallery/communicate/lost_ranks/endless_wait.py
#    :part: mistake
#
# The cure tests the counter, the process and the time. After the test of the process, it tests
# the counter again, like ``advance`` above:
#
# .. listing:: gallery/communicate/lost_ranks/endless_wait.py
#    :part: cure
#
# The program forks a process for each case. The process posts, is killed, or is stopped with
# ``SIGSTOP``. A hidden alarm ends the first loop after three seconds:

output = run_program("lost_ranks/endless_wait.py")

# %%
# A wait must test the process and the time. A stopped process is not dead, so only the deadline
# ends that wait.
# The end of a process ends the wait long before the deadline, which is 30 minutes by default
# in PyTorch, or 10 with NCCL.
#
# Exercise
# --------
#
# A group of three ranks reduces again and again. Rank 2 dies before its third all-reduce. Let the
# others catch this first error, destroy the group, create a group of the remaining ranks, and
# continue. Let the new group use other keys of the store than the old one.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The error names the lost rank, and is the same on all others. So they agree, without a
#    message, on who is left. ``lose_rank_2`` kills the process, and ``sum_of_ones`` is an
#    all-reduce.
#
#    .. listing:: gallery/communicate/lost_ranks/survivors.py
#       :part: solution
#
#    If two ranks die at once, the error names one of them. Then let the launcher start all ranks
#    again, as :doc:`/overview/elastic` shows.
#
# Three ranks run the solution:

output = run_program("lost_ranks/survivors.py")

# %%
# A lost rank no longer stops the others. So far, these pages have built two collectives, the
# all-gather and the all-reduce. :doc:`the-other-operations` builds the others from the same steps.

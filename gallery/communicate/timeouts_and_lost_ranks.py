"""
Timeouts and lost ranks
=======================

After this page you can end each wait of a backend: by a timeout, or as soon as it is certain
that the other rank never comes. Your error names the rank at fault, and all ranks get the same
reason.

A rank may be late, die, leave the group, abort it, or call another operation than the others.
A backend without a plan for these cases waits for ever, and does not say for whom.

.. diagram:: communicate/lost-ranks

Three timeouts
--------------

A timeout comes from one of three places. The first two limit an operation. The timeout of the
group is an argument of ``init_process_group`` and ``new_group``. From PyTorch 2.14 on, a program
can change it later with ``torch.distributed.set_timeout``. PyTorch then calls ``setTimeout`` of the
backend. The method of the base class ignores the value and prints a warning. The options of each
collective in C++ have a member ``timeout``, too. If a call sets this member, it wins:

.. literalinclude:: /../extension/shm_collectives/src/backend.cpp
   :language: cpp
   :caption: extension/shm_collectives/src/backend.cpp
   :start-after: // [timeout-of-a-call]
   :end-before: // [/timeout-of-a-call]

Few functions of ``torch.distributed`` have an argument for it. ``monitored_barrier`` is one of
them. Without the argument, it passes PyTorch's default of 30 minutes, and not the timeout of the
group. The time of an operation begins with its first step. An asynchronous operation may be
called earlier, and first waits for the operations before it.

The third timeout is the argument of ``wait``. It limits only this wait, and the operation
continues. Zero is ``kNoTimeout`` of PyTorch, and does not mean "now":

.. literalinclude:: /../extension/shm_collectives/src/work.cpp
   :language: cpp
   :caption: extension/shm_collectives/src/work.cpp
   :start-after: // [timeout-of-wait]
   :end-before: // [/timeout-of-wait]

In the next worker, rank 1 is late: it calls when rank 0 has its error. The function ``late``
lets rank 0 and then rank 1 call, and prints the errors. ``long`` is 30 minutes. PyTorch 2.13 can
change the timeout of gloo and NCCL only. There ``long`` is one second, and ``set_timeout`` does
nothing:

.. literalinclude:: /../gallery/communicate/workers/three_timeouts.py
   :language: python
   :caption: gallery/communicate/workers/three_timeouts.py
   :start-after: # [timeouts]
   :end-before: # [/timeouts]
"""

from launcher import launch

output = launch("workers/three_timeouts.py", ranks=2)

# sphinx_gallery_start_ignore
waited = "Timed out after {} ms: rank 0 has waited in all_reduce #1 of 4 bytes of Float with SUM"
for rank, text in enumerate(output):
    lines = [line.strip() for line in text.splitlines()]
    for place, ms in [(1, 2000), (3, 2000), (5, 1000), (7, 500)]:
        assert lines[place] == f"rank {rank}: " + waited.format(ms) + " for Rank 1", lines
    assert lines[-1] == "the second wait() has returned, the sum is 2.0"
assert "has not ended within the 200 ms of this wait()" in output[0]
assert "has returned" in output[1].splitlines()[-2]
# sphinx_gallery_end_ignore

# %%
# ``late`` cuts off the beginning of most messages. The first one begins with ``Backend shm:
# all_reduce #1 of 4 bytes of Float with SUM of group "1" failed on``. It names the group, the
# operation, and its number among the operations of this group.
#
# Rank 1 came later, and got the reason of rank 0. The second call in the same group failed at
# once on both ranks, with the reason of the first. The fourth case differs: only one ``wait``
# gave up. The operation ended well when rank 1 came.
#
# The reasons to give up
# ----------------------
#
# A rank that waits first spins and yields. When it is about to sleep, and then at least every 50
# milliseconds, it looks for a reason to give up. The first is a failure that another rank has
# found. The second is a rank that never comes, and the last is the deadline:
#
# .. literalinclude:: /../extension/shm_collectives/src/progress.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/progress.cpp
#    :start-after: // [reasons]
#    :end-before: // [/reasons]
#
# ``until`` is the condition of the step, as :doc:`asynchronous-work` describes it. It contains
# the ranks that the step waits for. ``lost`` tests each of them:
#
# .. literalinclude:: /../extension/shm_collectives/src/group.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/group.cpp
#    :start-after: // [lost]
#    :end-before: // [/lost]
#    :dedent: 2
#
# ``ended`` comes from a *pidfd*, a file descriptor of Linux for one process. Linux can give the
# number of a dead process to a new one, but the pidfd still belongs to the old one. ``left`` is
# a flag in the shared memory, which a rank sets when it destroys the group.
#
# The counter is tested last. A rank may post its last step and then end, and this is no failure.
# If the counter were tested first, the rank could post and end between the two tests.
#
# A rank with another operation
# -----------------------------
#
# A rank that runs can be lost, too: it is at another line of the program. Each slot therefore
# contains a note: the operation, its number, size, dtype, ``ReduceOp`` and root. At least in the
# first step of a collective, every rank compares the notes of all ranks:
#
# .. literalinclude:: /../extension/shm_collectives/src/channel.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/channel.cpp
#    :start-after: // [compare]
#    :end-before: // [/compare]
#
# One failure, all ranks
# ----------------------
#
# After a failure, the counters of the ranks no longer count the same steps. One rank may have
# given up in step 5 while another one still waits in it. To begin anew, all ranks would have to
# agree, and one of them may be dead. So the group is broken for good, on all ranks. The first
# rank that finds a failure writes the reason into the shared memory, and wakes the others:
#
# .. literalinclude:: /../extension/shm_collectives/src/group.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/group.cpp
#    :start-after: // [fail]
#    :end-before: // [/fail]
#
# The atomic exchange of 0 for 1 lets exactly one rank write. The 2 tells the others that the reason is
# complete.
#
# The program below starts three ranks itself, because ``torchrun`` would end all ranks with the
# first that dies. It loses rank 2 in five ways:
#
# .. literalinclude:: /../gallery/communicate/workers/lost_ranks.py
#    :language: python
#    :caption: gallery/communicate/workers/lost_ranks.py
#    :start-after: # [ways]
#    :end-before: # [/ways]
#
# It prints the end of each error. The message about a dead process contains its number, which
# differs from run to run:
#
# .. literalinclude:: /../gallery/communicate/workers/lost_ranks.py
#    :language: python
#    :caption: gallery/communicate/workers/lost_ranks.py
#    :start-after: # [show]
#    :end-before: # [/show]

from launcher import run_program

output = run_program("workers/lost_ranks.py")

# sphinx_gallery_start_ignore
ways = output.split("rank 2 is killed\n")[1]
for way, reason, ranks in [
    ("leaves the group", "rank 2 has died (process ...) during all_reduce #2 of 40 bytes", 2),
    ("aborts the group", "rank 2 has left the group", 2),
    ("calls another operation", "rank 2 has aborted the group", 2),
    ("has another size", "SUM, rank 2 runs broadcast #2 of 40 bytes of Float with root 0", 3),
]:
    part, ways = ways.split(f"rank 2 {way}\n")
    assert part.count(reason) == ranks == part.count("\n"), part
assert ways.count("rank 2 runs all_reduce #2 of 80 bytes") == 3 == ways.count("\n")
# sphinx_gallery_end_ignore

# %%
# All ranks that raise an error give the same reason. Where rank 2 called something else, it got
# the error, too. A program calls ``abort`` to break a group on purpose.
#
# The type of the error
# ---------------------
#
# The backend throws ``c10::DistBackendError``. In Python this is PyTorch's class for errors of
# a backend, with these base classes:

import torch
import torch.distributed as dist

for kind in dist.DistBackendError.__mro__[:4]:
    print(kind.__name__)

# sphinx_gallery_start_ignore
names = [kind.__name__ for kind in dist.DistBackendError.__mro__[:4]]
assert names == ["DistBackendError", "DistError", "RuntimeError", "Exception"]
# sphinx_gallery_end_ignore

# %%
# A program that catches ``RuntimeError`` therefore catches this one, too. A wrong argument is a
# ``ValueError`` instead. The backend finds it before it numbers the operation, and the group
# remains usable:

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm", store=dist.HashStore(), rank=0, world_size=1)
try:
    dist.all_gather([torch.ones(2)], torch.ones(3))
except ValueError as error:
    print(str(error).splitlines()[0])

# sphinx_gallery_start_ignore
    assert "takes tensors of one size, got 8 and 12 bytes" in str(error)
else:
    raise AssertionError("all_gather did not fail")
assert shm_collectives.__doc__
# sphinx_gallery_end_ignore
dist.barrier()
dist.destroy_process_group()

# %%
# A mistake: a wait that looks at the counter only
# ------------------------------------------------
#
# The shortest wait is a loop. This one is correct as long as the other process posts:
#
# .. literalinclude:: /../gallery/communicate/workers/endless_wait.py
#    :language: python
#    :caption: gallery/communicate/workers/endless_wait.py
#    :start-after: # [mistake]
#    :end-before: # [/mistake]
#
# The cure tests the counter, the process and the time. After the test of the process, it tests
# the counter again, like ``lost`` above:
#
# .. literalinclude:: /../gallery/communicate/workers/endless_wait.py
#    :language: python
#    :caption: gallery/communicate/workers/endless_wait.py
#    :start-after: # [cure]
#    :end-before: # [/cure]
#
# The program forks a process for each case. The process posts, is killed, or is stopped with
# ``SIGSTOP``. A hidden alarm ends the first loop after three seconds:

output = run_program("workers/endless_wait.py")

# sphinx_gallery_start_ignore
mistake, cure = output.split("wait_for_process\n")
assert "is killed: still waiting after 3 s" in mistake and "posts: the wait has ret" in mistake
assert "is killed: the other process has died" in cure and "posts: the wait has ret" in cure
assert "is stopped: the other process has not posted within 1 s" in cure
# sphinx_gallery_end_ignore

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
# others catch the error, destroy the group, create a group of the remaining ranks, and continue.
# Let the new group use other keys of the store than the old one.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The error names the lost rank, and is the same on all others. So they agree, without a
#    message, on who is left. ``lose_rank_2`` kills the process, and ``sum_of_ones`` is an all-reduce.
#
#    .. literalinclude:: /../gallery/communicate/workers/survivors.py
#       :language: python
#       :caption: gallery/communicate/workers/survivors.py
#       :start-after: # [solution]
#       :end-before: # [/solution]
#
#    If two ranks die at once, the error names one of them. Then let the launcher start all ranks
#    again, as :doc:`/overview/elastic` shows.
#
# Three ranks run the solution:

output = run_program("workers/survivors.py")

# sphinx_gallery_start_ignore
sums = [line.partition(": ")[2] for line in output.splitlines()]
three, two = "ranks [0, 1, 2], the sum is 3", "ranks [0, 1], the sum is 2"
assert sums == [three, three, two, two], output
# sphinx_gallery_end_ignore

# %%
# A lost rank no longer stops the others.

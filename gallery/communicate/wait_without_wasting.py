"""
Wait without wasting
====================

After this page you can choose how a rank waits, for a short time and for a long one, with
enough cores and without. You can let it sleep and never lose a wakeup.

Every collective contains a wait: a rank needs the data of the others. Nobody knows how long it
takes. The other rank may post in less than a microsecond, or load data for a minute first.

.. diagram:: communicate/wait_without_wasting/diagram

Three ways to wait
------------------

A waiting thread can do three things. It can *spin*: look again at once. It can *yield*: let
another thread have the core, and look again afterwards. It can *sleep*: the kernel gives it no
core until somebody wakes it. Two processes of the next program take turns to increase a number. A
process that must wait for its turn does so in one of these ways:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/communicate/wait_without_wasting/ways_to_wait.py
      :part: ways

``futex_wait`` and ``futex_wake`` make the Linux system call *futex*. The first sleeps only if the
number still has the given value. For the kernel, this test and the beginning of the sleep are
one action, so no wakeup can come between them.

The program adds the processor time of both processes, because that is what a wait can waste. It
compares the medians of ten batches. Other programs can disturb this, so it tries up to five times.
``os.sched_setaffinity`` first keeps both processes on one core, and then gives each its own:
"""

from launcher import launch, run_program

output = run_program("wait_without_wasting/ways_to_wait.py")

# %%
# On one core, the process that spins keeps the other one from making progress. The kernel
# interrupts it only when its time slice is over. A process that yields or sleeps usually frees the
# core at once.
#
# With a core for each process, spinning is cheaper than sleeping. The answer comes so soon that
# a sleep costs more than it saves. So no way is always the best, and a rank must switch from
# one to the next while it waits.
#
# From one way to the next
# ------------------------
#
# The function ``rest`` is what a waiting thread of ``shm`` does between two looks:
#
# .. listing:: extension/shm_collectives/src/waiting.hpp
#    :part: patience
#
# The thread spins 100 times. ``relax`` is one instruction that delays the loop a little:
# ``pause`` on x86-64, and ``isb`` on aarch64. Then the thread yields for ``yield_for``. This is
# an option of the backend. Its default is 500 microseconds, or 0 where yielding does not help,
# as shown below. Then it sleeps until ``limit``: the loop of the engine in
# :doc:`/right/asynchronous-work` calls ``rest`` for at most 50 milliseconds.
#
# The sleep is cut into slices because the rank must check whether the others are alive.
# :doc:`lost-ranks` shows these checks.
#
# In the next worker, rank 1 comes a second late to a barrier. ``wait_for`` measures the call of
# rank 0. The kernel tells it the processor time of the thread, and how often the thread has
# gone to sleep:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/wait_without_wasting/late_rank.py
#       :part: late

output = launch("wait_without_wasting/late_rank.py", ranks=2)

# %%
# More ranks than cores
# ---------------------
#
# If a group has more ranks than the machine has processors, the backend sets ``spins`` to 0, and
# the ranks yield from the beginning, because spinning would only delay the rank that they wait for.
# The backend counts the ranks of its group, and not the other programs on the machine. They are one
# more reason to stop spinning soon.
#
# Yielding has a limit, too. Linux can share out the processor time to *sessions* first, and
# then to the processes of each session. This is called autogroup, and it is switched on if
# ``/proc/sys/kernel/sched_autogroup_enabled`` contains 1. A terminal is one session, but
# ``torchrun`` gives each rank a session of its own. ``sched_yield`` then lets no other rank
# run, because a process yields to its own session only. So each rank writes its session into
# the shared memory. If there are several sessions, and more ranks than processors, the ranks
# sleep at once:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: extension/shm_collectives/src/waiting.hpp
#       :part: policy
#
# The next program starts ranks itself, so that it can choose their sessions. It counts how often
# they sleep in 200 barriers:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/wait_without_wasting/ranks_in_sessions.py
#       :part: sleeps

output = run_program("wait_without_wasting/ranks_in_sessions.py")

# %%
# Only the ranks of the last group sleep at once. A program that sets ``yield_for`` itself gets what
# it asks for. :doc:`measure` shows the times of operations with two and with four ranks, on two
# cores.
#
# Sleep and wake
# --------------
#
# A rank that posts must wake those that sleep. A system call in each step would be wasted whenever
# the others are awake. So each rank has a ``Bell`` in the shared memory. It contains the number
# of threads that sleep, and how often it was rung for them:
#
# .. listing:: extension/shm_collectives/src/waiting.hpp
#    :part: bell
#
# The poster writes its counter and then calls ``ring``, which only reads a number if nobody
# sleeps. The waiting rank creates a ``Sleep``, which announces that it is about to sleep. Then it
# looks at the counters once more, and calls ``wait_for`` only if nothing has come.
#
# Each side first writes, and then reads what the other side writes. One of the two must see the
# other: the waiting rank sees the new counter, or the poster sees a sleeper and rings. If the
# bell rings before ``rings_`` is read, the last look finds the post. If it rings later,
# ``rings_`` has changed, and the system call returns at once or the sleep ends.
#
# This argument needs the order "write, then read" on both sides. Release and acquire do not
# provide it: with them, the read may take effect before the write. Processors do that, also those
# of x86-64. ``load``, ``store`` and ``fetch_add`` without a memory order are sequentially
# consistent.
# There is one order of all such accesses, the same for all threads, and it contains those of each
# thread in the order of the program.
#
# A mistake: to look first and announce the sleep afterwards
# ----------------------------------------------------------
#
# It seems natural to look at the counter, and to announce a sleep only if there is nothing. The
# next program contains this order and the one of ``shm``. They are generators, so the program can
# let a post come before each of their steps:
#
# .. listing:: gallery/communicate/wait_without_wasting/lost_wakeup.py
#    :part: waits
#
# ``post`` writes ``posted``, and then does the same as ``Bell::ring``. Each case has a memory of
# its own, so nobody decreases ``sleepers``. The sleep is real, and would not end without the
# limit of one second:

output = run_program("wait_without_wasting/lost_wakeup.py")

# %%
# A post before ``announce`` finds no sleeper, and wakes nobody. A post before ``sleep`` rings, but
# the waiting side reads ``rings`` after that, and sleeps until the next ring. The cure announces,
# reads ``rings``, and looks last. It returns in all four cases.
#
# With slices of 50 milliseconds, a lost wakeup does not stop a program for ever. The operation
# only takes up to 50 milliseconds longer, once in a while. This is hard to find with a test.
#
# Exercise
# --------
#
# Take the two writes and the two reads as four events. Count the orders in which the wakeup is
# lost: with sequential consistency, and if the poster, the waiting rank or both may read before
# they write.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    A wakeup is lost if each side reads before the other writes. ``permutations`` makes all orders
#    of the events. The arguments of ``count`` are the pairs that keep their order.
#
#    .. listing:: gallery/communicate/wait_without_wasting/both_orders.py
#       :part: solution
#
# The program of the solution prints:

output = run_program("wait_without_wasting/both_orders.py")

# %%
# One side in order is not enough: both are needed, and then no wakeup is lost. The all-gather and
# the all-reduce are complete now; :doc:`the-other-operations` builds the other collectives on the
# same steps.

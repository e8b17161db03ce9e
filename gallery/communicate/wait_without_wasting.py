"""
Waiting: spin, yield, sleep
===========================

Every collective contains a wait, because a rank needs the data of the others. The fifth decision of ``shm``
is how a rank waits. If it looks for the data in a busy loop, it can keep the core from the rank that it waits for; if
it sleeps, it can miss the wakeup. This page compares three ways to wait, lets a rank switch from one to the next, and
explains how a rank can sleep and never miss a wakeup.

.. diagram:: communicate/wait_without_wasting/diagram

Three ways to wait
------------------

A waiting thread can do three things:

- It can *spin*: look again at once, in a busy loop. **A rank that spins uses a whole CPU core while it
  waits**, and takes it from other threads. In return, it sees the data as soon as they are there.
- It can *yield*: let another thread have the core, and look again afterwards. If no other thread wants the
  core, a rank that yields uses the whole core, too.
- It can *sleep*: the kernel gives it no core until another rank wakes it. A sleep uses no core, but both
  sides pay a system call, and the kernel needs time to wake the rank.

To compare the costs, two processes of the next program take turns to increase a number. A process waits for its turn
in one of these ways:

.. admonition:: Three ways to wait
   :collapsible: closed

   .. listing:: gallery/communicate/wait_without_wasting/ways_to_wait.py
      :part: ways

   ``futex_wait`` and ``futex_wake`` make the Linux system call *futex*. The first sleeps only if the number still
   has the given value. For the kernel, this test and the beginning of the sleep are one action, so no wakeup can
   fall between them.

For each way, the program adds up the processor time of both processes, first with both on one core, and then with a
core for each:
"""

from launcher import launch, run_program

output = run_program("wait_without_wasting/ways_to_wait.py")

# %%
# On one core, the process that spins keeps the core from the one that it waits for, until its time slice ends. With a
# core for each process, spinning is cheaper than sleeping, because the answer arrives so soon that a
# sleep costs more than it saves. No way is always the best, so a rank must switch from one to the next
# while it waits.
#
# From one way to the next
# ------------------------
#
# A waiting thread of ``shm`` begins with the way that sees the data soonest, and ends with the one that leaves the core
# to others. It looks again and again whether something has arrived. Between two looks it calls ``rest``, which spins at
# first, yields later, and at last sleeps. Before it sleeps, ``rest`` calls ``look`` to look once more, for a reason
# that the next section gives. The other names are:
#
# .. list-table::
#    :header-rows: 1
#
#    * - name
#      - what it is
#    * - ``idle``
#      - how many looks in a row found nothing, and since when
#    * - ``relax``
#      - tells the processor that the thread is spinning
#    * - ``Bell::Sleep``
#      - a sleep from which other ranks can wake this one, described below
#    * - ``limit``
#      - the end of the sleep, if no rank rings
#
# .. listing:: extension/shm_collectives/src/waiting.hpp
#    :part: patience
#
# By default, a waiting thread goes through three phases:
#
# - **It spins** for 100 looks. That is usually enough when the other rank runs the same operation, because it then
#   answers within microseconds.
# - **It yields** for 500 microseconds. A rank without a core can then run, and if the answer is only a little late,
#   both sides are spared the system calls of a sleep. The option ``yield_for`` changes this time.
# - **It sleeps**, for at most 50 milliseconds at a time, because it must check now and then whether the other ranks
#   are alive, as :doc:`the-other-operations` shows.
#
# By default, a wait thus uses a whole core for about half a millisecond, and then nearly none. In the next worker,
# rank 1 arrives a second late at a barrier, so rank 0 should sleep about 20 times:
#
# .. admonition:: The late rank
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/wait_without_wasting/late_rank.py
#       :part: late

output = launch("wait_without_wasting/late_rank.py", ranks=2)

# %%
# If a group has more ranks than the machine has processors, spinning only delays the rank that the others
# wait for. The backend then sets ``spins`` to 0, so the ranks yield from the beginning. In each case, a long wait ends
# in sleep, so the next question is how a rank is woken.
#
# .. admonition:: Ranks in several sessions
#    :collapsible: closed
#
#    Even yielding may not help. If its setting autogroup is on, Linux groups processes by *session*, and a process
#    yields only to others of its own session. ``torchrun`` gives each rank a session of its own. So under autogroup,
#    ``sched_yield`` lets no other rank run.
#
#    Therefore ``yield_for`` is 0 by default if a group has more ranks than processors, and its ranks are in several
#    sessions. These ranks sleep at once:
#
#    .. listing:: extension/shm_collectives/src/waiting.hpp
#       :part: policy
#
# Sleep and wake
# --------------
#
# A rank that posts must wake those that sleep, but a system call in each step would be wasted whenever the others
# are awake. So each rank has a ``Bell`` in the shared memory, which contains ``sleepers_``, the number of threads
# that sleep, and ``rings_``, how often the bell was rung for them:
#
# .. listing:: extension/shm_collectives/src/waiting.hpp
#    :part: bell
#
# The poster, the rank that posts, writes its counter and then calls ``ring``. If no thread sleeps, ``ring`` only reads
# a number. The waiting rank announces its sleep, looks once more, and only then sleeps.
#
# Why is no wakeup lost? Each side first writes, and then reads what the other side writes, so one of the two must
# see the other: the waiting rank sees the new counter, or the poster sees a sleeper and rings.
#
# The bell may also ring before the sleep has begun. If it rings before ``rings_`` is read, the last look finds the
# post. If it rings later, ``rings_`` has changed, and the system call with ``FUTEX_WAIT`` returns at once, because it
# sleeps only if ``rings_`` still has the value that was read.
#
# This argument needs the order "write, then read" on both sides. Release and acquire do not provide it: a
# processor, even an x86-64, may let the read take effect before the write. So ``load``, ``store`` and
# ``fetch_add`` are sequentially consistent here: all threads agree on one order of these accesses, and it
# respects each thread's program order.
#
# To wake a rank costs a system call and a change of threads. If all ranks wait for all, only the rank that posts last
# therefore wakes the others: if they were woken earlier, they would find nothing and sleep again. If two ranks post
# last at the same time, at least one of them sees that all have posted, because each writes its counter before it
# reads those of the others.
#
# Bug: looking first and announcing the sleep afterwards
# ------------------------------------------------------
#
# What if the waiting rank does not look once more? It seems natural to look at the counter, and to announce a sleep
# only if there is nothing:
#
# .. listing:: gallery/communicate/wait_without_wasting/lost_wakeup.py
#    :part: waits
#    :end-before: def announce_then_look
#
# The program contains this order and the order of ``shm``. For each step of both, it lets a post fall just before the
# step:
#
# .. admonition:: Both orders
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/wait_without_wasting/lost_wakeup.py
#       :part: waits
#
# Each sleep is real: if its wakeup is lost, only the limit of one second ends it:

output = run_program("wait_without_wasting/lost_wakeup.py")

# %%
# A post before ``announce`` finds no sleeper, and wakes none. A post before ``sleep`` rings, but the waiting side
# reads ``rings`` after that, and sleeps until the next ring. Such a bug would be hard to find
# in ``shm``: because a sleep there ends after 50 milliseconds, a lost wakeup would only delay an operation now and
# then.
#
# The fix is the order of ``shm``: announce, read ``rings``, and look last. With this order, the wait returns in all
# four cases.
#
# Exercise
# --------
#
# The poster writes its counter and reads ``sleepers_``; the waiting rank writes ``sleepers_`` and reads the counter.
# Count the orders of these four events in which the wakeup is lost: with sequential consistency, and if the poster,
# the waiting rank or both may read before they write.
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
# One side in order is not enough: no wakeup is lost only if both sides write first and then read, as in ``shm``.
#
# .. admonition:: After this page you have decided
#
#    - how long a rank spins, how long it yields, and how long it then sleeps;
#    - what it does instead if there are more ranks than cores;
#    - what a rank that posts does when no other sleeps;
#    - in which order a rank announces its sleep and looks, and which memory order that needs.
#
# Not run here: more ranks than cores, in one session and in several.

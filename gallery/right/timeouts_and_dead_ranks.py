"""
Timeouts and dead ranks
=======================

A rank may arrive late, die, leave the group, or run another operation than the others. This page
ends each of these waits with an error that names the operation and the rank at fault, on all ranks.

The frame does most of this work. Your transport decides how soon the error comes, because only it
can know whether a rank is still there.

.. diagram:: right/timeouts_and_dead_ranks/diagram

Three timeouts
--------------

To limit a collective, a program has two places. The timeout of the group is an argument of
``init_process_group`` and ``new_group``, and since PyTorch 2.14 it can be changed with
``torch.distributed.set_timeout``, which calls ``setTimeout`` of the backend. The base class ignores
that call with a warning, so the frame overrides it. The options of each collective have a member
``timeout``, too. A backend decides which value wins, because PyTorch passes both without saying which
of them the program has set:

.. listing:: extension/frame/options.hpp
   :part: timeouts

In Python, only ``barrier`` and ``monitored_barrier`` have an argument for the timeout of the call. If
it is omitted, ``monitored_barrier`` passes PyTorch's default of 30 minutes, whatever the group has.

The clock of a collective starts with its first step and not with its call. Otherwise an asynchronous
collective could time out while it is still waiting for the ones before it, although no rank is late.

The third timeout is the argument of ``wait``. The header ``Work.hpp`` does not say what happens to the
operation afterwards; in the frame, only this ``wait`` ends, and the operation goes on. Zero means "no
timeout of its own" and not "now", because it is the default value, ``kNoTimeout``. A message has no
deadline, because a server may call ``irecv`` long before a client sends. So ``wait`` applies the timeout
of the group to it, from the call of ``wait`` on, and the group stays usable:

.. listing:: extension/frame/work.hpp
   :part: timeout-of-wait

The next worker shows all of them. Rank 1 is late: ``late`` lets it call only after rank 0 has got an
error, and prints what each rank raises. ``long`` is 30 minutes. With PyTorch 2.13, which cannot change
the timeout of this backend, it is one second, and ``set_timeout`` does nothing:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/right/timeouts_and_dead_ranks/three_timeouts.py
      :part: timeouts
"""

from launcher import launch, run_program

output = launch("timeouts_and_dead_ranks/three_timeouts.py", ranks=2)

# %%
# ``late`` cuts off the beginning of most messages. The first of them begins with ``Backend store:
# all_reduce #1 of 4 bytes of float32 with SUM of group "1" failed on``, so it names the group, the
# operation and its number.
#
# In the first three cases the group has failed, also for rank 1, which arrived later and got the
# reason of rank 0. In the last two, only one ``wait`` gave up, and the second one returns.
#
# The type of the error
# ---------------------
#
# Programs catch errors by type, so a backend must use PyTorch's. A failed operation raises
# ``DistBackendError``, which C++ throws as ``c10::DistBackendError``. These are its base classes:

import torch
import torch.distributed as dist

for kind in dist.DistBackendError.__mro__[:4]:
    print(kind.__name__)

# %%
# A wrong argument is a ``ValueError``, which ``TORCH_CHECK_VALUE`` throws. The frame checks all
# arguments before the operation gets its number. No other rank has noticed the call then, so the group
# remains usable:

import store_collectives  # importing it registers "store"

dist.init_process_group("store", store=dist.HashStore(), rank=0, world_size=1)
try:
    dist.all_gather([torch.ones(2)], torch.ones(3))
except ValueError as error:
    print(str(error).splitlines()[0])

dist.barrier()
dist.destroy_process_group()

# %%
# Bug: a timeout that starts again
# --------------------------------
#
# A waiting thread often wakes for something else than it waits for, such as a message of another
# operation. If each sleep gets the whole timeout, the wait has no end as long as something happens:
#
# .. listing:: gallery/right/timeouts_and_dead_ranks/timeout_anew.py
#    :part: mistake
#
# The fix computes a *deadline* once, the time at which the wait must end, and sleeps only for what is
# left:
#
# .. listing:: gallery/right/timeouts_and_dead_ranks/timeout_anew.py
#    :part: cure
#
# ``changed`` is a condition variable, whose ``wait`` returns false after a timeout. Another process
# notifies it every 50 milliseconds, and sends the message after two seconds. Both waits have a timeout
# of one second:

output = run_program("timeouts_and_dead_ranks/timeout_anew.py")

# %%
# The first wait should have ended after one second. Use a monotonic clock for the deadline, because
# the other one jumps when the system's time is set. The frame uses ``steady_clock``.
#
# Ranks that will never arrive
# ----------------------------
#
# Waiting for a dead rank until the deadline wastes up to 30 minutes, and the error would not say what
# has happened. So about every 50 milliseconds, the frame asks your transport two questions. Has another
# rank announced a failure? Can one of the ranks that this operation waits for still arrive? It learns
# which ranks these are from ``missing()`` of the condition on which the steps are suspended:
#
# .. listing:: extension/frame/engine.hpp
#    :part: advance
#
# The order matters. A rank may send its last data and then leave, which is no failure. So the frame
# advances the operation once more after it has asked, and gives up only if nothing has come.
#
# How much your transport can answer depends on what moves the data:
#
# .. list-table::
#    :header-rows: 1
#
#    * - transport
#      - what it knows of other ranks
#    * - ``store``
#      - who has left the group, and who has announced a failure; not who was killed
#    * - shared memory
#      - also whose process has ended, since the kernel can tell: :doc:`/communicate/lost-ranks`
#    * - sockets
#      - whose connection was closed; a host that lost its power sends nothing
#    * - a library
#      - what its errors say, often only that some rank is gone
#
# Where the answer is "nothing", the deadline remains, or a heartbeat: each rank increases a counter in
# the store, and a rank whose counter stands still counts as dead.
#
# One failure, all ranks
# ----------------------
#
# After a failure, the ranks no longer agree on what has completed: one may have given up while another
# one has its result. To continue, they would have to exchange that, and one of them may be dead. So the
# first failure breaks the group for good. The rank that finds it announces the reason through the
# transport, and each other rank raises an error with the same reason. A program that wants to break a
# group calls ``abort``, which announces ``rank 1 has aborted the group``. Other groups are not affected.
#
# Exercise
# --------
#
# A group of three ranks reduces again and again. Rank 2 destroys its group after the second all-reduce.
# Let the others catch the error, destroy the group, create one of the remaining ranks, and continue. The
# new group must use other keys of the store than the old one.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The error names the lost rank, and has the same reason on all others. So they agree on who is left
#    without a message. ``sum_of_ones`` is an all-reduce.
#
#    .. listing:: gallery/right/timeouts_and_dead_ranks/survivors.py
#       :part: solution
#
#    If two ranks leave at once, the error names one of them. Then let the launcher start all ranks
#    again, as :doc:`/overview/elastic` shows.
#
# Three ranks run the solution:

output = run_program("timeouts_and_dead_ranks/survivors.py")

# %%
# Not run here: sockets, a heartbeat, and a rank that is killed, which ends under ``store`` with a
# timeout like case 1. All waits have an end now, so the next page turns to what is moved:
# :doc:`tensors-of-every-kind`.

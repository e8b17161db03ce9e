"""
Timeouts
========

After this page you can give each wait of a backend a timeout, and tell which of three timeouts
applies. Your error has the right type, and names the rank that has not come.

A rank may be late, and nobody knows how long. A backend without a limit waits for ever, and
does not say for whom.

.. diagram:: communicate/timeouts/diagram

Three timeouts
--------------

A timeout comes from one of three places. The first two limit a collective. The timeout of the
group is an argument of ``init_process_group`` and ``new_group``. From PyTorch 2.14 on, a program
can change it later with ``torch.distributed.set_timeout``. PyTorch then calls ``setTimeout`` of the
backend. The method of the base class ignores the value and prints a warning. The options of each
collective in C++ have a member ``timeout``, too. If a call sets this member, its value replaces the
timeout of the group:

.. listing:: extension/frame/options.hpp
   :part: timeout-of-a-call

In ``torch.distributed``, ``barrier`` and ``monitored_barrier`` have an argument for this member.
Without it, ``monitored_barrier`` passes PyTorch's default of 30 minutes, and not the timeout of the
group. The time of a collective begins with its first step. An asynchronous one may be called
earlier, and first waits for the collectives before it.

The third timeout is the argument of ``wait``. ``Work.hpp`` does not say what happens to the
operation after it. ``shm`` lets it limit only this wait, and the operation continues. Zero is
``kNoTimeout`` of PyTorch, and does not mean "now".

A message has no other timeout than that of ``wait``, because a server may call ``irecv`` long
before the message is sent. Without an argument, ``wait`` uses the timeout of the group, counted
from the call of ``wait``. When that ``wait`` times out, the group remains usable. Without a
``wait``, a message can stay pending until a rank dies or leaves the group:

.. listing:: extension/frame/work.hpp
   :part: timeout-of-wait

In the next worker, rank 1 is late: it calls only after rank 0 has got an error. The function
``late`` lets rank 0 and then rank 1 call, and prints the errors. ``long`` is 30 minutes. PyTorch
2.13 can change the timeout of gloo and NCCL only. With 2.13, ``long`` is one second, and
``set_timeout`` does nothing:

.. listing:: gallery/communicate/timeouts/three_timeouts.py
   :part: timeouts
"""

from launcher import launch, run_program

output = launch("timeouts/three_timeouts.py", ranks=2)

# %%
# ``late`` cuts off the beginning of most messages. The first one begins with ``Backend shm:
# all_reduce #1 of 4 bytes of float32 with SUM of group "1" failed on``. It names the group, the
# operation, and its number among the operations of this group.
#
# Rank 1 came later, and got the reason of rank 0. The second call in the same group failed at
# once on both ranks, with the reason of the first. The last two cases differ: only one ``wait``
# gave up. The operation ended well when rank 1 came.
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

# %%
# A program that catches ``RuntimeError`` therefore catches this one, too. A wrong argument is a
# ``ValueError`` instead, which ``TORCH_CHECK_VALUE`` of PyTorch throws. The backend checks all arguments before an operation begins, also those of
# a coalesced call, so the group remains usable:

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm", store=dist.HashStore(), rank=0, world_size=1)
try:
    dist.all_gather([torch.ones(2)], torch.ones(3))
except ValueError as error:
    print(str(error).splitlines()[0])

dist.barrier()
dist.destroy_process_group()

# %%
# A mistake: a timeout that begins anew
# -------------------------------------
#
# A rank sleeps until somebody rings its bell, or for 50 milliseconds, as
# :doc:`wait-without-wasting` shows. Every rank that posts rings, and not only the one that this
# rank waits for. So a wait may wake many times before the right rank posts. This wait begins its
# timeout anew each time:
#
# .. listing:: gallery/communicate/timeouts/timeout_anew.py
#    :part: mistake
#
# The cure computes a *deadline*, the time at which the wait must end. It does so once, and
# sleeps only for the time that is left:
#
# .. listing:: gallery/communicate/timeouts/timeout_anew.py
#    :part: cure
#
# ``bell`` is a condition variable of Python. Its ``wait`` returns false after a timeout. Another
# process rings every 50 milliseconds, and posts after two seconds. Both waits have a timeout of
# one second:

output = run_program("timeouts/timeout_anew.py")

# %%
# The first wait should have ended after one second, but waited until the post. If the post never
# came, this wait would last as long as other ranks ring. ``shm`` computes the deadline of a
# collective once, when no other is before it, and the deadline of ``wait`` in the call. Both use a
# monotonic clock, which does not jump when somebody sets the time of the machine.
#
# Exercise
# --------
#
# A program has a list of works. Write a function that waits for all of them, for at most half a
# second in total, and returns the indices of those that have not ended. If an operation has failed,
# the function must raise its error. Suppose that rank 0 has called four all-reduces, and rank 1
# only the first one. Which limit does your function pass to the last ``wait``?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    When the second ``wait`` gives up, no time is left for the last two. A limit of zero would
#    be no limit at all, and PyTorch rounds a time below one millisecond down to zero. So each
#    ``wait`` gets at least one millisecond.
#
#    .. listing:: gallery/communicate/timeouts/unfinished_works.py
#       :part: solution
#
#    An operation may end after its ``wait`` has given up, and before ``is_completed`` is called.
#    The second ``wait`` for this work then returns, and raises an error only if the operation has
#    failed.
#
# Two ranks run the solution. In the last case, rank 1 never calls, and the group has a timeout of
# two seconds:

output = launch("timeouts/unfinished_works.py", ranks=2)

# %%
# Every wait now has an end. If a rank is dead, this end comes late, because the others wait until
# the deadline. :doc:`lost-ranks` ends such a wait much sooner, and shows how all ranks get the
# same reason.

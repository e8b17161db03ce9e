"""
Timeouts and dead ranks
=======================

A rank may arrive late, die or leave the group while other ranks wait for it. Without a *deadline*, the time at which a
wait must end, the job then hangs until its user ends it, and no log says which rank was missing. This page ends each of
these waits with an error that names the operation and the rank at fault.

.. diagram:: right/timeouts_and_dead_ranks/diagram

Three timeouts
--------------

A backend must know how long a rank may wait. A program can set a timeout for a group, for a call, or for a wait. The
group's timeout is an argument of ``init_process_group`` and ``new_group``. The call's timeout is the member ``timeout``
in the options of the collective, and takes precedence over the group's.

The third timeout is the argument of ``wait``. PyTorch's header ``Work.hpp`` does not say what happens to the
operation after this timeout. In the frame, only the ``wait`` ends, and the operation goes on.

If the options of your backend have a timeout, too, decide whether it or the argument of ``init_process_group``
counts. In the frame, the timeout in the options takes precedence; in PyTorch's NCCL, the argument does:

.. admonition:: Which timeout counts
   :collapsible: closed

   .. listing:: extension/frame/c10d_frame/include/frame/options.hpp
      :part: timeouts

   If the options have the default of 30 minutes, ``kBackendDefaultTimeout``, the argument counts, because the frame
   cannot tell this default from no timeout.

   Since PyTorch 2.14, ``torch.distributed.set_timeout`` changes the group's timeout through ``setTimeout`` of the
   backend, which the frame overrides, because the base class only warns.

   Of the collectives of ``torch.distributed``, only ``barrier`` and ``monitored_barrier`` have an argument for the
   timeout of the call. Without it, ``monitored_barrier`` passes PyTorch's default of 30 minutes, whatever the timeout
   of the group is. The methods of ``ProcessGroup`` take the timeout in their options, and many, such as
   ``allreduce``, also as an argument.

The clock of a collective starts with its first step and not with its call, because otherwise an
asynchronous collective could time out while it is still waiting for the ones before it, although no
rank is late.

A message has no deadline, because a server may call ``irecv`` long before a client sends. Instead, ``wait`` applies
the group's timeout to the message, counted from the call of ``wait``. When this timeout expires, only the ``wait``
fails, and the group stays usable:

.. admonition:: ``wait``
   :collapsible: closed

   ``kNoTimeout`` is zero. ``in`` turns a timeout into a deadline. ``unregister`` takes the work out of a list that
   PyTorch keeps for compiled graphs.

   .. listing:: extension/frame/c10d_frame/include/frame/work.hpp
      :part: timeout-of-wait

The next worker shows all three timeouts in five cases. Rank 1 calls only after rank 0 has raised an error:

.. admonition:: The five cases
   :collapsible: closed

   The function ``late`` makes rank 1 late, and prints what each rank raises. To keep the lines short, it
   leaves out parts of the messages. ``long`` is 30 minutes:

   .. listing:: gallery/right/timeouts_and_dead_ranks/three_timeouts.py
      :part: timeouts

   Before 2.14, the timeout of this backend cannot be changed. ``long`` is then one second, and
   ``set_timeout`` does nothing.
"""

from launcher import launch, run_program

output = launch("timeouts_and_dead_ranks/three_timeouts.py", ranks=2)

# %%
# After the timeout of the group or of a call (cases 1 to 3), the group has failed on both ranks: rank 1 calls later,
# and its error has the reason of rank 0. After the timeout of ``wait`` or of a message (cases 4 and 5), only one
# ``wait`` has given up, and a second ``wait`` returns.
#
# Bug: a timeout that starts again
# --------------------------------
#
# A wait can easily last longer than its timeout, because a waiting thread often wakes before it has what it waits for,
# for example when a message of another operation has arrived. If each sleep gets the whole timeout, the wait lasts as
# long as such events go on:
#
# .. listing:: gallery/right/timeouts_and_dead_ranks/timeout_anew.py
#    :part: mistake
#
# The fix computes the deadline once, and each sleep lasts only until then:
#
# .. listing:: gallery/right/timeouts_and_dead_ranks/timeout_anew.py
#    :part: cure
#
# ``changed`` is a condition variable, whose ``wait`` returns false after a timeout. Another process
# notifies it every 50 milliseconds, and sends the message after two seconds. Both waits have a timeout
# of one second:

output = run_program("timeouts_and_dead_ranks/timeout_anew.py")

# %%
# The first line shows the bug: ``timeout_each_time`` waits for two seconds, although its timeout is one second. In
# C++, call ``wait_until`` of the condition variable and not ``wait_for``. Compute the deadline with a monotonic
# clock, such as ``steady_clock`` in the frame, because the system clock jumps when the time is set.
#
# Ranks that will never arrive
# ----------------------------
#
# A wait for a dead rank would last until the deadline, by default 30 minutes, and the error would not say what has
# happened. So about every 50 milliseconds, or less often in a large group, the frame asks your transport two questions.
# The first, ``failure()``, is for the whole group: has another rank announced a failure? The second,
# ``lost(missing)``, is for each operation: is one of the ranks that it waits for, ``missing``, gone for good?
#
# .. admonition:: ``advance_one``, which asks
#    :collapsible: closed
#
#    ``pending`` is a call that has not ended, ``check`` says that it is time to ask, and ``wait_for`` keeps the
#    missing ranks for the text of an error.
#
#    The frame takes ``missing`` from the condition on which the operation is suspended. For a receive from any
#    source, the list is empty, because any other rank could send:
#
#    .. listing:: extension/frame/c10d_frame/include/frame/running.hpp
#       :part: advance
#
#    A rank may send its last data and then leave, which is no failure. So when a rank is gone, the frame advances the
#    operation once more, and gives up only if the operation does not go on. Before it gives up, the frame asks
#    ``failure()`` again, because a reason that the rank has announced says more than that it has left.
#
# How much your transport can answer depends on what moves the data:
#
# .. list-table::
#    :header-rows: 1
#
#    * - transport
#      - what it knows of other ranks
#    * - ``store``
#      - which ranks have left the group, and whether one has announced a failure; not which were killed
#    * - shared memory
#      - also which processes have ended, because the kernel reports it: :doc:`/communicate/the-other-operations`
#    * - sockets
#      - which connections were closed; a host that lost its power sends nothing
#    * - a library
#      - what its errors say, often only that some rank is gone
#
# If a transport cannot know, only the deadline ends the wait, unless you add a *heartbeat*: each rank has a counter in
# the store, which it increases as long as it lives. The frame has the class ``Watch`` for it, which
# :doc:`/library/lost-ranks-of-a-library` explains.
#
# .. admonition:: The answers of ``store``
#    :collapsible: closed
#
#    The store does not notice a killed rank, so a collective waits until its timeout. If that rank hosted the store,
#    the others fail at once. Under ``torchrun``, a process of ``torchrun`` itself usually hosts the store, and each
#    ``torchrun`` stops its ranks when one dies.
#
#    .. listing:: extension/frame/c10d_frame/include/store/store_transport.hpp
#       :part: lost
#
# To show the errors, this worker breaks three groups, and ``show`` prints the error of each call. In ``sizes``, the
# tensors of the ranks differ in size. In ``lost``, rank 0 waits for a broadcast of rank 1, and in ``alone`` for a
# message from any rank, but rank 1 destroys both groups:
#
# .. listing:: gallery/right/timeouts_and_dead_ranks/errors.py
#    :part: calls

launch("timeouts_and_dead_ranks/errors.py", ranks=2)

# %%
# Each error says more than that time is over: in what the ranks differ, or which ranks have left. To show users the
# call at fault, the error of a collective also names the operation, its number in the group, and the group.
#
# The type of the error
# ---------------------
#
# Programs catch errors by type, so a backend should use PyTorch's. In the frame, a failed operation raises
# ``DistBackendError``, which C++ throws as ``c10::DistBackendError``. Gloo raises a plain ``RuntimeError`` even for a
# timeout, so a program for several backends catches ``RuntimeError``, from which the error of the frame is derived:

import torch
import torch.distributed as dist

for kind in dist.DistBackendError.__mro__[:4]:
    print(kind.__name__)

# %%
# A wrong argument raises a ``ValueError``, which C++ throws with ``TORCH_CHECK_VALUE``. The group remains usable,
# because the frame finds the error before the operation gets its number, as :doc:`tensors-of-every-kind` shows:

import store_collectives  # importing it registers "store"

dist.init_process_group("store", store=dist.HashStore(), rank=0, world_size=1)
try:
    dist.all_gather([torch.ones(2)], torch.ones(3))
except ValueError as error:
    print(str(error).splitlines()[0])

dist.barrier()
dist.destroy_process_group()

# %%
# A failure ends the group
# ------------------------
#
# After a failure, the ranks no longer agree on what has completed: one may have given up while another one has its
# result. To continue, they would have to tell each other, but one of them may be dead. So the first failure breaks the
# group for good. The rank that finds the failure announces its reason through the transport, so that no other rank has
# to wait for its own deadline: each one raises an error with this reason, unless it has failed itself.
#
# To break a group on purpose, a program calls ``abort``, which announces a reason such as ``rank 1 has aborted the
# group``. Other groups are not affected, unless they share the thread of a library that hangs.
#
# Exercise
# --------
#
# A group of three ranks runs one all-reduce after another, and rank 2 destroys its group after the
# second. Let the others catch the error, destroy the group, and continue in a new group of the ranks that
# remain. Give that group a name of its own in the store, because not every backend ignores the keys of an earlier
# group.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    All other ranks raise the same reason, which names the lost rank, so they need no message to know
#    which ranks remain. ``sum_of_ones`` is an all-reduce.
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
# From step 2 on, the list lacks rank 2, and the sum is 2: ranks 0 and 1 have repeated the failed all-reduce in their
# new group. They could go on because the error came at once, and named the rank that had left.
#
# .. admonition:: After this page you have decided
#
#    - which timeout counts: the argument of the program, or one in the options of your backend;
#    - whether a ``wait`` that times out ends the operation, or only itself;
#    - which classes of errors your backend raises;
#    - how a rank finds out that another one is gone, and how it tells the others why it has failed itself;
#    - whether a group can go on after a failure.
#
# Not run here: sockets, a heartbeat, and a killed rank.

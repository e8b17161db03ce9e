"""
Send and receive
================

The simplest communication has two parties: one rank sends a tensor, another receives
it. This is called *point-to-point communication*.

Blocking
--------

``send`` returns when the tensor may be changed again, ``recv`` when the message is in
the tensor that it was given. Shape and type are not part of the message: both sides
have to agree on them.

Messages from one rank to another arrive in the order in which they were sent. A
*tag* is a number that tells apart messages of different kinds: with gloo, which
runs here, a receive takes only a message with the same tag. NCCL does not support
tags. This site does not run NCCL.

.. literalinclude:: /../gallery/operations/workers/blocking_messages.py
   :language: python
   :caption: gallery/operations/workers/blocking_messages.py
"""

from launcher import launch

launch("workers/blocking_messages.py", ranks=2)

# %%
# Two sends that wait for each other
# ----------------------------------
#
# ``send`` may wait until the other side receives. When two ranks want to exchange
# tensors and both send first, neither comes to its receive. That is a *deadlock*.
# With gloo, the program would hang until the group's timeout, which is 30
# minutes by default. NCCL has a default of its own, 10 minutes. Here the group has
# gloo and a timeout of two seconds:
#
# .. diagram:: operations/deadlock
#
# .. not-executed::
#    :partly:
#
#    No rank comes as far as ``recv``: that is the deadlock.
#
#    .. literalinclude:: /../gallery/operations/workers/deadlock.py
#       :language: python
#       :caption: gallery/operations/workers/deadlock.py
#       :emphasize-lines: 16

launch("workers/deadlock.py", ranks=2)

# %%
# The rank that gives up first reads ``Timed out waiting 2000ms for send operation to
# complete`` in the exception. It closes the connection, so the other rank may read
# that its peer has gone.
#
# There are three cures. The first is an order: one rank sends first, the other
# receives first.
#
# .. literalinclude:: /../gallery/operations/workers/no_deadlock.py
#    :language: python
#    :caption: gallery/operations/workers/no_deadlock.py
#    :start-after: # [order]
#    :end-before: # [/order]
#
# The second is not to wait. ``isend`` and ``irecv`` return a ``Work`` at once. Until its
# ``wait`` has returned, leave the tensor alone.
#
# .. literalinclude:: /../gallery/operations/workers/no_deadlock.py
#    :language: python
#    :caption: gallery/operations/workers/no_deadlock.py
#    :start-after: # [asynchronous]
#    :end-before: # [/asynchronous]
#
# The third is to hand over all operations together. With gloo,
# ``batch_isend_irecv`` starts them one by one, in the order of the list, and
# waits for none. A backend that supports coalescing, such as NCCL, gets them as
# one group. This site does not run NCCL.
#
# .. literalinclude:: /../gallery/operations/workers/no_deadlock.py
#    :language: python
#    :caption: gallery/operations/workers/no_deadlock.py
#    :start-after: # [batch]
#    :end-before: # [/batch]
#
# All three at work:

launch("workers/no_deadlock.py", ranks=2)

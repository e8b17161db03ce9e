"""
Send and receive
================

After this page you can send tensors from one rank to another, and keep two ranks from
waiting for each other for ever.

One rank sends a tensor, another rank receives it: this is *point-to-point communication*.

Blocking
--------

``send`` returns when the sender may change its tensor again. ``recv`` returns when the
message is in the tensor of the receiver. The message contains neither the shape nor the
type of the tensor, so both ranks must use the same.

Messages from one rank to another arrive in the order in which they were sent. A *tag* is
a number for the kind of a message. With gloo, which runs here, a receive takes only a
message with the same tag. NCCL does not support tags. This site does not run NCCL.

.. listing:: gallery/operations/point_to_point/blocking_messages.py

``launch`` runs the program with ``torchrun``, and sorts the output by rank.
:doc:`starting-processes` describes it.
"""

from launcher import launch

launch("point_to_point/blocking_messages.py", ranks=2)

# %%
# Two sends that wait for each other
# ----------------------------------
#
# ``send`` may wait until the other rank receives. If two ranks want to exchange tensors
# and both send first, neither reaches its receive. That is a *deadlock*. With gloo, the
# program hangs until the timeout of the group, which is 30 minutes by default. The default
# of NCCL is 10 minutes. Here the group has gloo and a timeout of two seconds:
#
# .. diagram:: operations/point_to_point/diagram
#
# .. not-executed::
#    :partly:
#
#    No rank reaches ``recv``: that is the deadlock.
#
#    .. listing:: gallery/operations/point_to_point/deadlock.py
#       :emphasize-lines: 16

launch("point_to_point/deadlock.py", ranks=2)

# %%
# In the rank that gives up first, the exception says ``Timed out waiting 2000ms for send
# operation to complete``. This rank closes the connection. Therefore the exception of the
# other rank may say that its peer has closed the connection.
#
# There are three cures. The first is an order: one rank sends first, the other rank
# receives first.
#
# .. listing:: gallery/operations/point_to_point/no_deadlock.py
#    :part: order
#
# The second is not to wait. ``isend`` and ``irecv`` return a ``Work`` at once. Do not touch
# the tensor until ``wait`` of this ``Work`` has returned.
#
# .. listing:: gallery/operations/point_to_point/no_deadlock.py
#    :part: asynchronous
#
# The third is to pass all operations in one call, to ``batch_isend_irecv``:
#
# .. listing:: gallery/operations/point_to_point/no_deadlock.py
#    :part: batch
#
# This is the output of all three:

launch("point_to_point/no_deadlock.py", ranks=2)

# %%
# The order in a batch
# --------------------
#
# A backend that supports coalescing, such as NCCL, gets the operations of a batch as one
# group. Gloo does not support it. With gloo, ``batch_isend_irecv`` starts the operations
# one by one, in the order of the list, and waits for none.
#
# With either kind of backend, the order of a send and a receive in the list does not
# matter. The order of two messages in the same direction does. Here rank 1 names its
# tensors in the opposite order, so it receives the first message in the second tensor:
#
# .. listing:: gallery/operations/point_to_point/batch_order.py

launch("point_to_point/batch_order.py", ranks=2)

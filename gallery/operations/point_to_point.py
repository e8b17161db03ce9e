"""
Point-to-point messages
=======================

A collective involves all ranks of a group. Often only two ranks need to exchange data, such as neighbouring stages of
a pipeline: one sends a tensor, and the other receives it. This is *point-to-point communication*. This page shows its
calls, and how to keep two ranks from waiting for each other forever.

Blocking messages
-----------------

``send`` returns when the sender may change its tensor again, and ``recv`` when the message is in the tensor of the
receiver. Neither the shape nor the dtype of the tensor travels with the message, so the receiver must pass a tensor
with the same shape and dtype.

Messages from one rank to another arrive in the order in which they were sent. To tell kinds of messages
apart, give each kind a number, its *tag*. With gloo, which runs here, a receive takes only a message with
the same tag. NCCL does not support tags.

.. listing:: gallery/operations/point_to_point/blocking_messages.py

``launch`` runs the program with ``torchrun``, and sorts the output by rank.
:doc:`starting-processes` describes it.
"""

from launcher import launch

launch("point_to_point/blocking_messages.py", ranks=2)

# %%
# The line of rank 1 shows that each number has arrived with the tag under which rank 0 sent it.
#
# Deadlock: two sends that wait for each other
# --------------------------------------------
#
# ``send`` may wait until the other rank receives. If two ranks exchange tensors and both send first,
# neither reaches its receive. That is a *deadlock*: the program hangs until the timeout of the group,
# which is 30 minutes by default, and 10 if ``backend`` is ``"nccl"``. Here the group has gloo and a
# timeout of two seconds:
#
# .. diagram:: operations/point_to_point/diagram
#
# .. not-executed::
#    :partly:
#
#    No rank reaches ``recv``: that is the deadlock.
#
#    .. listing:: gallery/operations/point_to_point/deadlock.py

launch("point_to_point/deadlock.py", ranks=2)

# %%
# Both ranks print the program's own message. Their exceptions can differ: in the rank that gives up first, the
# exception says ``Timed out waiting 2000ms for send operation to complete``. This rank closes the connection, so the
# exception of the other rank may say instead that its peer has closed the connection.
#
# Three ways to exchange
# ----------------------
#
# The first fix is an order: one rank sends first, and the other rank receives first.
#
# .. listing:: gallery/operations/point_to_point/no_deadlock.py
#    :part: order
#
# With many ranks, a safe order can be hard to find. The second fix is not to wait. ``isend`` and ``irecv`` return at
# once, each with a ``Work``, the handle of the running operation. The message is then still on its way, so do not
# touch the tensor until the ``wait`` of this ``Work`` has returned.
#
# .. listing:: gallery/operations/point_to_point/no_deadlock.py
#    :part: asynchronous
#
# The third fix is to pass all operations in one call to ``batch_isend_irecv``, which allows a backend to start
# them together:
#
# .. listing:: gallery/operations/point_to_point/no_deadlock.py
#    :part: batch
#
# One program runs all three:

launch("point_to_point/no_deadlock.py", ranks=2)

# %%
# In all six lines, a rank has received the number that the other rank sent, so none of the three ways deadlocks.
#
# The order in a batch
# --------------------
#
# How a batch runs depends on the backend. A backend that supports coalescing, such as NCCL, gets the operations of a
# batch as one group. Gloo does not support coalescing, so ``batch_isend_irecv`` starts the operations one by one, in
# the order of the list, and waits for none.
#
# With either kind of backend, the order of a send and a receive in the list does not matter, but the order
# of two messages in the same direction does. Here rank 1 names its tensors in the opposite order, so it
# receives the first message in the second tensor:
#
# .. listing:: gallery/operations/point_to_point/batch_order.py

launch("point_to_point/batch_order.py", ranks=2)

# %%
# The first message, 1, is now in the second tensor, and no error reports it. So when you build such lists, keep the
# same order of messages on both ranks.
#
# Not run here: NCCL. Its default timeout is a constant of PyTorch, and the rest of what this page says
# about it is from PyTorch's documentation and code.

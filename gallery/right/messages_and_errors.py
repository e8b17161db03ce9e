"""
Messages and errors through the store
=====================================

This page completes the transport of :doc:`smallest-backend`: with messages between two ranks, with
errors that name the rank at fault, and with keys that are erased in time.

.. diagram:: right/messages_and_errors/diagram

Messages
--------

So that messages do not mix, their keys contain the sender, the receiver, the tag and a counter. The
receiver erases the note when it has read the data, which tells the sender that the message has
arrived:

.. listing:: extension/store_collectives/src/store_transport.hpp
   :part: messages

Two receives can wait for the same message, whether they name its sender or accept any. So ``find``
gives it to the earlier call.

Errors and dead ranks
---------------------

So that an error can name the rank at fault, a transport tells the frame which ranks it waits for. In
``exchange``, ``send`` and ``receive``, the wait is a ``co_await`` on an ``Until``, whose second function
returns these ranks; only a receive from any source has none to name. To learn of a failure before the
deadline, the frame also asks two questions about every 50 milliseconds while an operation is pending:
``failure``, whether another rank has announced one, and ``lost``, whether a rank that it waits for has left:

.. listing:: extension/store_collectives/src/store_transport.hpp
   :part: lost

To show the errors, this worker breaks four groups: in the first, the sizes differ; in the second,
rank 1 never calls. Rank 1 has destroyed the other two, in which rank 0 waits for a broadcast, and for
a message from any rank:

.. listing:: gallery/right/messages_and_errors/errors.py
   :part: calls
"""

from launcher import launch, run_program

launch("messages_and_errors/errors.py", ranks=2)

# %%
# Each error of a collective names the operation, its number in the group, the group, and the
# ranks. A failed group cannot be used again, because its ranks may disagree on what has completed.
# Other groups still work.
#
# The store does not notice a killed rank, so a collective waits until its timeout. If that rank
# hosted the store, the others fail at once. Under ``torchrun``, a process of ``torchrun`` itself usually
# hosts the store, and each ``torchrun`` stops its ranks when one dies.
#
# Bug: erasing a key after the first read
# ---------------------------------------
#
# A store keeps each key until it is deleted, so a transport must erase its keys. The obvious way is to
# erase a key after reading it. If only one rank reads the key, this works:
#
# .. listing:: gallery/right/messages_and_errors/erased_keys.py
#    :part: mistake
#
# With more readers, the second one waits until the store times out. The fix relies on order: a rank
# begins an operation only after it has finished the one before. So once all ranks have begun the
# second, no rank still reads keys of the first:
#
# .. listing:: gallery/right/messages_and_errors/erased_keys.py
#    :part: cure
#
# The program compares both for three ranks and two broadcasts. ``DistStoreError`` means that the store timed out:

run_program("messages_and_errors/erased_keys.py")

# %%
# ``exchange`` needs no further key to know this, because the notes that it compares also say that all
# ranks have begun. It keeps the names of its last keys in ``kept_``, and erases them in the next
# call. Pieces with a single reader are erased at once, and ``leave``, which is not shown here, erases the
# last keys of the group.
#
# The transport is complete, and no check of :doc:`/communicate/test-your-backend` fails for it.
# :doc:`/tutorial/next-steps` has a project that begins with this transport under a name of yours, so
# you can replace its methods and stay correct. The next pages show what the frame adds to the
# transport, beginning with what happens before any byte moves: :doc:`rendezvous`.
#
# Not run here: several hosts. This page and the tests start all ranks on one host.

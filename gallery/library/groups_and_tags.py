"""
Communicators, groups and tags
==============================

PyTorch tells messages apart by group, sender and tag. A backend that passes the tag on as it is can confuse a
message of the program with one of its own, so that a rank goes on with a wrong number, without an error. This page
shows how a backend maps group, sender and tag to what its library has, and keeps its own messages apart.

MPI has the same three: a *communicator* for the group, a rank in it, and a tag.

.. diagram:: library/groups_and_tags/diagram

A communicator for each group
-----------------------------

MPI keeps the messages of two communicators apart, so each group needs a communicator of its own. The usual function
for that is ``MPI_Comm_split``, which all ranks of an existing communicator must call. PyTorch, however, calls the
create function of a backend only on the members of the new group. So the backend uses ``MPI_Comm_create_from_group``
of MPI 4, which only the members call. Its string argument tells several of these calls apart, and the backend passes
the name of the group. The listing has these names:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``MPI_COMM_WORLD``
     - MPI's own communicator of all processes
   * - ``MPI_Group_incl``
     - picks ``members`` out of all processes, in this order, without a message to another rank
   * - ``MPI_ERRORS_RETURN``
     - lets MPI return errors, which by default end the process
   * - ``check``
     - throws an exception with MPI's text if a function has returned an error

.. listing:: extension/mpi_collectives/src/world.hpp
   :start-at: MPI_Group all =
   :end-before: MPI_Group_free(&group);

``members`` has ranks of ``MPI_COMM_WORLD``. They may differ from PyTorch's global ranks, because a program can start
its default group again in another order. So each rank tells the others its number in MPI, as :doc:`start-a-library`
explains. The list is in the order of the group. MPI and PyTorch therefore number its ranks alike, and no later call has
to translate.

.. admonition:: The end of a communicator
   :collapsible: closed

   A library has a limited number of communicators, and a long program may create and destroy many groups. So
   the backend frees a communicator in the last steps of its group, in ``leave`` of :doc:`lost-ranks-of-a-library`.
   It does so only after a barrier of all ranks, because MPI may still need this rank to deliver what another
   one waits for. After a failure, or if the barrier does not end within a quarter of a second, the backend
   keeps the communicator, because requests may still use it. With NCCL and its relatives, destroy it after the
   barrier, and abort it after a failure.

Why messages of two groups never mix
------------------------------------

MPI matches a message by communicator, sender and tag, so it never confuses messages of two groups whose tags
are equal. It also keeps its collectives apart from messages in the same communicator. In the next program, ranks
0 and 2 have two groups in common, the world and a pair. Rank 0 sends a message with the same tag in each, and rank 2
receives them in the opposite order:

.. listing:: gallery/library/groups_and_tags/groups.py
   :part: groups

Within a group, however, messages of one sender with one tag must stay in order. The frame begins them in the order of
the calls, and the thread of the library passes them to MPI, which promises that messages do not overtake: if two
messages of one sender match the same receive, the receive gets the earlier one.

For a receive from any rank, the backend passes ``MPI_ANY_SOURCE``, and learns the sender from the status of the
request. The program ends with such receives: ranks 0 and 2 each send three messages to rank 1:

.. listing:: gallery/library/groups_and_tags/groups.py
   :part: order
"""

from launcher import launch

launch("groups_and_tags/groups.py", ranks=3)

# %%
# Rank 2 has received the 2 in the group of two before the 1 in the world, although the 1 was sent first. On rank 1,
# messages of the two senders may alternate in any way, but those of each are in order.
#
# Bug: one space of tags for two purposes
# ---------------------------------------
#
# The backend sends messages of its own, too. Before a collective, the ranks exchange *heads*, short messages that say
# what each one runs, so that errors can describe calls that do not agree. Heads use the communicator of the group, and
# so do the messages of the program, so only the tag keeps the two apart. To show what can go wrong, the next program
# exchanges heads in Python:
#
# .. listing:: gallery/library/groups_and_tags/one_tag_space.py
#    :part: wrapper
#
# The program then runs the same calls twice, each time with another of these functions, which turn the tag of a message
# into the tag that is sent:
#
# .. listing:: gallery/library/groups_and_tags/one_tag_space.py
#    :part: tags
#
# Rank 0 sends the number 42 with tag 0, which is PyTorch's default, and then begins a collective of 4096
# bytes. Rank 1 begins the collective and then receives the message, which a correct program may do:
#
# .. listing:: gallery/library/groups_and_tags/one_tag_space.py
#    :part: use

launch("groups_and_tags/one_tag_space.py", ranks=2)

# %%
# With ``same``, rank 1 takes the message for a head, and the head for the message. MPI has kept its promise,
# because the message was sent first. The fix moves the tags of the program above those of the backend, as
# ``above_the_head`` does:
#
# .. listing:: extension/mpi_collectives/src/calls.hpp
#    :part: tags
#
# The tags between ``kHeads`` and ``kFirstMessage`` are for long data, as the next section explains. The largest tag of
# MPI is its attribute ``MPI_TAG_UB``, which is at least 32767. The largest tag of a program is less by
# ``kFirstMessage``. For a larger tag the backend raises an error, after which the group is broken, as after each error
# of a transport.
#
# A message and its note
# ----------------------
#
# Each message carries a *note* that describes the tensor, so that the receiver can compare the dtype. If the note and
# the tensor were two messages, a receive from any rank could take the note of one sender and the tensor of another.
# To put both into one buffer, the backend would have to copy the tensor. So it passes MPI a datatype that lists the
# two places in memory, and MPI sends them as one message:
#
# .. listing:: extension/mpi_collectives/src/calls.hpp
#    :start-at: MPI_Count lengths[]
#    :end-before: // A send ends when
#
# With much data, such a message would be slow. Between processes of a host, MPICH copies only a few KiB in each test
# if the data is in two places, and the library's thread naps between its tests.
#
# So if there is more data than 8 KiB, the backend sends only the note in this way. When the receiver has
# the note, it knows the sender and the size, so MPI can move the data from one address to the other as a second
# message. The tag of this message is a number from the note, so that data of two messages is not confused:
#
# .. admonition:: ``Message`` and ``LongData``
#    :collapsible: closed
#
#    .. listing:: extension/mpi_collectives/src/calls.hpp
#       :part: message
#
#    .. listing:: extension/mpi_collectives/src/calls.hpp
#       :part: long-data
#
# When a send ends, and what it learns
# ------------------------------------
#
# Sends are synchronous: ``MPI_Issend`` ends only when the matching receive has begun. A standard send may
# end as soon as MPI has copied the data. Then a program in which all ranks send before they receive works
# with small tensors and hangs with large ones. With synchronous sends the bug shows at any size, as
# :doc:`/right/variants-and-groups` demonstrates.
#
# If the sizes differ, the receiver sees it in the note, and its error names both sizes. But data of up to 8 KiB comes
# in one message with its note. If this data is longer than the receiver's tensor, MPI truncates the message, and the
# error says only that. The sender of a short message learns of neither error from MPI, which reports only that the
# matching receive has begun.
#
# The next program sends with a tag that is too large, and then, in a new group, three numbers to a receive of two:
#
# .. listing:: gallery/library/groups_and_tags/errors.py
#    :part: errors

launch("groups_and_tags/errors.py", ranks=2)

# %%
# The second send has returned, but its group is broken from then on: the receiver announces its error, and later
# operations of both ranks raise it. So no rank goes on with a wrong number after a wrong tag or a wrong size.
#
# Other libraries
# ---------------
#
# UCX and libfabric have no groups, but tags of 64 bits. So choose a number for each group, and make it a part of the
# tag. All members must use the same number, and no rank may use it for two groups. A hash of the group's name can
# collide, so let the members exchange which numbers are free on each, through the keys of the group in the store, and
# take one that is free on all.
#
# .. admonition:: For reference: groups and tags of other libraries
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - library
#         - groups
#         - tags
#       * - MPI 3
#         - ``MPI_Comm_create_group``, with a parent, and with a number in place of the name
#         - as in MPI 4
#       * - NCCL and its relatives
#         - a new unique id for each group, or ``ncclCommSplit``, which all ranks of the old communicator call;
#           those outside pass ``NCCL_SPLIT_NOCOLOR``
#         - ``ncclSend`` and ``ncclRecv`` have none
#       * - UCX
#         - none: a worker receives from all its endpoints
#         - 64 bits, and a mask of those that must match. Put group, sender and tag into them, as MPICH does when
#           it uses UCX; a receive from any rank leaves the sender out of the mask. A receive
#           that is done at once does not call its callback; ``recv_info.tag_info`` of its parameters says whose
#           message it got, since UCX 1.16. Before, set ``UCP_OP_ATTR_FLAG_NO_IMM_CMPL``, so that there is always a
#           request, and ask ``ucp_tag_recv_request_test``
#       * - libfabric
#         - none: an endpoint receives from all addresses
#         - 64 bits, and a mask of those to ignore, so its bits have the opposite meaning
#
# .. admonition:: A library without messages
#    :collapsible: closed
#
#    If your library has no messages, or they lack tags or receives from any rank, derive from ``StoreTransport``,
#    which comes with the frame, and leave ``send`` and ``receive`` to it. ``can_block`` must then stay true. If you
#    use the frame's ``Watch`` (:doc:`lost-ranks-of-a-library`), also override ``failure``, ``lost``, ``announce``
#    and ``leave``, because ``StoreTransport`` and ``Watch`` use the same keys.
#
# .. admonition:: After this page you have decided
#
#    - which function makes the communicator of a new group, and which ranks must call it;
#    - which tags your own messages have, and which error a program gets for a tag that is too large;
#    - whether a message and its note travel together, and up to which size;
#    - when a send ends: after its receive has begun, or earlier;
#    - when a communicator is freed, and when it is kept.
#
# Not run here: these libraries, for which the table follows their headers and documentation.

"""
Groups and device meshes
========================

Large models are trained with several groups at a time: a mesh of two dimensions gives each rank one group
for its row and one for its column. A backend that was only tested with one group can deadlock there, or fail when
PyTorch splits a group. This page helps you decide when a group connects the ranks, what your library does in a
split, and which calls of a group may share a stream.

.. diagram:: accelerators/groups_and_meshes/diagram

The default group and its backends
----------------------------------

By default, the groups of a mesh have the backends of the default group, so choose these backends first. A group can
have a backend for each type of device, and PyTorch chooses the one for the tensor's device. In the next worker, the
default group has gloo for the CPU beside ``simccl``, and a second group has ``simccl`` only. This part of it prints
the first three lines of the output:

.. listing:: gallery/accelerators/groups_and_meshes/two_devices.py
   :part: backends
"""

from launcher import launch

output, of_rank_1 = launch("groups_and_meshes/two_devices.py", ranks=2, show=False)
print(output, end="")
print("rank 1 prints the same:", of_rank_1 == output)

# %%
# The third line comes from the second group: without a backend for the CPU, a group refuses tensors of the CPU. So a
# program that also communicates on the host should name both backends. Collectives on Python objects then take the
# CPU's backend, and need no copy to the device.
#
# The other lines show that gloo refuses a tensor of ``sim``, and that a rank uses two devices. The box explains them.
#
# .. admonition:: Gloo in place of a library, and two devices on one rank
#    :collapsible: closed
#
#    While your library is not ready, gloo cannot simply take its place, because gloo takes tensors of the CPU and
#    CUDA only. A group with ``sim:gloo`` gets an error:
#
#    .. listing:: gallery/accelerators/groups_and_meshes/two_devices.py
#       :part: gloo
#
#    Gloo is the library of ``simccl``, although gloo refuses tensors of ``sim``: the host can read the memory of this
#    device, so ``simccl`` passes it to gloo as tensors of the CPU. For hardware, do the same with copies in pinned
#    memory.
#
#    At its end, the worker above uses two devices on each rank, and reduces a tensor on each, while a gate holds the
#    communication of the first:
#
#    .. listing:: gallery/accelerators/groups_and_meshes/two_devices.py
#       :part: devices
#
#    On two devices, a group needs two streams. But its library matches collectives by their order, so the second
#    collective waits for an event of the first. The time line shows that: although only the stream of ``sim:0`` has
#    the gate, the all-reduce of ``sim:1`` begins after that of ``sim:0``.
#
# When a group connects
# ---------------------
#
# After choosing the backends, decide when yours connects the ranks. A library for an accelerator connects devices, and
# not processes. Without further information, a backend knows its
# device only when the first tensor arrives, and must connect the ranks in the middle of the first call. So ask your
# users to pass ``device_id=`` to ``init_process_group``. Your backend then learns of its device at one of these
# moments:
#
# - Right after the constructor: PyTorch tells the backend its device and calls ``eagerConnectSingleDevice`` if
#   ``supportsSplitting`` returns true.
# - Before the constructor: ask ``process_group->getBoundDeviceId()`` in the create function (since PyTorch 2.14), and
#   the same method of the parent in ``split``.
#
# A communicator belongs to one device, so refuse tensors of others. The library of ``simccl`` needs no device to
# connect. So it connects in the constructor, and ``eagerConnectSingleDevice`` only creates the stream:
#
# .. listing:: extension/frame/c10d_frame/include/streams/backend.hpp
#    :part: eager
#
# How a mesh creates its groups
# -----------------------------
#
# ``device_id`` also changes how PyTorch creates other groups. Four ranks make a mesh of four groups: the rows
# ``[0, 1]`` and ``[2, 3]``, and the columns ``[0, 2]`` and ``[1, 3]``. Each rank contributes a power of ten, so a sum
# shows which ranks it comes from. The worker makes the mesh without ``device_id`` and with it, and notes the
# functions that the mesh calls to create its groups:
#
# .. listing:: gallery/accelerators/groups_and_meshes/mesh.py
#    :part: mesh

import os

os.environ["SIM_DEVICES"] = "4"
launch("groups_and_meshes/mesh.py", ranks=4)

# %%
# Without ``device_id``, every rank calls ``new_group`` for each of the four groups, although it is a member of two.
# With ``device_id``, every rank calls ``split_group`` once for the rows and once for the columns.
#
# ``split_group`` calls ``split`` of each backend on all ranks of the parent group, and passes a store in which
# PyTorch has set the keys of the new group apart. On a rank that is in no new group, ``split`` gets the ranks of the
# first new group, and must return a null pointer.
#
# Because ``split`` is a method of the parent, a library can reuse what the parent knows about its network. ``simccl``
# does not: it has the ``split`` of the frame, which :doc:`/right/variants-and-groups` shows, and which starts a new
# group.
#
# A program with ``device_id`` may also call ``new_group`` itself, for example for ranks 0 and 1 of four, with the
# same backend. NCCL then splits the default group, so all four ranks must take part. On ranks 2 and 3, PyTorch calls
# the Python method ``perform_nocolor_split`` of the backend. ``Backend.hpp`` does not declare this method, but your
# class needs it if ``supportsSplitting`` returns true. If your create function does not split the parent, the method
# must do nothing: :doc:`/tutorial/releases`.
#
# .. admonition:: ``connect`` with a prefix
#    :collapsible: closed
#
#    When PyTorch splits a group with gloo and ``simccl``, both backends get the same store. In it, gloo and the gloo
#    inside ``simccl`` would read each other's addresses, and connect to the wrong one. So ``simccl`` adds to its keys
#    a prefix, which rank 0 draws when all ranks have met:
#
#    .. listing:: extension/frame/c10d_frame/include/streams/connect.hpp
#       :part: connect
#
#    .. listing:: extension/stream_collectives/src/sim/library.hpp
#       :part: start
#
# Streams for collectives and for messages
# ----------------------------------------
#
# Once a mesh has its groups, a rank has calls of several groups open at a time. Groups must not wait for each other,
# so each has streams of its own, as :doc:`order-and-abort` shows. Within a group, collectives share one stream,
# because the order of their calls is the same on all ranks.
#
# Messages need more streams, because PyTorch matches them by rank and tag, and a rank may receive in another order
# than its peer sends. For example, rank 0 sends tag 1 and then tag 2, while rank 1 receives tag 2 first. With a
# single stream on each rank, rank 0 would wait for a receive of tag 1, rank 1 would wait for a send of tag 2, and
# neither wait would end.
#
# So ``simccl`` has a stream for each direction, peer and tag. The code calls the key of such a stream a *lane*. Its
# ``Kind`` says whether the rank sends or receives:
#
# .. listing:: extension/frame/c10d_frame/include/streams/lanes.hpp
#    :part: lane
#    :end-before: // A group calls it for
#
# .. admonition:: ``lane``, ``stream_of`` and ``free_stream``
#    :collapsible: closed
#
#    ``kind`` is the operation, and is missing for a batch:
#
#    .. listing:: extension/frame/c10d_frame/include/streams/lanes.hpp
#       :start-at: // A group calls it for
#       :end-before: // [/lane]
#
#    A device keeps its streams, so a new tag for each message must not need a new stream. Therefore ``free_stream``
#    takes one whose messages can no longer hold up the new message:
#
#    .. listing:: extension/frame/c10d_frame/include/streams/lanes.hpp
#       :part: free-stream
#
# If your library has no tags, or its communicator must not run in several streams, let ``has_tags`` of the library
# return false. Messages then run in the stream of the collectives, so both ranks must send and receive in one order.
# Tags other than 0 and receives from any rank are then refused.
#
# The next worker sends the messages of the example, tag 1 and tag 2, in two ways: first the ranks begin both messages
# before they wait, then they wait for each message before they begin the next:
#
# .. listing:: gallery/accelerators/groups_and_meshes/messages.py
#    :start-at: def exchange(
#    :end-before: torch.accelerator.synchronize()

launch(
    "groups_and_meshes/messages.py",
    ranks=2,
    expected_stderr="Backend simccl: |.*Warning: Backend simccl: ",
)

# %%
# Because each tag has a stream, the result is right if the ranks wait at the end. If they wait for each message, as
# ``dist.send`` and ``dist.recv`` do, the streams cannot help. On rank 0, the caller's stream then waits until tag 1 is
# sent, and the send of tag 2 waits for the caller's stream. On rank 1, the receive of tag 1 waits in the same way for
# that of tag 2, so nothing moves until the watchdog reports a timeout. A program must therefore use one order of tags
# on both sides, or begin all messages before it waits.
#
# ``batch_isend_irecv`` is the better tool, because its messages arrive as one call, as :doc:`five-steps` shows.
# ``simccl`` runs that call in the stream of the collectives, so both ranks must call the batch at the same place
# among their collectives.
#
# A test with one group, whose messages all go in one order, finds none of these failures. So test a mesh with
# ``device_id`` and without it, and test messages that the two ranks send and receive in different orders.
#
# .. admonition:: After this page you have decided
#
#    - when a group connects: in the constructor, in ``eagerConnectSingleDevice``, or at the first tensor;
#    - what ``split`` reuses of its parent;
#    - whether your create function splits the parent, and what ``perform_nocolor_split`` then does;
#    - which calls of a group share a stream;
#    - whether you serve tags and receives from any rank, or refuse them.
#
# Not run here: NCCL, and a library that reuses connections in a split.

"""
A transport over sockets
========================

The algorithms of this part need only messages between two ranks. This page implements them with sockets, in
``tcp``, a backend of about :count:`lines-of-tcp` lines; UCX, libfabric or verbs can take the place of the sockets. A
transport that is written too simply has three faults: strangers can join, a collective waits behind a message that no
rank receives, and each connection needs a thread. The page shows how ``tcp`` avoids them.

.. diagram:: algorithms/sockets/diagram

What your library must provide
------------------------------

The algorithms of this part send and receive through a class ``Messages``, which has five functions. Write them for
your library:

.. listing:: extension/frame/c10d_frame/include/frame/messages.hpp
   :part: interface

A ``Transfer`` is one message to another rank, or from it, with its bytes, of which there may be none, and its channel,
0, 1 or 2. On each channel, the messages from one rank to another arrive in order, and no channel waits for another one.
Your code sets ``ended`` when the bytes may be used again: a send may end before its message has arrived.

Derive your class from ``Connections``, which adds five functions to ``Messages``. Each has a default, so override only
those that your library needs:

.. admonition:: The five functions of ``Connections``
   :collapsible: closed

   .. listing:: extension/frame/c10d_frame/include/frame/connections.hpp
      :part: connections

The frame needs no more than these ten functions. With them, its class ``ConnectionTransport`` implements every
collective and messages with tags, lets threads sleep, and knows which ranks are alive.

To use your own library, create :doc:`a project </tutorial/next-steps>` with
``make new-backend NAME=acme KIND=messages``. It works before you replace anything.

Programs use ``tcp`` like any other backend. In the next worker, an all-reduce adds up the numbers of the ranks, and
then each rank sends the sum plus its own number to the next rank:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/algorithms/sockets/four_ranks.py
      :part: calls
"""

from launcher import launch, run_program

launch("sockets/four_ranks.py", ranks=4)

# %%
# Addresses in the store
# ----------------------
#
# Ranks of different hosts find each other through the store of the group. Each rank listens at a port that
# the system chooses, and publishes its address there, which must be one that the other hosts can reach.
#
# A host often has several interfaces: one for its users, one for the ranks, and one of a container system, which
# leads nowhere. No rule finds the right one everywhere, so ``tcp`` has a simple default and an option. The default is
# the first interface that is up and is not the loopback, with IPv4 before IPv6. ``Options.interface`` names another
# one. It may differ from host to host, because a rank uses it only for the address that it publishes.
#
# A token against strangers
# -------------------------
#
# Any program that reaches the port can connect to it: a scanner of the network, or a rank of another job that had the
# same port before. So each rank also publishes a *token*, a random number of 128 bits drawn for this group, with which
# its callers must first say hello. A *caller* is the side that opens a connection; between two ranks, the one with the
# larger number calls. Only a program that can read the store knows the token, so a rank drops any other caller:
#
# .. admonition:: The token in the store, the hello, and ``is_taken``, which drops strangers
#    :collapsible: closed
#
#    .. listing:: extension/tcp_collectives/src/connect.hpp
#       :part: publish
#
#    .. listing:: extension/tcp_collectives/src/connect.hpp
#       :part: hello
#
#    .. listing:: extension/tcp_collectives/src/connect.hpp
#       :part: stranger
#
# A stranger may also say nothing, and would hold up a rank that waits for its hello. So a rank reads from all callers
# side by side, and closes its port when the last rank has connected.
#
# The token does not hide anything: messages cross the network as they are. So use ``tcp``, like NCCL and gloo, only
# in a network that you trust.
#
# Three connections between two ranks
# -----------------------------------
#
# A connection delivers in order, so a message that no rank receives stops all messages behind it. Each pair of ranks
# therefore has one connection for each kind of message that must not wait for another kind:
#
# .. list-table::
#    :header-rows: 1
#
#    * - channel
#      - messages
#      - because
#    * - 0
#      - collectives
#      - all ranks call a collective, so its receives begin soon
#    * - 1
#      - steps that run beside others of the same collective
#      - two algorithms at a time must not take each other's messages
#    * - 2
#      - ``send`` and ``recv`` of programs
#      - a receive may begin much later, or never
#
# The next worker counts with ``psutil`` what a group of four ranks adds to a process. Then rank 1 is late for two
# seconds, and each rank prints whether it has kept a processor busy meanwhile:
#
# .. admonition:: The connections, the threads, and the late rank
#    :collapsible: closed
#
#    .. listing:: gallery/algorithms/sockets/connections.py
#       :start-at: def connections
#       :end-before: # [/late]

launch("sockets/connections.py", ranks=4)

# %%
# Each of the four ranks has three connections to each of the three others, nine in all. The three threads are those
# of any group in the frame: one moves data while the program computes, one calls back, and one watches the other
# ranks. Their number does not grow with the ranks, because no thread belongs to a connection.
#
# The lines with ``busy`` prove that the ranks sleep while rank 1 is late, because a thread that polled would use its
# processor for two seconds.
#
# Nonblocking sockets
# -------------------
#
# One connection must not hold up the others. So all sockets are nonblocking: a call moves what the kernel takes or
# has, and otherwise fails with ``EAGAIN``. A transfer therefore waits in a queue of its connection.
#
# A system call for each socket, only to ask whether it is ready, would take too long. So one *epoll*, an object of
# the kernel, watches all sockets, and one call of ``epoll_wait`` reports those that are ready.
#
# On the connection, the size of each message goes before its bytes. Because many messages are small, one call of
# ``sendmsg`` or ``recvmsg`` takes up to eight of them:
#
# .. admonition:: ``begin``, ``progress`` and ``move``, which queue and move transfers
#    :collapsible: closed
#
#    A ``Line`` is a connection with its two queues. The epoll is edge-triggered (``EPOLLET``): it reports a socket
#    once when it becomes ready, and ``is_ready`` remembers that until the kernel refuses.
#
#    .. listing:: extension/tcp_collectives/src/sockets.hpp
#       :part: begin
#
#    .. listing:: extension/tcp_collectives/src/sockets.hpp
#       :part: progress
#
#    .. listing:: extension/tcp_collectives/src/sockets.hpp
#       :part: move
#
# Sleep on a descriptor
# ---------------------
#
# When nothing can move, a thread that waits for a result should sleep until a socket is ready or another thread
# begins an operation. The frame has a class for that, ``FileBell``. In its function ``rest``, the thread polls two
# descriptors: the epoll, which has a file descriptor itself, and an *eventfd*, which another thread can ring. If
# several threads wait, only one polls, and the rest wait for a condition variable.
#
# If another thread rings just before the sleep, the sleeper must not miss it. So ``rest`` reads how often the bell has
# rung, looks once more for what can move, and sleeps only if no thread has rung since:
#
# .. admonition:: ``FileBell``
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/frame/file_bell.hpp
#       :part: file-bell
#
# If your library has a descriptor that can be polled, return it from ``file`` in place of the epoll. Some libraries
# have a function to call just before each sleep, such as ``ucp_worker_arm`` of UCX. Call it in ``arm``, and return
# false if the library has new work. The box names the calls:
#
# .. admonition:: For reference: the descriptors of UCX, libfabric and verbs
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - library
#         - descriptor
#         - before each sleep
#       * - UCX
#         - ``ucp_worker_get_efd``
#         - ``ucp_worker_arm``; if it says busy, look again
#       * - libfabric
#         - that of a wait object, ``FI_WAIT_FD``
#         - ``fi_trywait``
#       * - ``libibverbs``
#         - that of a completion channel
#         - ``ibv_req_notify_cq``, then look once more
#
# Without a descriptor, leave ``file`` out: a thread of the frame then polls, and naps between its calls.
#
# Flow control
# ------------
#
# A rank may send faster than another one receives. If the receiver read all that comes, its memory would grow without
# a limit. So ``tcp`` reads a message only when a receive has begun. Until then, some of it is in the buffers of the
# kernel, and the rest stays in the sender's tensor. Here, rank 0 sends four messages of 64 MiB, and both ranks reduce
# before rank 1 receives:
#
# .. listing:: gallery/algorithms/sockets/too_much_sent.py
#    :part: flow

launch("sockets/too_much_sent.py", ranks=2)

# %%
# The last line shows that rank 1 keeps no more than 32 of the 256 MiB. Most of the bytes are still in the tensors of
# rank 0, so none of its sends has ended, as the first line says.
#
# The all-reduce did not wait behind the 256 MiB, because collectives have a connection of their own. The price of
# reading so late is that a long ``send`` ends only when the other rank receives. Two ranks that both call
# ``dist.send`` before ``dist.recv`` therefore wait for each other, as in MPI; ``isend`` avoids that.
#
# Tags need one exception. If a receive waits for tag 6, and a message with tag 5 is in front, the frame must
# read that message and keep it. The frame keeps up to 64 MiB from each rank, and then reads no further.
#
# Training on two hosts
# ---------------------
#
# To try these connections between hosts, the next program starts a ``torchrun`` with two ranks on each of two simulated
# hosts, which have networks of their own, as in :doc:`/library/several-hosts`. The four ranks train a small model with
# ``DistributedDataParallel`` (DDP) and then with FSDP2, each with ``tcp`` and with gloo. At the end, they compute
# the mean of the four ranks' losses for each of the five steps, and rank 0 prints it:
#
# .. admonition:: Two hosts, their launchers, and the training
#    :collapsible: closed
#
#    .. listing:: gallery/algorithms/sockets/two_hosts.py
#       :part: hosts
#
#    .. listing:: gallery/algorithms/sockets/train.py
#       :part: train

run_program("sockets/two_hosts.py")

# sphinx_gallery_start_ignore
# time limit: 240
# sphinx_gallery_end_ignore

# %%
# The losses fall, and those of ``tcp`` equal those of gloo up to a tolerance, because two backends may add four
# numbers in different orders. So a library with nothing but messages can train models, if its transport drops
# strangers, lets no collective wait behind a message of the program, and sleeps on one descriptor for all connections.
#
# Exercise
# --------
#
# A job has 64 hosts with 8 ranks each. How many sockets does a group of all ranks need in each process, and on each
# host? By default, Linux lets a process have 1,024 descriptors. What would you change in ``tcp``?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    A rank has three connections to each of 511 others, so 1,533 sockets, and its host 12,264. The group does not
#    begin, and the error says which limit to look at, ``ulimit -n``. It helps to raise the limit. Better, connect two
#    ranks at the first message between them: a ring then needs two neighbours, and halving needs nine.
#
# .. admonition:: After this page you have decided
#
#    - how a rank finds the others, and how it knows that a caller is one of them;
#    - which interface your backend takes, and how a user names another one;
#    - which messages must not wait for others, and so how many connections two ranks have;
#    - on which descriptor a thread sleeps, and what wakes it;
#    - where a message stays that no rank has asked for.
#
# Not run here: strangers that call while the ranks meet, and IPv6, both of which only the tests of the backend run;
# networks between real machines; and the libraries of the table, which follows their documentation.

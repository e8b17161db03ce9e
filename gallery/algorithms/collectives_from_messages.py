"""
Collectives from messages
=========================

Sockets, UCX, libfabric and verbs move bytes between two ranks, but have no collectives. If collectives are written
into one transport, the next transport needs them again, and a new algorithm can be tested only with as many ranks as
you can start. So this page puts an interface between algorithms and transports. An algorithm is a short function that
sends and receives, and the backend ``tcp``, your transport and the simulator of :doc:`simulated-ranks` can all run
it.

What an algorithm sees
----------------------

An algorithm is a coroutine, a function that can pause while it waits for a message, and every rank runs it. Its
signature is ``Steps name(Messages& net, const Operation& op)``. ``net`` reaches the other ranks, and ``op`` is the
operation that the program has called. The ring in the next section needs most of these names:

.. list-table::
   :header-rows: 1

   * - name
     - what it does
   * - ``net.send(to, bytes)``, ``net.receive(from, bytes)``
     - begins a ``Transfer``, and does not wait; ``co_await`` waits for its end
   * - ``SendReceive``, ``Transfers``
     - one send and one receive, or any number of transfers, which go on side by side
   * - ``net.memory(size)``, ``net.copy(to, from)``
     - memory for intermediate results, and a copy within a rank
   * - ``op.in``, ``op.out``
     - the input and the output: one piece of bytes each, or one for each rank
   * - ``begin_reduction``, ``combine``
     - ``begin_reduction`` puts an input into the output or into other memory, and divides it if the reduction is
       ``AVG``; ``combine`` reduces two pieces to one
   * - ``Shares(bytes, count)``
     - bytes cut into shares for the ranks, at multiples of 16 bytes

.. admonition:: For reference: the other names
   :collapsible: closed

   .. list-table::
      :header-rows: 1

      * - name
        - what it does
      * - ``co_await`` of other ``Steps``, ``Together``
        - runs another algorithm as a part of this one, or several side by side
      * - ``net.host(rank)``
        - a number that only the ranks of one host share
      * - ``Part(net, ranks)``, ``Part(net, ranks, 1)``
        - some of the ranks, on which another algorithm can run; with 1, on a second channel, so that two algorithms
          that run side by side do not receive each other's messages

The bytes of a transfer belong to the transport until the transfer has ended: an algorithm may not read what it
receives, or change what it sends. At each ``co_await`` that must wait, the coroutine is suspended, and its thread
continues with other operations, as :doc:`/right/asynchronous-work` shows.

The ring
--------

In a ring, each rank sends only to the next one, and receives only from the previous one. The tensor is cut into as
many shares as there are ranks. First each share goes around the ring, and every rank adds its own numbers to it.
Then the finished sums go around:

.. diagram:: algorithms/collectives_from_messages/diagram

.. listing:: extension/frame/c10d_frame/include/frame/algorithms/all_reduce.hpp
   :part: ring

``Shares`` counts around the ring, too, so share -1 is the last one. Because each share is added up along one path,
all ranks get copies of one sum, and so the same bits.

Begin both, then wait
---------------------

A small message may be copied into a buffer, so that its send ends at once. For a large message, a buffer would take
too much memory, so the send waits until the other rank has begun to receive. An algorithm cannot know which messages
are large for a transport, so it must be right even if every send waits for its receive. If all ranks of a ring first
waited for their sends, no rank would begin to receive. ``SendReceive`` therefore begins the send and the receive
before it waits for either one:

.. admonition:: ``SendReceive``
   :collapsible: closed

   .. listing:: extension/frame/c10d_frame/include/frame/messages.hpp
      :part: send-receive

   ``missing`` returns the ranks that the operation waits for, so that the error of a timeout can name them.

Thousands of ranks, or real bytes
---------------------------------

An algorithm can be tried without a transport and without hosts, because the simulator of the package ``c10d_frame``
runs the same functions in virtual time. It compiles in seconds and needs no PyTorch. Here groups of 3, 64 and 512
ranks reduce 1 MiB, with at most eight ranks on a host:
"""

from c10d_frame.simulate import simulate

print(simulate("operation=all_reduce", "algorithm=ring", "ranks=3,64,512", "bytes=1048576"))

# sphinx_gallery_start_ignore
ring = simulate("algorithm=ring", "ranks=3,64,512").splitlines()[1:]
for line, ranks in zip(ring, (3, 64, 512), strict=True):
    assert line.split()[5] == str(2 * ranks * (ranks - 1))
# sphinx_gallery_end_ignore

# %%
# A ring of ``n`` ranks takes ``2 (n - 1)`` steps, and in each, every rank sends one share. The last column says whether
# a transport would choose this algorithm, as :doc:`steps-or-bytes` explains.
#
# For this table, the simulator moves no data, so even an algorithm with a wrong result gets a time. With
# ``check=yes``, it moves real bytes and compares the results, for groups of up to 33 ranks. It also lets every send
# wait for its receive.
#
# Each all-reduce then runs once more, with a reduction in which the order counts, and must give all ranks the same
# bits. The next line checks all algorithms of the frame:

print(simulate("check=yes"))

# %%
# Three algorithms with a bug
# ---------------------------
#
# To see what the simulator finds in an algorithm of your own, pass it a header that gives the algorithm a name. The
# header of this section has three algorithms, each with a bug. The first is an all-gather around the ring. It sends,
# waits, and then receives:
#
# .. listing:: gallery/algorithms/collectives_from_messages/wrong.hpp
#    :part: sends-first
#
# A table of times does not show the bug, because no send waits in it. The check finds the bug, because every send
# waits there, as large messages may wait in a network:

wrong = ["collectives_from_messages/wrong.hpp"]
options = ["operation=all_gather", "algorithm=sends_first", "ranks=3", "bytes=48"]
print(simulate(*options, headers=wrong))

try:
    simulate("algorithm=sends_first", "check=yes", headers=wrong)
except RuntimeError as error:
    print(error)

# %%
# The simulator finds a deadlock at once, because nothing is left to happen, and names the ranks that wait. The fix is
# ``SendReceive``.
#
# The second algorithm with a bug is an all-gather in which each rank sends its piece to all ranks in one loop:
#
# .. listing:: gallery/algorithms/collectives_from_messages/wrong.hpp
#    :part: to-itself

from textwrap import fill

try:
    simulate("operation=all_gather", "algorithm=to_all", "ranks=3", "bytes=48", headers=wrong)
except RuntimeError as error:
    print(fill(str(error), 90))

# %%
# The bug is that the loop does not leave out the rank itself. A rank already has its own piece and can copy it, so no
# algorithm needs a message to the rank itself, and the interface refuses it.
#
# The third algorithm is the ring from above, but receives each share into the whole of ``memory``:
#
# .. listing:: gallery/algorithms/collectives_from_messages/wrong.hpp
#    :part: sizes
#
# That is right as long as all shares are equally large. Three ranks cut 48 bytes into equal shares, but 64 bytes into
# shares of 32, 32 and 0. The next cell runs the algorithm with both sizes:

options = ["operation=all_reduce", "algorithm=equal_ring", "ranks=3"]
print(simulate(*options, "bytes=48", headers=wrong))

try:
    simulate(*options, "bytes=64", headers=wrong)
except RuntimeError as error:
    print(fill(str(error), 90))

# %%
# A message must have exactly the size that its receiver expects, so that a wrong size does not become a wrong result.
# Over sockets, the rank that receives raises an error like these.
#
# Rules for algorithms
# --------------------
#
# A transport cannot refuse every bug, so an algorithm must also follow these rules:
#
# .. list-table::
#    :header-rows: 1
#
#    * - rule
#      - reason
#    * - Begin the send and the receive of a step before you wait for either one.
#      - A send may wait until the other rank has begun to receive.
#    * - Touch bytes only with ``net.copy`` and the functions of ``op``.
#      - The simulator has no bytes for its table, so an algorithm that reads them crashes the process.
#    * - Decide only by what all ranks know: the ranks, the hosts, and ``op.note``, which describes the operation.
#      - Ranks that choose differently wait for messages that no rank sends.
#    * - Add up each share on one rank, or on all ranks in the same order.
#      - All ranks must get the same bits.
#    * - Cut at multiples of 16 bytes, and call ``begin_reduction`` once for each input.
#      - No element is split, and ``AVG`` divides once.
#
# From messages to a backend
# --------------------------
#
# A transport that has messages implements five functions, which :doc:`sockets` shows. ``MessageTransport``, a base
# class in ``message_transport.hpp``, turns these functions into every collective of a backend. It chooses the
# algorithm for you, and if two ranks call different collectives, its error names both:
#
# .. admonition:: ``MessageTransport``
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/frame/message_transport.hpp
#       :part: collective
#
#    ``choice_`` picks the algorithm. ``Noted`` sends a description of the operation before the first message to each
#    rank, and the receiver compares it with its own, so no algorithm compares anything.
#
# The backend ``tcp`` of :doc:`sockets` uses ``ConnectionTransport``, which is derived from this class, and passes the
# conformance suite with these algorithms.
#
# Exercise
# --------
#
# A barrier ends on no rank before all ranks have called it. Write one in which each rank sends an empty message to
# rank 0, which answers when it has received all. Predict how many messages 64 ranks send. Then compare with
# ``dissemination``, the barrier of the frame, which takes 6 steps.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Rank 0 receives 63 messages and sends 63, so there are 126. ``dissemination`` sends 6 messages from each rank,
#    384 in all.
#
#    .. listing:: gallery/algorithms/collectives_from_messages/central_barrier.hpp
#       :part: solution
#
# The solution in the simulator, first with real bytes:

central = ["collectives_from_messages/central_barrier.hpp"]
print(simulate("algorithm=central", "check=yes", headers=central))
print(simulate("operation=barrier", "ranks=64", "bytes=0", headers=central))

# %%
# ``central`` sends about a third of the messages of ``dissemination``, and yet takes longer, because rank 0 handles
# all one after another. So the number of messages does not decide which algorithm is fast; :doc:`steps-or-bytes`
# shows what does.
#
# Not run here: the errors of these algorithms over real sockets, and UCX, libfabric and verbs.

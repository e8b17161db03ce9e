"""
The smallest correct backend
============================

A backend that only moves bytes soon fails its users: ranks whose calls differ in dtype get wrong sums without an
error, and a dead rank leaves the others waiting. The backend of this page, ``store``, raises an error in both cases,
for a dead rank at the deadline. It runs every operation of ``torch.distributed`` for dense CPU tensors, and works
between hosts.

Everything around the data is hard, because a rank waits for others: asynchronous calls, futures, deadlines, dead ranks.
This work is the same for every library, so it is done once, in the *frame*: headers that pip installs as the package
``c10d-frame``.

What remains is the *transport*, which moves bytes from rank to rank. So that it runs anywhere, the transport on this
page uses the store of ``init_process_group``. It is slow, because every byte passes through one server, but you can
replace its functions one at a time. This backend has about :count:`lines-of-store` lines of C++, and the frame about
:count:`lines-of-frame`, without blank lines and comments.

.. diagram:: right/smallest_backend/diagram

What the frame does, and what you write
---------------------------------------

The table shows what is left for you to decide when you build on the frame:

.. list-table::
   :header-rows: 1

   * - the frame decides
     - the transport decides
   * - which tensors a method accepts, and how their bytes are laid out
     - how a block of bytes gets to another rank
   * - how numbers are reduced, for each dtype and each ``ReduceOp``
     - whether your library reduces, or the frame
   * - when a deadline has passed, and what the error says
     - how one rank tells the others that it has failed

A transport is a class of virtual methods, of which you must write three: ``exchange`` for collectives, and ``send``
and ``receive`` for messages. Keep PyTorch's headers out of the transport, so that new releases do not touch it:

.. admonition:: The methods of a transport
   :collapsible: closed

   .. not-executed::
      :partly:

      The transport of this page overrides the methods whose bodies are highlighted.

      .. listing:: extension/frame/c10d_frame/include/frame/transport.hpp
         :part: interface

   The frame calls the methods of the listing above from one thread at a time, so they need no lock. If one of them
   throws an exception, the group fails with the text of the exception, which the other ranks learn through
   ``announce`` and ``failure``.

   If ``can_block`` returns true, all calls come from the same thread, as some libraries require. There are three
   exceptions: the constructor and ``joined`` run on the thread that creates the group, and the destructor runs on any
   thread or never, so close your library in ``leave``. A waiting thread polls, unless you override two more methods,
   ``rest`` and ``wake``, which several threads may call at once.

``exchange``, ``send`` and ``receive`` are coroutines. Because a coroutine suspends itself instead of blocking, one
thread can drive many operations, and the frame can stop each of them.

An operation reaches the transport as contiguous blocks of bytes, which the code calls ``Pieces``. An all-gather, for
example, has one block as its input, and one for each rank as its output. An input may be the same memory as an
output:

.. admonition:: The blocks of each operation
   :collapsible: closed

   .. list-table::
      :header-rows: 1

      * - operation
        - ``in``
        - ``out``
      * - ``broadcast``
        - one, on the root
        - one, on the other ranks
      * - ``all_reduce``
        - one
        - one
      * - ``reduce``
        - one
        - one, on the root
      * - ``all_gather``
        - one
        - one for each rank
      * - ``gather``
        - one
        - one for each rank, on the root
      * - ``scatter``
        - one for each rank, on the root
        - one
      * - ``reduce_scatter``
        - one for each rank
        - one
      * - ``all_to_all``
        - one for each rank
        - one for each rank
      * - ``send``
        - one
        - none
      * - ``receive``
        - none
        - one

The listings use these names:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``Note``
     - describes a call, in numbers that are the same on all ranks: operation, dtype, reduction, size, root or tag
   * - ``Bytes``
     - a piece of memory that another object owns; ``Pieces`` are several, often one for each rank
   * - ``Blob``
     - bytes that own their memory; ``Blobs`` are one for each rank
   * - ``Operation``
     - a note, with the input and the output of this rank as pieces
   * - ``Steps``
     - a coroutine that runs one operation, and suspends itself to wait for other ranks
   * - ``Until``
     - a condition for which ``co_await`` waits, and the ranks that it is waiting for
   * - ``Keys``
     - the store of ``init_process_group``, with a prefix that belongs to this group alone

One method for all collectives
------------------------------

A transport need not know all collectives, because the frame makes each of them from one method, ``exchange``. In an
exchange, each rank publishes bytes and reads those of one rank, of all (``kEveryone``) or of none (``kNobody``). A
broadcast reads the bytes of one rank; a reduction reads those of all ranks and combines them:

.. listing:: extension/frame/c10d_frame/include/frame/transport.hpp
   :part: collective

In an all-reduce, each rank adds in the order of the ranks, so all of them get the same bits.
Reading everything is slow, so you later override ``collective`` for the operations that your library
has, and call ``Transport::collective`` for the others.

Two decisions make the ``exchange`` of ``store`` correct. First, each rank writes its bytes, then its note, and last
its line in a list, so that a rank that reads all lines also finds all bytes and notes. Second, every rank reads the
notes of all ranks, even if it needs no data from them. If two notes differ, for example in the dtype, every rank
fails for the same stated reason.

In the listing, all keys of this call begin with ``round``. ``write`` cuts the bytes into pieces of 4 MiB, because a
``TCPStore`` accepts at most 8 MiB for a value, and returns their keys. ``reader()`` is the rank that reads the bytes,
or "all". ``head`` packs the note and the sizes into bytes:

.. listing:: extension/frame/c10d_frame/include/store/store_transport.hpp
   :part: exchange
   :end-before: const auto heads

.. admonition:: The rest of ``exchange``, which compares the notes and reads
   :collapsible: closed

   .. listing:: extension/frame/c10d_frame/include/store/store_transport.hpp
      :start-at: const auto heads
      :end-before: // [/exchange]

Bug: erasing a key after the first read
---------------------------------------

A store keeps each key until it is deleted, so a transport must erase its keys. The obvious way is to
erase a key after reading it. If only one rank reads the key, this works:

.. listing:: gallery/right/smallest_backend/erased_keys.py
   :part: mistake

With more readers, the second one waits until the store times out. The fix relies on order: a rank begins an
operation only after it has finished the one before. So once all ranks have begun an operation, no rank still reads
keys of the one before:

.. listing:: gallery/right/smallest_backend/erased_keys.py
   :part: cure

The program runs both functions on three ranks, for two broadcasts. ``DistStoreError`` means that the store timed
out:
"""

from launcher import launch, run_program

run_program("smallest_backend/erased_keys.py")

# %%
# With ``read_and_erase``, only the first reader gets the value; with ``read_and_keep``, all ranks do. ``exchange``
# works like ``read_and_keep``, but needs no further key: when a rank has read the notes of all ranks, it knows that all
# have begun. So in each call, a rank then erases its keys of the call before.
#
# Messages
# --------
#
# An exchange needs all ranks, but a message only two, so the transport has two more methods: ``send`` and ``receive``.
# So that messages do not mix, the key of a message contains the sender, the receiver and a number that counts the
# messages of the sender. Each rank has a list in the store, its *mail*. The sender adds the number and the tag of the
# message to the mail of the receiver. When the receiver has read the data, it adds the number to the mail of the
# sender, so the sender learns that the message has arrived:
#
# .. diagram:: right/smallest_backend/message
#
# .. admonition:: ``send`` and ``receive``
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/store/store_transport.hpp
#       :part: messages
#
#    Two receives can wait for the same message, whether they name its sender or accept any. So ``find``
#    gives it to the earlier call.
#
# First results
# -------------
#
# To run the transport, PyTorch must know the backend. Besides the frame and the packaging, the backend is
# ``store_transport.hpp`` and these lines, which name it, add an option and register it:
#
# .. admonition:: ``registration.cpp``
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - name
#         - what it is
#       * - ``Place``
#         - what a transport needs to connect: rank, size, keys, a deadline, and the host of each rank
#
#    .. listing:: extension/store_collectives/src/registration.cpp
#
# A program imports the module, so that the backend is registered, and names it:
#
# .. listing:: gallery/right/smallest_backend/shortest_program.py
#    :part: program

launch("smallest_backend/shortest_program.py", ranks=2)

# %%
# Messages must not disturb collectives that run at the same time. To show that, each rank of the next worker sends
# its number and the square of this number to the next rank during an all-reduce:
#
# .. admonition:: A message during an all-reduce
#    :collapsible: closed
#
#    .. listing:: gallery/right/smallest_backend/first_results.py
#       :part: program

launch("smallest_backend/first_results.py", ranks=2)

# %%
# The message has not disturbed the all-reduce: both ranks have the sum 3, and rank 0 has ``[1, 1]``, the number of
# rank 1 and its square.
#
# The ranks of several hosts must also find each other. Here, two ``torchrun`` commands start the same worker, as on
# two hosts, although both run on this one:

launch("smallest_backend/first_results.py", ranks=4, nodes=2)

# %%
# Rank 0 has ``[3, 9]`` from rank 3, which the other ``torchrun`` started, so the ranks of both commands are in one
# group.
#
# The transport also has three methods for errors: :doc:`timeouts-and-dead-ranks` shows them, and the errors that the
# first paragraph of this page promises. It fails no check of :doc:`/communicate/test-your-backend`. To replace its
# methods by your own, begin with the project of :doc:`/tutorial/next-steps`, which derives from it.
#
# Exercise
# --------
#
# The barrier of this backend is an exchange without bytes. With a thousand ranks, each rank reads a thousand notes,
# a million in all. Which method do you override to count the ranks with ``Keys::add`` instead, and which bug in a
# program does this barrier no longer detect?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Override ``collective``, and call ``StoreTransport::collective`` for every other kind. The
#    barrier adds 1 to a key of its number, waits until the counter equals ``size()``, and erases the
#    counter of the barrier before it. It no longer detects a rank that calls another operation, and the
#    error at the deadline cannot name the missing ranks, because a counter does not say which ranks
#    have arrived. ``monitored_barrier`` has to name them, so leave it to ``exchange``.
#
# .. admonition:: After this page you have decided
#
#    - whether you build on the frame, or write works, deadlines and errors yourself;
#    - which operations your library runs, and which the frame makes from ``exchange``;
#    - whether your library reduces numbers, or the frame;
#    - how the ranks find out that their calls differ;
#    - when memory or a key that several ranks read may be erased.
#
# Not run here: several hosts. This page and the tests start all ranks on one host.

"""
The smallest backend that is right
==================================

This page builds a backend with all operations, all dtypes, timeouts and useful errors, which also
works between hosts. It takes one file, because most of a backend does not depend on how bytes move.

The dummy of the first part shows the interface of c10d, and its operations are complete before
they return. In a real backend, a rank waits for other ranks, and then everything around the data
gets hard: asynchronous calls, futures, deadlines, dead ranks, and tensors that are not contiguous.
You can write all this once, whatever library or hardware you have. On this site it is written
in ``extension/frame``, a folder of headers that you copy into your project.

What remains is the *transport*, which moves bytes from rank to rank. The one of this page uses the
store through which ``init_process_group`` lets the ranks find each other. It is slow, because each
byte goes through one server. But every program that uses ``torch.distributed`` has a store, so
the transport runs anywhere, and you can replace its functions one after another by your own.

.. diagram:: right/smallest_backend/diagram

Where the line is
-----------------

.. list-table::
   :header-rows: 1

   * - the frame decides
     - the transport decides
   * - which tensors a method accepts, and how their bytes are laid out
     - how a piece of bytes gets to another rank
   * - how numbers are reduced, for each dtype and each ``ReduceOp``
     - whether it reduces itself, or leaves that to the frame
   * - which thread runs an operation, and in which order operations start
     - whether its calls can block
   * - when a deadline has passed, and what the error says
     - how one rank tells the others that it has failed
   * - how the ranks of a group find each other, and that none of them is missing
     - what it needs to connect them, such as an address

The frame includes PyTorch's headers, and a transport must not. So a transport compiles in a few
seconds, can be tested without PyTorch, and does not change with the next release. It is a subclass
with a dozen methods. Only the three without a body are required:

.. listing:: extension/frame/transport.hpp
   :part: interface

``Steps`` is a coroutine. Where an operation needs another rank, it does not wait; it suspends
itself with ``co_await`` and says for what. The frame asks again until the condition is
true. So one thread can drive many messages side by side, and a deadline or a dead rank can end
any of them.

One function for ten collectives
--------------------------------

``exchange`` is the heart of a transport: each rank shows some bytes, and reads what others have
shown. With it, the frame has every collective. To broadcast is to read the bytes of one rank, and
to reduce is to read those of all ranks and add them up:

.. listing:: extension/frame/transport.hpp
   :part: collective

Each rank adds in the order of the ranks, so all of them get the same bits. A reduction that reads
everything is not fast. Later you override ``collective`` for the kinds of operations that your
library has, and leave the others as they are.

This is ``exchange`` of the store. It writes the bytes in pieces of at most 4 MiB, because a value of
a ``TCPStore`` must not exceed 8 MiB:

.. listing:: extension/store_collectives/src/store_transport.hpp
   :part: exchange

Two decisions make it right. The *note*, which describes the call, is written last: a rank that sees
it finds all the bytes as well. And every rank reads the notes of all ranks, also where it needs
no data from them. If they differ, one rank has called something else, and all ranks fail with the
same error. Without this comparison, a program with a wrong size would read garbage.

Messages
--------

A message has its own keys, which contain the sender, the receiver, the tag and a number. The sender
waits until the note is gone, because the receiver erases it after it has read the data:

.. listing:: extension/store_collectives/src/store_transport.hpp
   :part: messages

A receive may accept any source. Two receives can then wait for the same message, so ``find`` gives
it to the one that was called first.

Run it
------

The whole backend is ``store_transport.hpp`` and the following lines. They give it a name and
options, and register it:

.. listing:: extension/store_collectives/src/registration.cpp

The worker starts an all-reduce, sends and receives a message while the all-reduce is running, and
then waits for the sum:

.. listing:: gallery/right/smallest_backend/first_results.py
   :part: program
"""

from launcher import launch, run_program

launch("smallest_backend/first_results.py", ranks=2)

# %%
# Nothing in the transport assumes a single host. Here the same worker runs under two ``torchrun``
# commands, as it would on two hosts:

launch("smallest_backend/first_results.py", ranks=4, nodes=2)

# %%
# Errors that say what to look for
# --------------------------------
#
# A rank waits for others in ``exchange``, ``send`` and ``receive`` only, and each of them says for
# which ranks. That is why the frame can name them when the time is up. To learn of a
# failure sooner, it asks two questions every 50 milliseconds: has another rank announced a failure,
# and has a rank left for which this one waits?
#
# .. listing:: extension/store_collectives/src/store_transport.hpp
#    :part: lost
#
# The next worker creates three groups. In the first one, the ranks disagree about the size. In
# the second one, rank 1 never calls. In the third one, rank 1 has destroyed the group:
#
# .. listing:: gallery/right/smallest_backend/errors.py
#    :part: calls

launch("smallest_backend/errors.py", ranks=2)

# %%
# Each error names the operation, its number in the group, the group, and the ranks. A failed group
# stays failed, because its ranks no longer agree on what has happened. Other groups go on.
#
# A store does not notice when a process dies. A killed rank therefore costs the others their
# timeout, unless the store was in that process: then their next call fails at once.
#
# Train with it
# -------------
#
# A backend that is right gives the same losses as another one. The worker trains one model with
# DDP and one with FSDP2, each with a group of ``store`` and a group of gloo:
#
# .. listing:: gallery/right/smallest_backend/train.py
#    :part: train

launch("smallest_backend/train.py", ranks=2)

# %%
# With two ranks, the losses are equal bit for bit, because a sum of two numbers does not depend on
# their order. :doc:`/communicate/test-your-backend` tests what a training run does not call:
# ``store`` passes all checks of that suite that apply to it.
#
# A bug: to erase what has been read
# ----------------------------------
#
# A store never forgets, so a transport must erase its keys. The first idea is to erase a key after
# reading it. With two ranks, this even works:
#
# .. listing:: gallery/right/smallest_backend/erased_keys.py
#    :part: mistake
#
# With three ranks, the second reader waits for a key that no longer exists. The fix uses
# what each rank knows: a rank that begins the next operation has ended the one before. When
# all ranks have begun the second operation, nobody reads keys of the first one any more:
#
# .. listing:: gallery/right/smallest_backend/erased_keys.py
#    :part: cure
#
# The program calls each function for three ranks and two broadcasts:

run_program("smallest_backend/erased_keys.py")

# %%
# ``exchange`` does the same without further keys: the notes that it compares anyway also say that
# all ranks have begun. It keeps the names of its last keys in ``kept_``, and erases them in the next
# call.
#
# Exercise
# --------
#
# The barrier of this backend is an exchange without bytes, in which every rank reads the notes
# of all ranks. With a thousand ranks, this is a million reads. Which method do you override to count
# the ranks with ``Keys::add`` instead, and what does this barrier no longer notice?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Override ``collective``, and call ``Transport::collective`` for every other kind. The barrier
#    adds 1 to a key of its number, and awaits that the sum equals ``size()``. It no longer notices a
#    rank that calls another operation, and the error at the deadline cannot name the missing
#    ranks, because a counter does not say who has arrived.
#
# What was not run: this page starts all ranks on one host. The tests of the backend do the same.

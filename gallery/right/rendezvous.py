"""
Rendezvous through the store
============================

Before ranks can exchange tensors, they must find each other, agree that all have arrived, and connect.
This page makes that all-or-nothing: either every rank starts, or every rank raises the same error.

The frame meets the other ranks in the constructor of the backend. What your transport adds is the
connection: an address, or the unique id of a library.

.. diagram:: right/rendezvous/diagram

What a rank receives
--------------------

PyTorch calls a create function for each group. With ``extended_api=True``, as
:doc:`/tutorial/step-2-expose-to-python` explains, it passes a ``DistributedBackendOptions``, which
``Types.hpp`` of c10d declares, and the options of the caller:

.. listing:: extension/frame/registration.hpp
   :part: create

A timeout in the options takes precedence over that of ``init_process_group``, which always passes one.
For NCCL it is the other way round.

To see what arrives, the next program puts a Python function before this one. It prints what each rank
receives for the world, and for a group of ranks 0 and 2:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/right/rendezvous/what_a_rank_receives.py
      :part: create
"""

from launcher import launch, run_program

launch("rendezvous/what_a_rank_receives.py", ranks=3)

# %%
# Rank 2 of the world is rank 1 of the second group. The frame keeps the list of global ranks for its
# errors; a library may need it to address its processes. For the world the list is empty, because both
# numbers are the same.
#
# Ask, never wait
# ---------------
#
# ``get`` of a store waits for a missing key. With a ``TCPStore`` it also blocks all other threads that use
# the same object, such as one that creates another group. So the frame uses a connection of its own:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: extension/frame/store_keys.hpp
#       :part: store
#
# It also asks instead of waiting, because a rank often waits for one of several keys, and must give up at
# its deadline. To read a key that may be missing, it uses ``compareSet``, which returns at once:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: extension/frame/store_keys.hpp
#       :part: text
#
# The pauses between two questions grow from 0.1 to 5 milliseconds, so that thousands of ranks do not flood
# the server.
#
# Bug: keys without a number
# --------------------------
#
# The simplest rendezvous has one key for each rank. Every rank writes its own key and reads the others:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/right/rendezvous/old_and_new_numbers.py
#       :part: fixed
#
# A store keeps its keys, so a second group under the same name finds those of the first. Counting the
# groups, as :doc:`/tutorial/step-2-create-function` does, goes wrong when a rendezvous fails: the ranks
# that arrived have counted, and the missing one has not. The fix is a random number, which each rank draws
# for each rendezvous. Rank 1 accepts only a key with the number of rank 1, and rank 0 only one with its
# own:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/right/rendezvous/old_and_new_numbers.py
#       :part: drawn
#
# The program meets twice with each function. Rank 1 is late for the second time:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/right/rendezvous/old_and_new_numbers.py
#       :part: meetings

launch("rendezvous/old_and_new_numbers.py", ranks=2)

# %%
# With fixed keys, rank 0 takes the old text of rank 1 in meeting 2, and does not wait. With random numbers
# it waits for the new one. The frame uses these keys:
#
# .. listing:: extension/frame/rendezvous.hpp
#    :part: keys-of-a-meeting
#
# Agreement
# ---------
#
# Each rank has a deadline of its own. One that came early may time out while rank 0 still waits, so rank 0
# cannot be the only one that decides. The first rank that knows writes the verdict, with a ``compareSet``
# that succeeds only once:
#
# .. listing:: extension/frame/rendezvous.hpp
#    :part: agree
#
# If a rank gives up after the others have agreed, it reads their verdict and starts all the same. Otherwise
# no rank starts, and the first verdict counts for all. Afterwards the last reader erases the keys of the
# round, and rank 0 waits until then, for two seconds at most, because it often hosts the store and its
# program may end at once.
#
# There are two rounds. In the first, all ranks arrive. In the second, each has made its transport, or says
# why it could not:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: extension/frame/rendezvous.hpp
#       :part: meet
#
# ``connect`` is where your library starts. It runs on every rank, at the same time, with a ``Place``: the
# rank, the size, a deadline, and keys that only this group uses. A library whose ranks share a unique id,
# such as NCCL, lets rank 0 set the id as a key, and the others poll for it. One whose ranks have addresses
# lets each rank set its own. What does not fit, such as a version or an interface that does not exist, is
# thrown as an exception: all ranks then raise its text. ``joined`` runs when all have connected.
#
# In the next program, three ranks try to create a group three times, with a timeout of one second. First
# rank 1 is missing. Then it arrives, but the others have given up. In the end all arrive. A hidden part of
# the worker defines ``step``, which lets the ranks begin together, and ``attempt``, which creates a group
# and prints the sum of the rank numbers or the error:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/right/rendezvous/a_rank_is_missing.py
#       :part: attempts

launch("rendezvous/a_rank_is_missing.py", ranks=3)

# %%
# Each message names the rank that did not arrive. The failed attempts leave keys in the store, such as the
# first verdict, and the last one succeeds on the same store nevertheless.
#
# Bug: a wait that holds Python's lock
# ------------------------------------
#
# PyTorch calls the create function with Python's global interpreter lock. A wait that keeps the lock stops
# all other Python threads of the rank, such as one that loads data. ``ctypes`` shows this without C++: it
# calls a C function of ``PyDLL`` with the lock, and one of ``CDLL`` without it. The next create function
# calls ``poll``, which waits until a pipe contains a byte. Another thread writes this byte:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/right/rendezvous/wait_with_the_lock.py
#       :part: waits

run_program("rendezvous/wait_with_the_lock.py")

# %%
# With the lock, the other thread cannot write its byte in time. The fix is ``gil_scoped_release`` in the
# create function above. It releases the lock until the function returns, so nothing after that line may
# use Python.
#
# Exercise
# --------
#
# ``meet_by_drawn_numbers`` is for two ranks. Write ``meet(keys, rank, size, text)`` for any number of ranks.
# On each rank it returns the texts of all ranks, in their order. It must work several times on one store,
# although the ranks arrive at different times.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Rank 0 answers all others with its number only. Each rank, including rank 0, writes its text under a
#    key with this number. Then each waits for all texts.
#
#    .. listing:: gallery/right/rendezvous/meeting_of_all.py
#       :part: solution
#
# Three ranks run the solution twice on one store, and each rank is late by a different time:

launch("rendezvous/meeting_of_all.py", ranks=3)

# %%
# The ranks are connected. :doc:`asynchronous-work` shows which of their threads move the data.

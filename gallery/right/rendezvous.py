"""
Rendezvous through the store
============================

Before ranks can exchange tensors, they must find each other and connect. If each rank does this alone, one can
connect to the address of an earlier group, or hang in its first collective because another has failed to start. This
page makes the start all-or-nothing: as long as the store answers, either every rank starts, or every rank raises an
error that says why.

.. diagram:: right/rendezvous/diagram

What a rank receives
--------------------

To create a group, PyTorch calls the create function of the backend on each rank. With ``extended_api=True``,
as :doc:`/tutorial/step-2-expose-to-python` explains, it passes a ``DistributedBackendOptions`` (declared in
``Types.hpp`` of c10d) and the options of the caller.

``DistributedBackendOptions`` contains the store, the rank, the size and the timeout of the group, its name, and the
global ranks of its members. This page is about the store, because until the ranks have connected, they can tell each
other something only through it.

A rank that is late
-------------------

First decide whether a group can exist while a rank is still missing. With the store of ``torchrun``,
``init_process_group`` itself does not wait for the other ranks. By default, a rank waits only if the create function of
its backend does, for example to exchange addresses.

The next program compares a backend that does not wait with one that does. Its rank 1 is late: it starts each group only
when rank 0 has that group, or after 3 seconds:

.. diagram:: right/rendezvous/late_rank

.. admonition:: The program with a late rank
   :collapsible: closed

   .. listing:: gallery/right/rendezvous/late_rank.py
      :part: start

   Without ``torchrun``, rank 0 waits with any backend, because it hosts the store and lets all ranks connect first.
"""

from launcher import launch, run_program

launch("rendezvous/late_rank.py", ranks=2)

# sphinx_gallery_start_ignore
import csv

# The table in Step 2.
calls = launch("rendezvous/create_function.py", ranks=2, show=False)
columns = [dict(line.split("\t") for line in text.splitlines()) for text in calls]
rows = [[f"``{call}``", *(column[call] for column in columns)] for call in columns[0]]
with open("rendezvous/create_function.csv") as table:
    assert [*csv.reader(table)][1:] == rows, rows
# sphinx_gallery_end_ignore

# %%
# Because the backend ``dummy`` does not use the store, rank 0 has its group at once. With gloo, rank 0 waits,
# because gloo connects all ranks when a group is created. With ``TORCH_DIST_INIT_BARRIER=1``, PyTorch itself waits
# in the store until all ranks have created the backend.
#
# When to connect is your decision. If your backend connects later, for example in the first collective,
# ``init_process_group`` returns although another rank is missing. The collective must then time out with an
# error that names the missing rank.
#
# Bug: the same keys for every rendezvous
# ---------------------------------------
#
# To connect when the group is created, the ranks must first exchange addresses. The simplest rendezvous has one key for
# each rank. Every rank writes its own key and reads the others:
#
# .. listing:: gallery/right/rendezvous/fixed_keys.py
#    :part: fixed
#
# PyTorch names groups by a counter, and puts the name before each key, which keeps the groups of a program apart.
# But ``destroy_process_group()`` resets the counter, so the next group on the same store has the same name, and
# finds the keys of the destroyed group. This also happens under ``torchrun``, where a program has one store for its
# whole life.
#
# To show the bug, the ranks create two groups with ``meet_at_fixed_keys``, one after the other, and rank 1 is late
# for the second group:
#
# .. admonition:: The two groups
#    :collapsible: closed
#
#    .. listing:: gallery/right/rendezvous/two_groups.py
#       :part: groups

launch("rendezvous/fixed_keys.py", ranks=2)

# %%
# In group 2, rank 0 takes the old text of rank 1, and does not wait. A backend that exchanges addresses like this
# can connect to a group that no longer exists.
#
# Counting the groups with ``add`` of the store is not enough: after a failed rendezvous, the ranks that arrived have
# counted one more than the rank that was missing.
#
# The fix is a random number, which each rank draws anew for each rendezvous, so no key of an earlier group contains it.
# Rank 1 writes its number under a fixed key, where rank 0 finds it. Rank 0 answers with its own number under a key that
# contains the number of rank 1, and all further keys contain the number of rank 0. Rank 0 may first find an old number
# of rank 1 and answer it, which does no harm, because no rank waits for that answer:
#
# .. listing:: gallery/right/rendezvous/drawn_numbers.py
#    :part: drawn

launch("rendezvous/drawn_numbers.py", ranks=2)

# %%
# Now rank 0 waits for the new text of rank 1. The frame does the same for any number of ranks. Instead of a key
# for each rank, the ranks add lines to shared lists, so that one request reads what all of them have said.
#
# Agreement
# ---------
#
# Even with the right addresses, a group can start on some ranks only, because another rank is missing or cannot
# connect. So the ranks agree in two rounds: in "came", whether all have arrived, and in "made", whether each could make
# its *transport*, the object that moves the bytes.
#
# Each round ends with a verdict in the store: "ready", or why there is no group. Rank 0 checks which ranks have come,
# and writes the verdict, so that the others ask for one key only. Each rank has a deadline of its own, however, and one
# that came early may time out while rank 0 still waits. That rank then writes the verdict itself. The first verdict
# counts, because the ``compareSet`` that writes it succeeds only once.
#
# The frame runs both rounds while PyTorch constructs the backend, so a program gets its group only after both
# verdicts:
#
# .. admonition:: The rendezvous of the frame
#    :collapsible: closed
#
#    These are the keys of a rendezvous:
#
#    .. listing:: extension/frame/c10d_frame/include/frame/rendezvous.hpp
#       :part: keys-of-a-meeting
#
#    ``meet`` uses these names:
#
#    .. list-table::
#       :header-rows: 1
#
#       * - name
#         - what it is
#       * - ``connect``
#         - the function that makes the transport of this rank, from a ``Place``
#       * - ``find_keys``
#         - exchanges the numbers; the prefix of ``keys_`` then contains that of rank 0
#       * - ``problem_of``
#         - calls a function, and returns its result, or the text of its exception
#       * - ``ready_``
#         - "ready" with the number of this rank, which the rank says in a round
#       * - ``kReady``
#         - "ready" alone: the verdict that all ranks are ready
#       * - ``home``
#         - which host and container this is
#       * - ``kFailed``
#         - a key that tells ranks which still connect that this one has failed
#
#    .. listing:: extension/frame/c10d_frame/include/frame/rendezvous.hpp
#       :part: meet
#       :end-before: if (problem != kReady) {
#
#    If all ranks are ready, ``meet`` calls ``joined`` and returns the transport. Otherwise it raises a
#    ``DistStoreError``.
#
#    ``agree`` runs one round:
#
#    .. list-table::
#       :header-rows: 1
#
#       * - name
#         - what it does
#       * - ``enter``, ``said``
#         - add a line to the list of the round, and read the list; ``enter`` throws if another process is this rank
#       * - ``welcome``
#         - adds, on rank 0, the answer that the other ranks wait for in ``find_keys``
#       * - ``judge``
#         - returns ``kReady``, or names the missing ranks and those that cannot begin, with their reasons
#       * - ``set_first``
#         - writes the verdict unless there is one, and returns the one that counts
#       * - ``erase_published``
#         - erases the keys that this rank has set to connect, which all have read by then
#       * - ``end_round``
#         - erases the keys of the round on the last rank that has read the verdict; rank 0 waits for that up to two
#           seconds, because the store often ends with its process
#
#    .. listing:: extension/frame/c10d_frame/include/frame/rendezvous.hpp
#       :part: agree
#
#    A rank whose deadline passes after the others have agreed finds their verdict in the store, and starts all the
#    same, because its own "ready" was there in time.
#
# A rank that is missing
# ----------------------
#
# The agreement must hold when a rank does not arrive, and when it arrives too late. So the next program attempts three
# times to create a group of three ranks, with a timeout of one second. First rank 1 is missing. Then it arrives, but
# the others have given up. In the end all arrive:
#
# .. admonition:: The three attempts
#    :collapsible: closed
#
#    ``step`` lets the ranks begin together, and ``attempt`` creates a group and prints the sum of the rank
#    numbers or the error:
#
#    .. listing:: gallery/right/rendezvous/a_rank_is_missing.py
#       :part: attempts

launch("rendezvous/a_rank_is_missing.py", ranks=3)

# %%
# In the first attempt, ranks 0 and 2 name the missing rank 1. In the second attempt, rank 1 names rank 0, which had
# given up. So no rank starts alone. The last attempt succeeds although the failed attempts leave keys in the store,
# because the ranks draw new numbers.
#
# Connect your library
# --------------------
#
# The start of your library is all-or-nothing as well if it stands between the two rounds, where a rank that fails can
# still tell the others. So start it in ``connect``, the method of your backend's options that makes the transport. All
# ranks run it at the same time. Its argument is a ``Place`` with the rank, the size, a deadline, the process and the
# host of each rank, and keys that only this group uses.
#
# To tell the other ranks how to connect, ``place.keys->publish(name, text)`` sets a key that the frame erases when
# all have connected, and ``place.await(names)`` returns the values of other ranks' keys once they are set. If the
# ranks share a unique id, as with NCCL, rank 0 publishes it; if each rank has an address, each publishes its own.
#
# If a rank cannot connect, for example because a network interface does not exist, throw an exception. The exception
# ends ``await`` on the other ranks, and all ranks raise its text, but it cannot end a call of your library that waits
# for the other ranks. So before such a call, let each rank check all that can fail, set a key, and await the keys of
# all. ``mpich``, this site's backend for MPI, does so before it enters MPI:
#
# .. admonition:: All ranks set a key before MPI starts
#    :collapsible: closed
#
#    .. listing:: extension/mpi_collectives/src/turn.hpp
#       :start-at: keys.set_text(turn_keys_
#       :end-before: } catch
#
# In ``connect``, also do whatever else can fail, such as starting a thread. ``joined`` runs after the second round,
# when other ranks may have started, so it must not throw.
#
# Waits that block no other thread
# --------------------------------
#
# During a rendezvous a rank waits for others, but the other threads of its process must go on. The obvious way to wait
# for another rank is ``get`` of the store, which waits until the key exists. With a ``TCPStore``, however, a ``get``
# that waits blocks all other threads that use the same store object, such as a thread that creates another group. So
# the frame uses a connection of its own, which all groups of the process share.
#
# A rank must also stop waiting when another rank has reported a failure. But ``wait`` of the store ends only when
# all keys exist or its timeout has passed, so the frame polls: it asks again and again.
#
# Bug: a wait that holds Python's lock
# ------------------------------------
#
# Python's lock can block the other threads, too. PyTorch holds Python's global interpreter lock while it calls the
# create function, so a create function that waits with the lock stops all other Python threads of the rank. To show
# that, the next create function waits in C until another thread has written a byte:
#
# .. admonition:: A create function that waits
#    :collapsible: closed
#
#    ``ctypes`` calls a C function of ``PyDLL`` with the lock, and one of ``CDLL`` without it. ``poll`` waits
#    until a pipe contains a byte.
#
#    .. listing:: gallery/right/rendezvous/wait_with_the_lock.py
#       :part: waits

run_program("rendezvous/wait_with_the_lock.py")

# %%
# With the lock, the other thread cannot write its byte in time. The fix is a ``pybind11::gil_scoped_release`` before
# the wait, which releases the lock until the create function returns. Until then, the function must not use Python.
#
# .. admonition:: The create function
#    :collapsible: closed
#
#    In the create function of the frame, ``Own`` is the class of the backend's options. ``timeout_of_group`` decides
#    which of the two timeouts counts, and ``start`` makes the backend:
#
#    .. listing:: extension/frame/c10d_frame/include/frame/registration.hpp
#       :part: create
#
# Exercise
# --------
#
# ``meet_by_drawn_numbers`` is for two ranks. Write ``meet(keys, rank, size, text)`` for any number of ranks,
# which returns the texts of all ranks in the order of the ranks. It must work several times on one store,
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
# On each rank, the texts of the second list all end with ``in 2``, so no rank has read a text of the first
# rendezvous.
#
# .. admonition:: After this page you have decided
#
#    - whether your backend connects when the group is created, or in the first collective;
#    - what each rank publishes, and how these keys differ from those of an earlier group;
#    - which rank decides that the group starts, and which verdict counts at a deadline;
#    - what all ranks check before a call of your library that nothing can interrupt;
#    - where your create function releases Python's lock.
#
# Not run here: ``init_process_group`` without ``torchrun`` on several ranks.

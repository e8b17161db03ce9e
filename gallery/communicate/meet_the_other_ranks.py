"""
Meet the other ranks
====================

After this page you can let the ranks of a group find each other in a store. They ignore the
keys of earlier groups.

The dummy ignores the store. The backend of this part, *shm*, needs it: its ranks use memory
that one of them creates, and the others must find that memory. Its source is in
``extension/shm_collectives``. What every backend needs, such as this meeting, is in
``extension/frame``.

.. diagram:: communicate/meet_the_other_ranks/diagram

What a rank receives
--------------------

The dummy receives four arguments. *shm* is registered with ``extended_api=True``, as
:doc:`/tutorial/step-2-expose-to-python` explains, so its create function receives a
``DistributedBackendOptions`` and the options of the caller. ``Types.hpp`` of c10d declares
the structure. This is the create function, where ``Own`` is the class of the options:

.. listing:: extension/frame/registration.hpp
   :part: create

A timeout in the options of *shm* takes precedence over that of ``init_process_group``. For NCCL
it is the other way round: the argument ``timeout`` overrides the options.

The next program puts a Python function before this one. It prints what each rank receives
for the world, and for a group of ranks 0 and 2:

.. listing:: gallery/communicate/meet_the_other_ranks/what_a_rank_receives.py
   :part: create
"""

from launcher import launch

output = launch("meet_the_other_ranks/what_a_rank_receives.py", ranks=3)

# %%
# Rank 2 of the world is rank 1 of the second group. The list of global ranks translates the
# numbers: *shm* uses it in its messages. The list is empty for the world, where both numbers
# are the same. The last line of the create function passes the store, the rank and the size to
# ``start``, which constructs the backend. The constructor meets the others.
#
# Polling instead of waiting
# --------------------------
#
# ``Store.hpp`` declares what every store can do, such as ``set``, ``get``, ``add``, ``check``,
# ``wait`` and ``deleteKey``. :doc:`/operations/process-groups` shows that ``get`` waits for a
# missing key. A ``TCPStore`` lets no other thread use the same object during that wait:

import threading
import time

import torch.distributed as dist

store = dist.TCPStore("localhost", 0, world_size=1, is_master=True)
waits = threading.Thread(target=store.get, args=["address"])
asks = threading.Thread(target=store.check, args=[["another key"]])
waits.start()
time.sleep(0.3)
asks.start()
asks.join(timeout=0.5)
print("check has returned:", not asks.is_alive())

store.clone().set("address", "")  # through a connection of its own
waits.join()
asks.join()
print("check has returned:", not asks.is_alive())

# %%
# A rank may have several threads that use its store, for example to create another group. A
# thread that waits in ``get`` would stop them. So *shm* uses a connection of its own:
#
# .. listing:: extension/frame/store_keys.hpp
#    :part: store
#
# A rank often waits for one of several keys, so it must not wait in ``get``. It reads with
# ``compareSet``, which returns at once, even if the key does not exist:
#
# .. listing:: extension/frame/store_keys.hpp
#    :part: text
#
# To wait for a key, *shm* polls the store. The pauses between two checks grow from 0.1 to 5
# milliseconds. The loop also ends at the timeout:
#
# .. listing:: extension/frame/rendezvous.hpp
#    :part: await
#
# A mistake: keys without a number
# --------------------------------
#
# The simplest meeting has one key for each rank. Every rank writes its own key and reads the
# others:
#
# .. listing:: gallery/communicate/meet_the_other_ranks/old_and_new_numbers.py
#    :part: fixed
#
# :doc:`/tutorial/step-2-create-function` shows that the second group of a program finds the
# keys of the first. The cure on that page counts the meetings. A count goes wrong when a
# meeting fails: the ranks that came have counted, and the missing rank has not.
#
# *shm* does not count. Each rank draws a random number for each meeting. Rank 1 accepts only a
# key that contains the number of rank 1. Rank 0 accepts only a key with its own number:
#
# .. listing:: gallery/communicate/meet_the_other_ranks/old_and_new_numbers.py
#    :part: drawn
#
# The program meets twice with each function. Rank 1 is late for the second meeting:
#
# .. listing:: gallery/communicate/meet_the_other_ranks/old_and_new_numbers.py
#    :part: meetings

output = launch("meet_the_other_ranks/old_and_new_numbers.py", ranks=2)

# %%
# With fixed keys, rank 0 takes the old text of rank 1 in meeting 2, and does not wait. With
# drawn numbers, it waits for the new text. Rank 0 also answers the old number of rank 1. No
# rank reads that answer, because rank 1 has drawn another number.
#
# Exercise
# --------
#
# The function ``meet_by_drawn_numbers`` is for two ranks. Write
# ``meet(keys, rank, size, text)`` for any number of ranks. On each rank it returns the texts
# of all ranks, in their order. It must work several times on one store, although the ranks
# come at different times.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Rank 0 answers all others with its number only. Each rank, including rank 0, writes its
#    text under a key with this number. Then each waits for all texts.
#
#    .. listing:: gallery/communicate/meet_the_other_ranks/meeting_of_all.py
#       :part: solution
#
# Three ranks run the solution twice on one store, and each rank is late by a different time:

output = launch("meet_the_other_ranks/meeting_of_all.py", ranks=3)

# %%
# Ranks that find each other are not a group yet: one of them may run on another host, and others
# may still be missing. :doc:`begin-together` deals with that. It also explains
# ``gil_scoped_release`` in the create function.

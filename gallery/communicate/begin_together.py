"""
Begin together
==============

After this page you can let all ranks of a group come to the same result: they begin, or their
errors name the problem. While the ranks wait, other threads of their processes go on.

The ranks of :doc:`meet-the-other-ranks` find each other if all of them come. But a rank may
be missing, come too late, or run on another host. Then no rank may wait for ever.

.. diagram:: communicate/begin_together/diagram

The meeting of shm
------------------

*shm* uses keys like those of :doc:`meet-the-other-ranks`, also to agree on the result:

.. listing:: extension/frame/rendezvous.hpp
   :part: keys-of-a-meeting

Every rank except rank 0 writes its number and waits for the answer. The answer is the number of
rank 0, with which all other keys of the group begin:

.. listing:: extension/frame/rendezvous.hpp
   :part: announce

Each rank has its own deadline, though. A rank that came early may time out while rank 0 still
waits. So rank 0 is not the only one that decides:

.. listing:: extension/frame/rendezvous.hpp
   :part: agree

Each rank calls ``agree`` when it has come. Then ``connect`` creates or opens the memory, and the
rank calls ``agree`` again, with its own problem, if it has one.

The constructor waits for all ranks, for two reasons. The others can open the memory only while
rank 0 has its descriptor, as the next page shows. And all ranks must learn the same result.

``set_first`` calls ``compareSet`` of the store, which writes the verdict only if there is none. If
a rank gives up after the others have agreed, it reads their verdict and begins all the same.
Otherwise no rank begins, and the first verdict counts for all ranks. A rank needs the store until
its second ``agree`` has returned.

Each rank trusts its user, whose other processes can read and write the memory through
``/proc``. It does not trust the programs that can reach the store: ``TCPStore`` has no
password. They can keep a group from beginning, or speak for a rank that is missing. But they
cannot make a rank use another user's memory.

A rank that is missing
----------------------

In the next program, three ranks try to create a group three times. The constructor times out
after one second. At first rank 1 is missing. Then it comes, but the others have given up. In the
end all of them come. A hidden part of the worker defines two functions. ``step`` lets the
ranks begin together. ``attempt`` creates a group, and prints the sum of the rank numbers or the
error:

.. listing:: gallery/communicate/begin_together/a_rank_is_missing.py
   :part: attempts
"""

from launcher import launch, run_program

output = launch("begin_together/a_rank_is_missing.py", ranks=3)

# %%
# Each message names the rank that did not come. The failed meetings leave keys in the store, such
# as the first verdict. The last meeting on the same store still succeeds, because it uses new
# numbers.
#
# A rank of another host
# ----------------------
#
# Ranks can share memory only if they run on the same host, as the same user, and see the
# same processes. Each rank puts this into a text.
#
# Two hosts may have the same name, but each start of a kernel has its own ``boot_id``. Two
# containers of one host have the same one. The PID namespace distinguishes these, unless they
# share it. A rank compares its text with that of rank 0 before it opens the memory.
#
# When the rank throws, ``meet`` writes the problem into its key of the second round. All ranks
# read it there.
#
# The build of this site runs on one host. But the meeting consists of keys, and any program can
# write keys. Here rank 0 is a Python program that writes the keys of a rank of another host. It has
# drawn the number 7, and has no memory:
#
# .. listing:: gallery/communicate/begin_together/another_host.py
#    :part: another

output = launch("begin_together/another_host.py", ranks=2)

# %%
# A mistake: a wait that holds the interpreter's lock
# ---------------------------------------------------
#
# PyTorch calls the create function with Python's global interpreter lock. A wait that holds
# this lock stops all other threads of the rank that run Python, such as one that loads data.
# ``ctypes`` shows this without C++. It calls a C function of ``PyDLL`` with the lock, and one of
# ``CDLL`` without it.
#
# The next create function calls ``poll``, which waits until a pipe contains a byte. Another
# thread writes this byte. A hidden setting keeps Python from running that thread before ``poll``:
#
# .. listing:: gallery/communicate/begin_together/wait_with_the_lock.py
#    :part: waits

output = run_program("begin_together/wait_with_the_lock.py")

# %%
# With the lock, the other thread cannot write its byte before the time is over. A wait without a
# limit would never end. The cure in the create function of
# :doc:`meet-the-other-ranks` is the object ``gil_scoped_release``. It releases the lock until the
# function returns. Nothing after that line uses Python.
#
# Exercise
# --------
#
# Three ranks create a group of *shm*, destroy it, and create it again on the same store. Predict
# from the listings of this page which keys are in the store after each meeting. Write a program
# that lists them with ``store.list_keys()``.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Each rank except rank 0 deletes its ``member`` and its ``answer``. The last rank that reads a
#    verdict deletes the keys of its round. So each meeting that succeeds leaves one key,
#    ``memory``:
#
#    .. listing:: gallery/communicate/begin_together/keys_that_remain.py
#       :part: solution
#
# The program of the solution prints:

output = launch("begin_together/keys_that_remain.py", ranks=3)

# %%
# The ranks have met, and know in which process the memory is. :doc:`share-memory` creates this
# memory, and lets the others open it.

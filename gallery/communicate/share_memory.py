"""
Shared memory with memfd
========================

The first decision of ``shm`` is what the ranks share. Shared memory often has a name, such as a file in
``/dev/shm``. But a program that is killed cannot delete its file, so this memory stays until the machine restarts.
Memory without a name lives only as long as a process uses it, however the processes end. This page shows how the
ranks find such memory, and how each makes sure that it has the right one.

.. diagram:: communicate/share_memory/diagram

A file without a name
---------------------

Memory without a name must still be found by the other ranks. ``memfd_create`` of Linux makes a file that is in no
folder, so the process that creates the file has only a *descriptor*, the number of the open file. Another process of
the same user can open the file as ``/proc/<process>/fd/<number>``. So rank 0 writes its process id and the descriptor
into the store:

.. listing:: gallery/communicate/share_memory/memory_of_two_ranks.py
   :part: share
"""

from launcher import launch, run_program

output = launch("share_memory/memory_of_two_ranks.py", ranks=2)

# %%
# The first line of each rank shows ``st_nlink``, the number of names of the file, which is zero. The second shows that
# each rank reads what the other has written. Because a mapping is enough to use the memory, both ranks close the file
# when all have mapped it.
#
# Who removes the memory
# ----------------------
#
# Memory without a name should leave nothing behind, however the ranks end. To test that, the next program forms a
# group of two ranks, and ends rank 0 with ``SIGTERM`` and rank 1 with ``SIGKILL``, so that neither can clean up.
# Before the signals and after each, it counts the processes that have mapped the memory, according to
# ``/proc/<process>/maps``, and the files of its size in ``/dev/shm``:
#
# .. admonition:: The ranks and the signals
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/share_memory/killed_ranks.py
#       :part: rank
#
#    .. listing:: gallery/communicate/share_memory/killed_ranks.py
#       :part: signals
#       :no-caption:

output = run_program("share_memory/killed_ranks.py")

# %%
# After the last signal, no process has the memory and no file refers to it, so the kernel frees its pages.
#
# Bug: closing the file too early
# -------------------------------
#
# Why must rank 0 wait for the others before it closes the file? In the next program, rank 0 does not wait. Rank 1
# tries to open the file after rank 0 has closed it, and once more after rank 0 has created another file. Rank 0 runs
# this part:
#
# .. listing:: gallery/communicate/share_memory/closed_too_early.py
#    :part: early
#    :end-before: else:

output = launch("share_memory/closed_too_early.py", ranks=2)

# %%
# The first try fails. The second is worse, because it succeeds with the wrong file: the kernel gives a new
# file the lowest free number, which is the one that rank 0 has just freed.
#
# The fix has two halves. First, rank 0 keeps its descriptor until all ranks have mapped the memory. Second, the
# memory begins with a *header*, whose first field, the ``nonce``, is the time at which rank 0 created the memory.
# Rank 0 also writes the nonce into the store, so that each rank can tell whether it has mapped the memory that was
# meant:
#
# .. listing:: extension/shm_collectives/src/memory.hpp
#    :part: header
#
# Because ranks may run different versions of the backend, or have different options, the header also contains the
# version of the protocol and the sizes. The last three fields are for the reason of a failure
# (:doc:`the-other-operations`).
#
# Trust nothing in the store
# --------------------------
#
# A rank can read the nonce only after it has mapped the file, and for some files that is too late. The text in the
# store may name a file of another user, who could read the tensors and change them. That user could also shrink the
# file, and a rank that then reads a page that is gone gets ``SIGBUS``. So ``Memory::open`` first checks the file with
# ``distrust``, then maps the file, and at last compares the header with ``difference``:
#
# .. listing:: extension/shm_collectives/src/memory.hpp
#    :part: open
#
# ``distrust`` requires a memfd of the same user, with the expected size, and with a *seal*, which keeps the file
# from shrinking (:doc:`lay-out-the-memory`):
#
# .. admonition:: ``distrust``
#    :collapsible: closed
#
#    .. listing:: extension/shm_collectives/src/memory.hpp
#       :part: distrust
#
# The commonest difference is no attack, but an option that one rank sets and another does not. In the next
# program, the ranks first try to form a group with different options, and then with equal ones:
#
# .. admonition:: Both attempts
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/share_memory/options_differ.py
#       :part: attempts

output = launch("share_memory/options_differ.py", ranks=2)

# %%
# In the first attempt, only rank 1 can find the difference, because it opens the memory that rank 0 has created. Both
# ranks report it, because a rendezvous has one result for all ranks. In the second attempt, the sizes agree, and both
# ranks get the sum of their numbers.
#
# A rank of another host
# ----------------------
#
# Ranks can share memory only if they run on the same host, as the same user, and see the same processes. So
# that a wrong placement becomes a clear error, each rank describes its place in a text, and compares it
# with that of rank 0 before it opens the memory.
#
# A host name alone would not do, because two hosts may have the same. The text therefore contains the
# ``boot_id``, which is new with each start of a kernel. Two containers of one host have the same kernel, but
# usually different PID namespaces, so the text contains the namespace, too.
#
# One host is enough to test this, because ranks meet only through keys in the store. Here, a Python program takes the
# place of rank 0, and writes the keys that a rank of another host would write:
#
# .. admonition:: The keys of rank 0
#    :collapsible: closed
#
#    The program has chosen the number 7 for this rendezvous, and has no memory:
#
#    .. listing:: gallery/communicate/share_memory/another_host.py
#       :part: another

output = launch("share_memory/another_host.py", ranks=2)

# %%
# The line of rank 1 names both places: its own, here shortened to ``...``, and that of rank 0. Rank 0 reads the same
# reason, so in a real group both ranks raise it.
#
# Exercise
# --------
#
# The second try of ``closed_too_early.py`` read a wrong file. Write ``create_memory(nonce)``,
# which creates 4096 bytes that begin with ``nonce``, eight random bytes. Write
# ``open_memory(process, number, nonce)``, which maps the memory of another process. If the file is
# not the one that was meant, for example because it is empty, ``open_memory`` raises ``ValueError``.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The size comes first, because Python refuses to map more bytes than the file has.
#
#    .. listing:: gallery/communicate/share_memory/memory_that_was_meant.py
#       :part: solution
#
# Rank 1 tries the solution with an empty file, with memory that has another nonce, and with the
# memory that was meant:

output = launch("share_memory/memory_that_was_meant.py", ranks=2)

# %%
# All ranks now have the same memory, and nothing of it is left when they end. :doc:`lay-out-the-memory` gives each rank
# its parts, and makes sure that their pages exist when the rank uses them.
#
# .. admonition:: After this page you have decided
#
#    - what the ranks share, and what removes it when all of them are killed;
#    - how a rank finds the memory, and how long its owner keeps the descriptor;
#    - how a rank recognizes the memory that was meant, before and after it maps it;
#    - which differences of versions and options lead to an error when a group is formed;
#    - how ranks that cannot share memory learn of it.

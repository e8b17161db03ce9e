"""
Share memory without a name
===========================

After this page you can give several processes the same memory. Nothing of it is left when
they end, however they end.

Shared memory often has a name, such as a file in ``/dev/shm``. If the processes are killed,
nobody deletes the file. The memory of *shm* has no name: the kernel frees it when no process
uses it any more.

.. diagram:: communicate/share_memory/diagram

A file without a name
---------------------

``memfd_create`` of Linux makes a file that is in no folder. The process has only a
descriptor: the number of the open file. Another process of the same user can open the file
through ``/proc/<process>/fd/<number>``. So rank 0 writes both numbers into the store:

.. listing:: gallery/communicate/share_memory/memory_of_two_ranks.py
   :part: share
"""

from launcher import launch, run_program

output = launch("share_memory/memory_of_two_ranks.py", ranks=2)

# %%
# Each rank reads what the other has written, although neither sent anything. ``st_nlink`` is
# the number of names of a file, and it is zero. After ``wait_for_all`` both ranks have mapped
# the memory. Then they close the file, because the mapping is enough.
#
# A mistake: to close the file too early
# --------------------------------------
#
# In the next program, rank 0 does not wait. It closes its file before rank 1 has opened it,
# and creates another file before rank 1 tries again. The store enforces this order here:
#
# .. listing:: gallery/communicate/share_memory/closed_too_early.py
#    :part: early

output = launch("share_memory/closed_too_early.py", ranks=2)

# %%
# The first try fails. The second is worse: it succeeds with the wrong file, because the
# kernel gives a new file the lowest free number.
#
# *shm* has two cures. Rank 0 keeps its descriptor until all ranks have mapped the memory:
# ``meet`` of :doc:`/right/rendezvous` calls ``joined``, which closes it, after all have agreed. And
# the memory begins with a number that the others compare:
#
# .. listing:: extension/shm_collectives/src/memory.hpp
#    :part: header
#
# The number is the time at which rank 0 created the memory. The header also contains the version
# of the protocol and the sizes, on which all ranks must agree. ``failed`` says whether the group
# has failed, and ``reason`` why.
#
# The tensors pass through the *slots* of the memory. ``slot_bytes`` is the size of the
# data in one slot. :doc:`lay-out-the-memory` explains all parts.
#
# Open and compare
# ----------------
#
# The text in the store may name a file of another user, who could read the tensors and change
# them. That user could also take the pages away, which would end the rank with ``SIGBUS``. So
# ``Memory::open`` checks the file before it maps it, and then compares the header:
#
# .. listing:: extension/shm_collectives/src/memory.hpp
#    :part: open
#
# ``distrust`` requires a memfd of the same user, with the seals of :doc:`lay-out-the-memory`:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: extension/shm_collectives/src/memory.hpp
#       :part: distrust
#
# The sizes follow from the world size and from ``slot_bytes`` in the options. In the next
# program, the ranks begin with different options. Then they request memory of the same size:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/share_memory/options_differ.py
#       :part: attempts

output = launch("share_memory/options_differ.py", ranks=2)

# %%
# Rank 1 finds the difference. Both ranks report it, because all ranks learn the result of a
# rendezvous, as :doc:`/right/rendezvous` shows.
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
# The build of this site runs on one host. But the meeting consists of keys, and any program can
# write keys. Here rank 0 is a Python program that writes the keys of a rank of another host. It has
# drawn the number 7, and has no memory:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/share_memory/another_host.py
#       :part: another

output = launch("share_memory/another_host.py", ranks=2)

# %%
# When rank 1 finds the difference, ``meet`` writes the problem into its key of the second round, so
# all ranks read it there.
#
# Nothing is left
# ---------------
#
# The next program starts two ranks and forms a group. Then it ends rank 0 with ``SIGTERM``
# and rank 1 with ``SIGKILL``, so neither can clean up. Before and after, it counts the
# processes that have mapped the memory, and the files of its size in ``/dev/shm``. Both ranks
# run this function:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/share_memory/killed_ranks.py
#       :part: rank
#
# ``mappings`` reads ``/proc/<process>/maps``. ``look_for`` counts the processes and the files.
# This is the program that sends the signals:
#
# .. listing:: gallery/communicate/share_memory/killed_ranks.py
#    :part: signals

output = run_program("share_memory/killed_ranks.py")

# %%
# No process has the memory after the last signal, and no file refers to it. So the
# kernel frees its pages.
#
# Exercise
# --------
#
# The second try of ``closed_too_early.py`` read a wrong file. Write ``create_memory(nonce)``,
# which creates 4096 bytes that begin with ``nonce``, eight random bytes. Write
# ``open_memory(process, number, nonce)``, which maps the memory of another process. It raises
# ``ValueError`` if the file is not the one that was meant, even if it is empty.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The size comes first, because Python maps no more bytes than the file has.
#
#    .. listing:: gallery/communicate/share_memory/memory_that_was_meant.py
#       :part: solution
#
# Rank 1 tries the solution with an empty file, with a memory of another number, and with the
# memory that was meant:

output = launch("share_memory/memory_that_was_meant.py", ranks=2)

# %%
# All ranks have the same memory, and nothing is left of it at the end.
# :doc:`lay-out-the-memory` reserves its pages, and gives each rank its parts.

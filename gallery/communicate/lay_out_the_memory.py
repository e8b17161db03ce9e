"""
Lay out the memory
==================

After this page you can reserve memory for several ranks, so that a shortage is an error where
the kernel permits it. You can divide it, so that each rank computes where every part begins.

All ranks of :doc:`share-memory` use one memory. No page of this memory may be missing while a rank
uses it, and each rank must find the same parts in it.

.. diagram:: communicate/lay_out_the_memory/diagram

Reserve pages before their use
------------------------------

In the next program, both ranks request slots of 16 TiB, which is far too much memory:

.. listing:: gallery/communicate/lay_out_the_memory/too_much_memory.py
   :part: too-much
"""

from launcher import launch, run_program

output = launch("lay_out_the_memory/too_much_memory.py", ranks=2)

# %%
# The message comes from ``Memory::create``, which rank 0 calls:
#
# .. not-executed::
#    :partly:
#
#    In the runs of this page, none of the calls that protect the memory fails.
#
#    .. listing:: extension/shm_collectives/src/memory.hpp
#       :part: create
#       :emphasize-lines: 22
#
# ``ftruncate`` only sets the size. The kernel looks for a page when a rank first uses it. If
# there is none, no function can return an error, and the process gets a signal. So
# ``fallocate`` reserves the pages of the header and the members while the group is formed. The
# sample does not reach it: a size of more than half of the machine's memory is an error
# before that.
#
# The slots are most of the memory, and many groups never use all of theirs. A rank reserves
# each of its slots when it first writes to it:
#
# .. listing:: extension/shm_collectives/src/memory.hpp
#    :part: reserve
#
# ``reserve`` calls ``madvise`` with ``MADV_POPULATE_WRITE``, which returns an error if there are no
# pages. The error fails the group on all ranks. But if a cgroup limits the memory of a container,
# the kernel ends a process with ``SIGKILL`` instead.
#
# A mistake: memory that can shrink
# ---------------------------------
#
# A *seal* forbids a later change. Everybody who has the file can shrink it, and so take away
# pages that others have mapped. This program tries it without and with a seal:
#
# .. listing:: gallery/communicate/lay_out_the_memory/sealed_pages.py
#    :part: seal

output = run_program("lay_out_the_memory/sealed_pages.py")

# %%
# Without the seal, the process ends with ``SIGBUS`` when it reads the page. With the seal,
# ``ftruncate`` fails and the page is still there. ``F_SEAL_GROW`` keeps the size from
# growing, and ``F_SEAL_SEAL`` forbids further seals.
#
# ``fchmod`` lets only the user of the process read and write the file. ``root`` can do so in
# any case. No sample runs as a second user. When all ranks have closed their descriptors, there
# is no file left in ``/proc/<process>/fd`` that anybody could open.
#
# The parts of the memory
# -----------------------
#
# The header is at the beginning. A *member* for each rank follows. It contains a counter of the
# step protocol, which :doc:`step-by-step` explains, and the process id:
#
# .. listing:: extension/shm_collectives/src/memory.hpp
#    :part: member
#
# The *bell* wakes a rank that sleeps, as :doc:`wait-without-wasting` explains.
#
# A processor moves memory between its cores in *cache lines*, often of 64 bytes. If two ranks
# write to different bytes of one line, the line moves back and forth between their cores.
# ``alignas(kCacheLine)`` starts a new line. Therefore no other rank writes to the line of the
# counter. The bell, which others ring, is in the next line. This page does not measure the
# difference.
#
# The tensors pass through *slots*, four for each rank. The other ranks wait for the counter
# ``posted`` of a slot. Its cache line also contains the first 48 bytes of the data, so a small
# tensor needs no other line:
#
# .. listing:: extension/shm_collectives/src/memory.hpp
#    :part: slot
#
# The *rings* are for messages between two ranks. The ranks map the memory at different addresses,
# so it contains no pointers. Every place is computed from the beginning:
#
# .. listing:: extension/shm_collectives/src/memory.hpp
#    :part: one-slot
#
# You can check the arithmetic. This program computes where each part begins, and compares the
# end with the mapping that ``/proc/self/maps`` lists. ``mapped_memory`` returns its two addresses:
#
# .. listing:: gallery/communicate/lay_out_the_memory/offsets.py
#    :part: offsets

output = launch("lay_out_the_memory/offsets.py", ranks=3)

# %%
# Three ranks need less than 8 MB. With more ranks, the parts of the rings get smaller, because
# each pair of ranks has two rings.
#
# Exercise
# --------
#
# Two ranks call ``all_reduce`` six times. The calls are numbered from 0. In call ``i``, the tensor
# of a rank is the number ``10 * i + rank``. Each call is one step, in which a rank writes its
# number into one of its slots. Predict which numbers the four slots of each rank contain at the
# end. Then compute where the slots begin, and read the numbers there with ``ctypes``. In each slot,
# 80 bytes precede the data.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    ``/proc/self/maps`` contains the address at which the memory begins. The counter ``posted``
#    is in the second cache line of a slot.
#
#    .. listing:: gallery/communicate/lay_out_the_memory/numbers_in_slots.py
#       :part: solution
#
# The program of the solution prints:

output = launch("lay_out_the_memory/numbers_in_slots.py", ranks=2)

# %%
# The last two calls have used the first two slots of each rank again.
#
# All ranks now have the same memory, but none of them may read a slot before another has
# written it. :doc:`step-by-step` orders the writes and reads of all ranks.

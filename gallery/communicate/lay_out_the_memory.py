"""
Lay out the memory
==================

After this page you can reserve memory for several ranks, so that a shortage is an error where
the kernel permits it. You can divide it, so that each rank computes where every part begins.

All ranks of :doc:`share-memory` use one memory. No page of this memory may be missing while a rank
uses it, and each rank must find the same parts in it.

.. diagram:: communicate/layout

Reserve pages before their use
------------------------------

In the next program, both ranks request slots of 16 TiB, which is far too much memory:

.. literalinclude:: /../gallery/communicate/workers/too_much_memory.py
   :language: python
   :caption: gallery/communicate/workers/too_much_memory.py
   :start-after: # [too-much]
   :end-before: # [/too-much]
"""

from launcher import launch, run_program

output = launch("workers/too_much_memory.py", ranks=2)

# sphinx_gallery_start_ignore
assert all("rank 0 cannot reserve 140737490456832 bytes" in text for text in output)
# sphinx_gallery_end_ignore

# %%
# The message comes from ``Memory::create``, which rank 0 calls:
#
# .. not-executed::
#    :partly:
#
#    In the runs of this page, none of the calls that protect the memory fails.
#
#    .. literalinclude:: /../extension/shm_collectives/include/memory.hpp
#       :language: cpp
#       :caption: extension/shm_collectives/include/memory.hpp
#       :start-after: // [create]
#       :end-before: // [/create]
#       :emphasize-lines: 22
#       :dedent:
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
# .. literalinclude:: /../extension/shm_collectives/include/memory.hpp
#    :language: cpp
#    :caption: extension/shm_collectives/include/memory.hpp
#    :start-after: // [reserve]
#    :end-before: // [/reserve]
#    :dedent:
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
# .. literalinclude:: /../gallery/communicate/workers/sealed_pages.py
#    :language: python
#    :caption: gallery/communicate/workers/sealed_pages.py
#    :start-after: # [seal]
#    :end-before: # [/seal]

output = run_program("workers/sealed_pages.py")

# sphinx_gallery_start_ignore
unsealed, sealed = output.split("F_SEAL_SHRINK\n")
assert unsealed == "no seal\n    ended by SIGBUS\n"
assert "not permitted" in sealed and "byte is 0" in sealed and "ended by itself" in sealed
# sphinx_gallery_end_ignore

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
# The header is at the beginning. A *member* for each rank follows. It contains the two
# counters of the step protocol, which :doc:`step-by-step` explains, and the process id:
#
# .. literalinclude:: /../extension/shm_collectives/include/memory.hpp
#    :language: cpp
#    :caption: extension/shm_collectives/include/memory.hpp
#    :start-after: // [member]
#    :end-before: // [/member]
#
# The *bell* wakes a rank that sleeps, as :doc:`wait-without-wasting` explains.
#
# A processor moves memory between its cores in *cache lines*, often of 64 bytes. If two ranks
# write to different bytes of one line, the line moves back and forth between their cores.
# ``alignas(kCacheLine)`` starts a new line. Therefore no other rank writes to the line of the
# counters. The bell, which others ring, is in the next line. This page does not measure the
# difference.
#
# The tensors pass through *slots*, four for each rank. The *rings* are for messages between
# two ranks. The ranks map the memory at different addresses, so it contains no pointers.
# Every place is computed from the beginning:
#
# .. literalinclude:: /../extension/shm_collectives/include/memory.hpp
#    :language: cpp
#    :caption: extension/shm_collectives/include/memory.hpp
#    :start-after: // [one-slot]
#    :end-before: // [/one-slot]
#    :dedent:
#
# You can check the arithmetic. This program computes where each part begins, and compares the
# end with the mapping that ``/proc/self/maps`` lists. ``mapped_memory`` returns its two addresses:
#
# .. literalinclude:: /../gallery/communicate/workers/offsets.py
#    :language: python
#    :caption: gallery/communicate/workers/offsets.py
#    :start-after: # [offsets]
#    :end-before: # [/offsets]

output = launch("workers/offsets.py", ranks=3)

# sphinx_gallery_start_ignore
assert all("as large as computed: True" in text for text in output)
assert len(set(output)) == 1
# sphinx_gallery_end_ignore

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
# 64 bytes precede the data.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    ``/proc/self/maps`` contains the address at which the memory begins. The counter ``posted``
#    is at the beginning of a member.
#
#    .. literalinclude:: /../gallery/communicate/workers/numbers_in_slots.py
#       :language: python
#       :caption: gallery/communicate/workers/numbers_in_slots.py
#       :start-after: # [solution]
#       :end-before: # [/solution]
#
# The program of the solution prints:

output = launch("workers/numbers_in_slots.py", ranks=2)

# sphinx_gallery_start_ignore
for text in output:
    first, second = text.splitlines()
    assert first.startswith("rank 0: 6 steps") and first.endswith("[40, 50, 20, 30]")
    assert second.startswith("rank 1: 6 steps") and second.endswith("[41, 51, 21, 31]")
# sphinx_gallery_end_ignore

# %%
# The last two calls have used the first two slots of each rank again.
#
# All ranks now have the same memory, but none of them may read a slot before another has
# written it. :doc:`step-by-step` orders the writes and reads of all ranks.

"""
Share memory without a name
===========================

After this page you can give several processes the same memory. Nothing of it is left when
they end, however they end.

Shared memory often has a name, such as a file in ``/dev/shm``. If the processes are killed,
nobody deletes the file. The memory of *shm* has no name: the kernel frees it with its last
user.

.. diagram:: communicate/memory

A file without a name
---------------------

``memfd_create`` of Linux makes a file that is in no folder. The process has only a
descriptor: the number of the open file. Another process of the same user can open the file
through ``/proc/<process>/fd/<number>``. So rank 0 writes both numbers into the store:

.. literalinclude:: /../gallery/communicate/workers/memory_of_two_ranks.py
   :language: python
   :caption: gallery/communicate/workers/memory_of_two_ranks.py
   :start-after: # [share]
   :end-before: # [/share]
"""

from launcher import launch, run_program

output = launch("workers/memory_of_two_ranks.py", ranks=2)

# sphinx_gallery_start_ignore
assert output[0] == output[1]
assert output[0] == "names in file systems: 0\n['rank 0 was here', 'rank 1 was here']\n"
# sphinx_gallery_end_ignore

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
# .. literalinclude:: /../gallery/communicate/workers/closed_too_early.py
#    :language: python
#    :caption: gallery/communicate/workers/closed_too_early.py
#    :start-after: # [early]
#    :end-before: # [/early]

output = launch("workers/closed_too_early.py", ranks=2)

# sphinx_gallery_start_ignore
assert output[0] == "the next file has the same number: True\n"
assert output[1] == "first try: No such file or directory\nsecond try: something else\n"
# sphinx_gallery_end_ignore

# %%
# The first try fails. The second is worse: it succeeds with the wrong file, because the
# kernel gives a new file the lowest free number.
#
# *shm* has two cures. Rank 0 keeps its descriptor until all ranks have mapped the memory:
# ``host`` of :doc:`meet-the-other-ranks` closes it after it has written ``begin``. And the
# memory begins with a random number that the others compare:
#
# .. literalinclude:: /../extension/shm_collectives/include/memory.hpp
#    :language: cpp
#    :caption: extension/shm_collectives/include/memory.hpp
#    :start-after: // [header]
#    :end-before: // [/header]
#
# The number is the one that rank 0 drew for the meeting. The header also contains the
# sizes that all ranks must agree on, and later the reason if the group fails.
#
# Open and compare
# ----------------
#
# ``Memory::open`` compares the size of the file before it maps it. Then it closes the file
# and compares the header:
#
# .. literalinclude:: /../extension/shm_collectives/src/memory.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/memory.cpp
#    :start-after: // [open]
#    :end-before: // [/open]
#
# The sizes follow from the world size and from ``slot_bytes`` in the options. In the next
# program, the ranks begin with different options. Then they request far too much memory. In
# the end they request the same, small memory:
#
# .. literalinclude:: /../gallery/communicate/workers/options_differ.py
#    :language: python
#    :caption: gallery/communicate/workers/options_differ.py
#    :start-after: # [attempts]
#    :end-before: # [/attempts]

output = launch("workers/options_differ.py", ranks=2)

# sphinx_gallery_start_ignore
for text in output:
    lines = text.splitlines()
    assert "the options of the ranks may differ" in lines[0]
    assert "rank 0 cannot reserve 140737490456832 bytes" in lines[1]
    assert lines[2:] == ["the sum of all ranks is 1"]
# sphinx_gallery_end_ignore

# %%
# Reserve all pages first
# -----------------------
#
# The second message comes from ``Memory::create``:
#
# .. not-executed::
#    :partly:
#
#    In the runs of this page, none of the calls that protect the memory fails.
#
#    .. literalinclude:: /../extension/shm_collectives/src/memory.cpp
#       :language: cpp
#       :caption: extension/shm_collectives/src/memory.cpp
#       :start-after: // [create]
#       :end-before: // [/create]
#       :emphasize-lines: 18
#
# ``ftruncate`` only sets the size. Without ``fallocate``, the kernel would look for a page
# when a rank first writes to it. If there were none, no function could return an error, and
# the process would get a signal. ``fallocate`` reserves all pages in the constructor, where
# an error can be thrown. This page does not use up the memory of the machine. A size of more
# than half of it is an error before the kernel looks for pages.
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
# any case. No sample runs a second user. When all ranks have closed their descriptors, there
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
# .. literalinclude:: /../extension/shm_collectives/src/memory.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/memory.cpp
#    :start-after: // [one-slot]
#    :end-before: // [/one-slot]
#
# You can check the arithmetic. This program computes where each part begins, and compares the
# end with the mapping that ``/proc/self/maps`` lists:
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
# Nothing is left
# ---------------
#
# The next program starts two ranks and forms a group. Then it ends rank 0 with ``SIGTERM``
# and rank 1 with ``SIGKILL``, so neither can clean up. Before and after, it counts the
# processes that have mapped the memory, and the files of this size in ``/dev/shm``. Both ranks
# run this function:
#
# .. literalinclude:: /../gallery/communicate/workers/killed_ranks.py
#    :language: python
#    :caption: gallery/communicate/workers/killed_ranks.py
#    :start-after: # [rank]
#    :end-before: # [/rank]
#
# ``mappings`` reads ``/proc/<process>/maps``. ``look_for`` counts the processes and the files.
# This is the program that sends the signals:
#
# .. literalinclude:: /../gallery/communicate/workers/killed_ranks.py
#    :language: python
#    :caption: gallery/communicate/workers/killed_ranks.py
#    :start-after: # [signals]
#    :end-before: # [/signals]

output = run_program("workers/killed_ranks.py")

# sphinx_gallery_start_ignore
counts = [line.split()[-1] for line in output.splitlines() if line.startswith("    ")]
assert counts == ["2", "0", "1", "0", "0", "0"], output
# sphinx_gallery_end_ignore

# %%
# No process has the memory after the last signal, and no file refers to it. The kernel has
# freed its pages.
#
# Exercise
# --------
#
# The second try of ``closed_too_early.py`` read a wrong file. Write ``create_memory(nonce)``,
# which creates 4096 bytes that begin with eight random bytes. Write
# ``open_memory(process, number, nonce)``, which maps the memory of another process. It raises
# ``ValueError`` if the file is not the one that was meant, even if it is empty.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The size comes first, because Python maps no more bytes than the file has.
#
#    .. literalinclude:: /../gallery/communicate/workers/memory_that_was_meant.py
#       :language: python
#       :caption: gallery/communicate/workers/memory_that_was_meant.py
#       :start-after: # [solution]
#       :end-before: # [/solution]
#
# Rank 1 tries the solution with an empty file, with a memory of another number, and with the
# memory that was meant:

output = launch("workers/memory_that_was_meant.py", ranks=2)

# sphinx_gallery_start_ignore
wrong = "not the memory that was meant\n"
assert output[1] == wrong + wrong + "hello\n"
# sphinx_gallery_end_ignore

# %%
# All ranks now have the same memory, but none of them may read a slot before another has
# written it. :doc:`step-by-step` orders the writes and reads of all ranks.

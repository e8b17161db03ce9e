"""
Memory layout of a group
========================

The ranks now share memory, and the second decision of ``shm`` is how they divide it. They must also make sure that
the memory exists: if the kernel has no page when a rank first writes to its part, a signal ends the process, and no
message names the cause. This page shows which parts the memory has and why, and how a rank gets an error instead of
the signal.

.. diagram:: communicate/lay_out_the_memory/diagram

The parts of the memory
-----------------------

All ranks must agree on where each part of the memory is. A group has one memory with four kinds of parts: a *header*
for the group, a *member* for each rank, the *slots* through which the tensors of collectives pass, and the *rings* for
messages between two ranks.

The ranks map the memory at different addresses, so it contains no pointers. Instead, each rank computes every place
from the beginning of the memory. Here ``slots_at()`` is the place of the first slot, and ``stride`` leads from one
slot to the next:

.. listing:: extension/shm_collectives/src/memory.hpp
   :part: one-slot

A member contains what a rank tells the others beside its data. The counter ``read`` says how many steps the rank has
read, so that the others know which slots they may use again (:doc:`step-by-step`). The *bell* wakes the rank when it
sleeps (:doc:`wait-without-wasting`):

.. listing:: extension/shm_collectives/src/memory.hpp
   :part: member

``alignas`` is there because a processor moves memory between its cores in *cache lines*, often of 64 bytes.
If two ranks write to different bytes of one line, the line moves back and forth between their cores. So the
counter, which only its own rank writes, has a line of its own. The bell, which others ring, is in the next
one.

Each slot contains data, and a *note* that describes the operation, so that ranks notice when they call different
ones. For a fast comparison, the slot also contains the *digest*, a single number computed from the note.

Each rank has four slots, for a reason that :doc:`step-by-step` gives. The other ranks poll the counter ``posted`` of
a slot, so they need its cache line in any case. Therefore this line also contains the first 48 bytes of the data,
and a small tensor needs no other line:

.. listing:: extension/shm_collectives/src/memory.hpp
   :part: slot

A slot holds 256 KiB of data, unless the option ``slot_bytes`` says otherwise. Larger tensors pass in parts.

Each pair of ranks has two rings of four slots, so the number of rings grows with the square of the number of ranks.
To limit their memory, ``shm`` makes the slots of the rings smaller in larger groups, down to 4 KiB.

Reserve pages before their use
------------------------------

If the machine lacks the memory for a group, its ranks must get an error. To see one, both ranks of the next
program request slots of 16 TiB:

.. listing:: gallery/communicate/lay_out_the_memory/too_much_memory.py
   :part: too-much
"""

from launcher import launch, run_program

output = launch("lay_out_the_memory/too_much_memory.py", ranks=2)

# %%
# Rank 0 creates the memory, so both errors say why rank 0 failed. So that the kernel does not have to end processes
# later, rank 0 refuses a group that needs more than half of the machine's memory:
#
# .. admonition:: ``Memory::create``
#    :collapsible: closed
#
#    .. not-executed::
#       :partly:
#
#       In the runs of this page, none of the calls that protect the memory fails.
#
#       .. listing:: extension/shm_collectives/src/memory.hpp
#          :part: create
#
# If the group fits, a page can still be missing later: the kernel looks for a page only when a rank first uses it,
# and then no function can return an error. Rank 0 therefore reserves the pages of the header and the members, with
# ``fallocate``, while the group is formed.
#
# The slots, with those of the rings, are nearly all of the memory, and many groups never use all of theirs. A rank
# therefore reserves each of its slots only when it first writes to it:
#
# .. listing:: extension/shm_collectives/src/memory.hpp
#    :part: reserve
#
# ``reserve`` calls ``madvise`` with ``MADV_POPULATE_WRITE``, which returns an error if the kernel refuses a page. The
# rank then fails the group, so all ranks raise an error.
#
# .. admonition:: Three cases still end in a signal
#    :collapsible: closed
#
#    - If the machine has no page left, the kernel ends a process with ``SIGKILL`` instead. To let the kernel refuse in
#      time, set ``vm.overcommit_memory`` to 2, with which it promises no more memory than it has.
#    - If a cgroup limits the memory of a container, the kernel ends a process of the container in the same way.
#    - On Linux before 5.14, whose ``madvise`` lacks this option, the rank touches the pages itself, and gets ``SIGBUS``
#      where a newer kernel would return the error.
#
# Bug: memory that can shrink
# ---------------------------
#
# Reserved pages help only as long as they stay. Every process that has the file can shrink it, and so take away pages
# that others have mapped. A *seal* forbids such a change for good. This program shrinks the file without and with a
# seal:
#
# .. listing:: gallery/communicate/lay_out_the_memory/sealed_pages.py
#    :part: seal
#    :end-before: if __name__

output = run_program("lay_out_the_memory/sealed_pages.py")

# %%
# Without the seal, the process ends with ``SIGBUS`` when it reads the page. The fix is the seal, with which
# ``ftruncate`` fails and the page is still there. ``shm`` adds two more: ``F_SEAL_GROW`` keeps the size from
# growing, and ``F_SEAL_SEAL`` forbids further seals.
#
# Exercise
# --------
#
# Two ranks call ``all_reduce`` six times, and in call ``i``, counted from 0, the tensor of a rank is the number
# ``10 * i + rank``. Each call is one step, in which a rank writes its number into one of its slots. Predict which
# numbers the four slots of each rank contain at the end.
#
# Check your answer: compute where the slots begin, and read the numbers there with ``ctypes``. The header has 2048
# bytes and a member has 128, and in each slot, 80 bytes precede the data.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    ``mapped_memory`` returns the addresses at which the memory begins and ends, from
#    ``/proc/self/maps``. The counter ``posted`` is in the second cache line of a slot.
#
#    .. listing:: gallery/communicate/lay_out_the_memory/numbers_in_slots.py
#       :part: solution
#
# The program of the solution prints:

output = launch("lay_out_the_memory/numbers_in_slots.py", ranks=2)

# %%
# The last two calls have used the first two slots of each rank again. That is safe only if all ranks have
# read these slots before. :doc:`step-by-step` shows how a rank knows that.
#
# .. admonition:: After this page you have decided
#
#    - which parts the memory has, and how a rank computes the place of each;
#    - which fields share a cache line, because one rank writes them or because the same ranks read them;
#    - how large a slot is, and how the memory grows with the ranks;
#    - when pages are reserved, and which failures remain signals;
#    - which seals the file has.
#
# Not run here: a shortage of memory, a container with a limit, and an older kernel.

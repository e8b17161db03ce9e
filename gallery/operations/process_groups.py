"""
Form process groups
===================

After this page you can form a group of processes in several ways, share data in a
store, and create a group of only some ranks.

Processes that want to communicate form a *process group*. ``init_process_group``
creates the first group, which contains all ranks and is called the world. Every rank
must call it.

To form the group, the ranks must find each other. That is called *rendezvous*.

.. diagram:: operations/process_groups/diagram

The environment
---------------

Without further arguments, ``init_process_group`` reads four variables from the
environment: ``MASTER_ADDR``, ``MASTER_PORT``, ``RANK`` and ``WORLD_SIZE``. ``torchrun``
sets them. In a program that you start by hand, they are missing. Here the call gets the
rank and the world size as arguments:
"""

import torch.distributed as dist

try:
    dist.init_process_group("gloo", rank=0, world_size=1)
except ValueError as error:
    print(f"ValueError: {error}")

# %%
# The network is not the cause of this error. ``MASTER_ADDR`` and ``MASTER_PORT`` say where
# rank 0 waits for the others, and nobody has set them. Start the program with
# ``torchrun``, set the variables yourself, or say in the call where the ranks meet:
#
# * ``init_method="tcp://host:port"``: rank 0 listens there;
# * ``init_method="file:///path"``: the ranks meet in a file that all of them can reach;
# * ``store=...``: the ranks meet in a store that you created yourself.
#
# Start the ranks yourself
# ------------------------
#
# In this program, ``mp.spawn`` starts the ranks. Each of them sets the four variables and
# forms a first group. For the second group, each rank passes an address of the form
# ``tcp://host:port``. A third way, the file, is in :doc:`starting-processes`, which also
# explains ``mp.spawn`` and ``run_program``.
#
# .. listing:: gallery/operations/process_groups/spawned_group.py

from launcher import launch, run_program

run_program("process_groups/spawned_group.py")

# %%
# On several nodes, use a name or an address of rank 0's node that the other nodes can
# reach, in place of ``localhost``. This program runs on one machine.
#
# The wait for the other ranks
# ----------------------------
#
# Whether ``init_process_group`` waits for the other ranks depends on the backend and on
# the store. Gloo waits, because each rank connects to all others. A backend that opens no
# connections can return at once. The *dummy* of this site is such a backend. In the next
# program, rank 1 calls a second later than rank 0, and reads in a store whether the call
# of rank 0 has returned:
#
# .. listing:: gallery/operations/process_groups/late_rank.py

launch("process_groups/late_rank.py", ranks=2)

# %%
# So a program must not take the return of ``init_process_group`` as a sign that all ranks
# have started. With ``TORCH_DIST_INIT_BARRIER=1`` in the environment, PyTorch adds a
# barrier to the call, with any backend. This page does not run that.
#
# Stores
# ------
#
# Ranks always meet in a *store*: a small key-value store that they share. Backends
# exchange their addresses in it, and a program may use it too. These are the three most
# common kinds:
#
# ``TCPStore``
#     One process serves it, and the others connect. The variables of the environment and
#     ``tcp://`` lead to this store.
# ``FileStore``
#     It keeps its data in a file, for processes that share a file system.
# ``HashStore``
#     It keeps its data in the memory of one process, for threads, tests, and a single rank.

from datetime import timedelta

store = dist.TCPStore("localhost", 0, world_size=1, is_master=True)  # any free port
store.set("greeting", "hello")
print("get:", store.get("greeting"))
print("add:", store.add("counter", 1), store.add("counter", 1))

# sphinx_gallery_start_ignore
# expected stderr: waitForInput
# sphinx_gallery_end_ignore

# %%
# ``get`` waits for a key that is not there yet. ``wait`` does the same, and you can give it
# a timeout:

try:
    store.wait(["never set"], timedelta(milliseconds=200))
except dist.DistStoreError as error:
    print("timeout:", str(error).splitlines()[0])

# %%
# Groups within the world
# -----------------------
#
# ``new_group`` creates a group of only some ranks. Only these ranks take part in a
# collective on that group. Each of them also has a number within the group, which may
# differ from its rank in the world.
#
# .. listing:: gallery/operations/process_groups/sub_groups.py

launch("process_groups/sub_groups.py", ranks=4)

# %%
# The end
# -------
#
# Destroy every process group that you initialize. ``destroy_process_group`` closes the
# connections and ends the threads of the backend. Call it in every rank, at the end of the
# program. If a rank just exits, other ranks may hang in the middle of a collective.

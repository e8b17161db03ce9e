"""
Process groups
==============

Processes that want to communicate form a *process group*. If one of them is missing, or looks for the others
elsewhere, the call that creates the group can fail or wait in vain. This page shows how the ranks of a group find
each other, how they share small data in a store, which library serves which device, and how some of the ranks form
a group of their own.

``init_process_group`` creates the first group, called the world. It contains all ranks, so every rank must make
this call. Before the group exists, its ranks must find each other, which is called *rendezvous*.

.. diagram:: operations/process_groups/diagram

The environment
---------------

Without further arguments, ``init_process_group`` reads four variables from the environment: ``MASTER_ADDR``,
``MASTER_PORT``, ``RANK`` and ``WORLD_SIZE``. ``torchrun`` sets them, but in a program that you start by hand they are
missing. Here the arguments replace only ``RANK`` and ``WORLD_SIZE``:
"""

import torch.distributed as dist

try:
    dist.init_process_group("gloo", rank=0, world_size=1)
except ValueError as error:
    print(f"ValueError: {error}")

# %%
# The network is not the cause of this error: ``MASTER_ADDR`` and ``MASTER_PORT`` say where rank 0 waits for
# the others, and they are not set. Start the program with ``torchrun``, set the variables yourself, or name
# the place of the rendezvous in the call:
#
# * ``init_method="tcp://host:port"``: rank 0 listens there;
# * ``init_method="file:///path"``: the ranks meet in a file that all of them can reach;
# * ``store=...``: the ranks meet in a store that you created yourself.
#
# Ranks without a launcher
# ------------------------
#
# If ``mp.spawn`` starts the ranks, your code must say where they meet. The next program forms two groups, one after
# the other. For the first group, each rank sets the four variables. For the second group, each rank passes an address
# of the form ``tcp://host:port``. Ranks can also meet in a file, as in :doc:`starting-processes`, which explains
# ``mp.spawn`` and ``run_program``, too.
#
# .. listing:: gallery/operations/process_groups/spawned_group.py
#    :start-at: def work
#    :end-before: def add_up
#
# .. admonition:: The whole program
#    :collapsible: closed
#
#    .. listing:: gallery/operations/process_groups/spawned_group.py
#       :no-caption:

from launcher import launch, run_program

run_program("process_groups/spawned_group.py")

# %%
# Both lines have the sum 3, which is 1 from rank 0 plus 2 from rank 1, so the ranks have met in both ways.
#
# This program runs on one machine, so ``localhost`` is enough. On several nodes, replace it with a name or
# an address of rank 0's node that the other nodes can reach.
#
# Stores
# ------
#
# With every backend but ``mpi``, ranks meet in a *store*, a small key-value store that they share. Backends exchange
# their addresses in the store, and a program may use it, too. Choose the kind of store by what the processes share:
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
# ``get`` returns bytes, even if the program has set a text, and ``add`` returns the number after the addition.
#
# ``get`` waits for a key that is not there yet, at most for the timeout of the store. ``wait`` does the
# same, and you can give it a shorter timeout:

try:
    store.wait(["never set"], timedelta(milliseconds=200))
except dist.DistStoreError as error:
    print("timeout:", str(error).splitlines()[0])

# %%
# The wait for the other ranks
# ----------------------------
#
# Whether ``init_process_group`` waits for the other ranks depends on the backend and on the store. Gloo
# waits, because each rank connects to all others. A backend that opens no connections can return at once,
# as the tutorial's backend, the *dummy*, does. In the next program, rank 1 calls a second later than rank 0, and
# reads in a store whether the call of rank 0 has returned:
#
# .. listing:: gallery/operations/process_groups/late_rank.py

launch("process_groups/late_rank.py", ranks=2)

# %%
# With gloo, rank 0 has waited; with the dummy, its call has returned before rank 1 calls. So a program must not
# take the return of ``init_process_group`` as a sign that all ranks have started. If your program needs such a
# sign, set ``TORCH_DIST_INIT_BARRIER=1`` in the environment. PyTorch then adds a barrier to the call, with any
# backend.
#
# The steps of ``init_process_group``
# -----------------------------------
#
# If the call hangs or fails, it helps to know in which of its steps. In this order, each rank
#
# 1. chooses the backend and the timeout, if the arguments leave them open;
# 2. meets the other ranks in a store; if this is a ``TCPStore``, ``torchrun`` or rank 0 serves it;
# 3. puts a prefix before the keys of the group, so that other groups and the program can use the same store;
# 4. creates a backend for each device, or one for all of them, as the argument ``backend`` says. Through the store, the
#    ranks exchange what this backend needs to connect them: for gloo their addresses, and for NCCL an id that rank 0
#    creates;
# 5. makes the new group the default group, which a call uses if you pass no ``group``.
#
# The store is only for small data: with gloo and NCCL, tensors travel through the connections of the backend.
#
# NCCL, Gloo and other libraries
# ------------------------------
#
# The fourth step needs the name of a backend. The same program can run on several libraries, each of which is a backend
# of ``torch.distributed``. The right one depends on where the tensors are and on the network between the processes:
#
# .. diagram:: operations/process_groups/libraries
#
# .. list-table::
#    :header-rows: 1
#
#    * - Where the tensors are
#      - Backend
#      - Remarks
#    * - NVIDIA GPUs
#      - ``nccl``
#      - PyTorch's documentation recommends it for training on these GPUs; handles CUDA tensors only
#    * - CPUs
#      - ``gloo``
#      - included in the builds that pip installs on Linux; needs only a network
#    * - AMD GPUs
#      - ``nccl``
#      - in PyTorch for ROCm, this name means RCCL, AMD's library
#    * - Intel GPUs
#      - ``xccl``
#      - only where it was compiled in
#    * - a cluster with its own MPI
#      - ``mpi``
#      - PyTorch must be compiled against that MPI, for example Open MPI
#    * - networks that UCX supports
#      - ``ucc``
#      - experimental; only where it was compiled in
#
# If a program has tensors on CPUs and on GPUs, use both backends in one group, as ``"cpu:gloo,cuda:nccl"``. If your
# hardware or library is missing here, look for a package: packages add support by registering a
# backend of their own. The :doc:`tutorial </tutorial/basics>` shows how to write one.
#
# Builds of PyTorch differ, so ask yours before you rely on a library: ``dist.is_nccl_available()`` returns whether
# it has NCCL, and there are such functions for ``gloo``, ``mpi``, ``ucc`` and ``xccl``.
#
# If you do not name a backend, ``init_process_group`` chooses one for a single device: the one in ``device_id``, or
# else an accelerator that it finds, or else the CPU. So a group on NVIDIA GPUs has no backend for tensors on the
# CPU. The next listing prints the default backend of each device:

# sphinx_gallery_start_ignore
import torch

built_in = {x: getattr(dist, f"is_{x}_available")() for x in ("gloo", "nccl", "mpi", "ucc", "xccl")}
with_cuda = torch.version.cuda is not None
assert built_in == {"gloo": True, "nccl": with_cuda, "mpi": False, "ucc": False, "xccl": False}
# sphinx_gallery_end_ignore
for device, backend in sorted(dist.Backend.default_device_backend_map.items()):
    print(f"{device:5} {backend}")

# %%
# Create a group of only some ranks
# ---------------------------------
#
# If a collective concerns only some ranks, create a group of them with ``new_group``, which by default all ranks
# of the world must call. Only the members take part in a collective on that group. Each of them also has a
# number within the group, which may differ from its rank in the world.
#
# .. listing:: gallery/operations/process_groups/sub_groups.py

launch("process_groups/sub_groups.py", ranks=4)

# %%
# The last number of each line shows that only members contribute: it is 2 for ranks 0 and 2, and 4 for ranks 1 and
# 3, whereas the sum over the world is 6 for all.
#
# The end of a group
# ------------------
#
# If a rank just exits, other ranks may hang in the middle of a collective. So call ``destroy_process_group`` in every
# rank at the end of the program, once for each ``init_process_group``. It shuts the backend down, and PyTorch lets go
# of the group.
#
# Not run here: ``TORCH_DIST_INIT_BARRIER``, and the libraries of the table other than gloo.

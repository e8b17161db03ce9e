"""
Form process groups
===================

Processes that want to communicate form a *process group*. ``init_process_group``
creates the first one, which holds all ranks and is called the world. It belongs in
the ranks: each of them calls it.

To form the group, the ranks must find each other. That is called *rendezvous*.

Whether the call waits for the other ranks depends on the backend and on the store.
With gloo it waits, because gloo connects each rank to all others. A backend that
opens no connections, such as the dummy of this site, can return while other ranks
have not called it yet. PyTorch adds a barrier of its own only if
``TORCH_DIST_INIT_BARRIER=1`` is in the environment. The samples on this page do not
show the difference.

.. diagram:: operations/process-groups

The environment
---------------

Without further arguments, ``init_process_group`` looks into the environment, where
``torchrun`` has left what it needs. A program that is started by hand finds nothing
there:
"""

import torch.distributed as dist

try:
    dist.init_process_group("gloo", rank=0, world_size=1)
except ValueError as error:
    print(f"ValueError: {error}")

# sphinx_gallery_start_ignore
    assert "MASTER_ADDR" in str(error)
else:
    raise AssertionError("a group without MASTER_ADDR")
# sphinx_gallery_end_ignore

# %%
# This is no network problem, and nothing is broken. ``MASTER_ADDR`` and
# ``MASTER_PORT`` say where rank 0 waits for the others, and nobody has set them.
# Start the program with ``torchrun``, or say in the call where the ranks are to meet:
#
# * ``init_method="tcp://host:port"``: rank 0 listens there;
# * ``init_method="file:///path"``: in a file that all ranks can reach;
# * ``store=...``: in a store that you created yourself.
#
# Stores
# ------
#
# Behind all of these stands a *store*: a small key-value store that the ranks share.
# Backends use it to exchange their addresses, and a program may use it too. There are
# three kinds you will meet:
#
# ``TCPStore``
#     One process serves it, the others connect. This is what the environment leads to.
# ``FileStore``
#     It lives in a file, for processes that share a file system.
# ``HashStore``
#     It lives in the memory of one process, for threads, tests, and a single rank.

from datetime import timedelta

store = dist.TCPStore("localhost", 0, world_size=1, is_master=True)  # any free port
store.set("greeting", "hello")
print("get:", store.get("greeting"))
print("add:", store.add("counter", 1), store.add("counter", 1))

# sphinx_gallery_start_ignore
# expected stderr: waitForInput
assert store.get("greeting") == b"hello" and store.get("counter") == b"2"
# sphinx_gallery_end_ignore

# %%
# ``get`` waits for a key that is not there yet. So does ``wait``, and takes a timeout:

try:
    store.wait(["never set"], timedelta(milliseconds=200))
except dist.DistStoreError as error:
    print("timeout:", str(error).splitlines()[0])

# sphinx_gallery_start_ignore
    assert "200ms" in str(error)
else:
    raise AssertionError("found a key that was never set")
# sphinx_gallery_end_ignore

# %%
# Groups within the world
# -----------------------
#
# ``new_group`` creates a group of some of the ranks. A collective on that group
# involves its members only. Each rank also has a number within the group, which may
# differ from its rank in the world.
#
# .. literalinclude:: /../gallery/operations/workers/sub_groups.py
#    :language: python
#    :caption: gallery/operations/workers/sub_groups.py

from launcher import launch

launch("workers/sub_groups.py", ranks=4)

# %%
# The end
# -------
#
# ``destroy_process_group`` closes the connections and ends the threads of the
# backend. Call it in every rank, at the end of the program: a rank that just exits
# may leave others in the middle of a collective.

"""
Step 2: When PyTorch creates the backend
========================================

Many backends connect their ranks in the function that creates them. Before you write it, see which ranks
call it, whether ``init_process_group`` waits for the others, and which keys of earlier groups the function
finds in the store.

.. diagram:: tutorial/step_2_create_function/diagram

The programs below use the dummy, which Step 3 compiles and installs. To show each call, they register a
function in Python under another name, which prints its arguments and calls the function of the dummy:

.. listing:: gallery/tutorial/step_2_create_function/create_function.py
   :part: create
"""

# %%
# Members and devices
# -------------------
#
# Not every rank creates a backend for every group, and some ranks create several for one group. The
# program first creates a group of both ranks, and one of rank 1 only. Then it creates groups whose argument
# names a backend for each device. ``launch``, a helper of this site, runs ``torchrun`` and prints what each
# rank has printed:
#
# .. listing:: gallery/tutorial/step_2_create_function/create_function.py
#    :part: groups

from launcher import launch

launch("step_2_create_function/create_function.py", ranks=2)

# %%
# Rank 0 does not call the function for the second group, because it is not a member, and rank 1 is rank 0
# of that group.
#
# For ``cpu:traced,cuda:traced`` one call is enough, because a single backend serves both devices. If the
# argument names another backend as well, PyTorch calls a function for each device, with the same rank and
# size. The output shows only the calls for ``traced``, because the dummy's own function prints nothing. The
# keys of these backends do not collide, because each key contains the name of the device.
#
# However, a group keeps only one backend of each ``BackendType``, and all backends that are not part of
# PyTorch share the type ``CUSTOM``. In the last two groups, the first backend therefore serves all devices.
# PyTorch drops the others without a call of their ``shutdown``, so the destructor of a backend must clean up
# as well. :doc:`step-4-dispatch-by-device` shows which backends share the type.
#
# The default of a device
# -----------------------
#
# A program does not have to name a backend. ``init_process_group(device_id=…)`` then uses the default of
# this device, which is the backend that was registered first for it. Gloo therefore stays the default for
# the CPU:

import torch.distributed as dist

dist.Backend.register_backend("acme", lambda *arguments: None, devices=["cpu", "npu"])
defaults = dist.Backend.default_device_backend_map
print({device: defaults[device] for device in ["cpu", "npu"]})

# %%
# A rank that is late
# -------------------
#
# With the store of ``torchrun``, ``init_process_group`` itself does not wait for the other ranks. Whether a
# rank waits depends on the function of its backend, which does so if it exchanges addresses. To see the
# difference, rank 1 of the next program starts each group only when rank 0 has it, or after 3 seconds:
#
# .. admonition:: The program with a late rank
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/step_2_create_function/late_rank.py
#       :part: start

launch("step_2_create_function/late_rank.py", ranks=2)

# %%
# Because the dummy does not use the store, rank 0 has its group at once. With gloo it waits, because gloo
# connects all ranks when it is created. With ``TORCH_DIST_INIT_BARRIER=1``, PyTorch itself waits in the
# store until all ranks have created the backend. Without ``torchrun``, rank 0 waits as well, because it
# hosts the store and lets all ranks connect first.
#
# When to connect is your decision. If your backend connects later, for example in the first collective,
# ``init_process_group`` returns although another rank is missing. The collective must then time out with an
# error that names the missing rank.
#
# Keys of a destroyed group
# -------------------------
#
# PyTorch names groups by a counter, and puts the name before each key. Although this keeps the groups of a
# program apart, it does not protect a group from the keys of a destroyed one. A store in memory shows why,
# because it can list its keys:

import dummy_collectives  # importing it registers "dummy"

create_dummy = dist.Backend._plugins["DUMMY"].creator_fn


def create(store, rank, size, timeout):
    print("key of an earlier group found:", store.check(["address"]))
    store.set("address", "")
    return create_dummy(store, rank, size, timeout)


dist.Backend.register_backend("traced", create, devices=["cpu"])
store = dist.HashStore()

for _ in range(2):
    dist.init_process_group("traced", store=store, rank=0, world_size=1)
    dist.new_group([0])
    dist.destroy_process_group()
print(sorted(store.list_keys()))

# %%
# Because ``destroy_process_group()`` resets the counter, the second ``init_process_group`` on the same
# store uses the same names, and the function finds the old keys. This also happens under ``torchrun``,
# where a program has one store for its whole life.
#
# A backend that exchanges addresses can then connect to a group that no longer exists. In the next program,
# both ranks publish an address and read the addresses of all:
#
# .. listing:: gallery/tutorial/step_2_create_function/old_keys.py
#    :part: exchange
#
# The fix is to put the number of the group before its keys. To know that number, a second function counts
# the calls of all ranks with ``add`` of the store. Each call waits for all addresses, so no rank can start
# group n+1 before every rank has entered group n. The number of earlier calls, divided by the size and
# rounded down, is therefore the same on all ranks:
#
# .. listing:: gallery/tutorial/step_2_create_function/old_keys.py
#    :part: numbered
#
# The program creates two groups with each function, and rank 1 is late for the second group:
#
# .. admonition:: The groups with old and new keys
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/step_2_create_function/old_keys.py
#       :part: groups

launch("step_2_create_function/old_keys.py", ranks=2)

# %%
# With the same keys, rank 0 takes the address that rank 1 had in group 1. With new keys, it waits for the
# new address.
#
# Counting has a limit: a rendezvous that fails leaves a count to which the missing rank has not added.
# :doc:`/right/rendezvous` therefore draws a random number for each rendezvous.
#
# Not run here: ``init_process_group`` without ``torchrun`` on several ranks.

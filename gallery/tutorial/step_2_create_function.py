"""
Step 2: See when PyTorch creates the backend
============================================

After this page you can say which ranks create a backend, whether
``init_process_group`` waits for all of them, and which keys the store contains.

.. diagram:: tutorial/step_2_create_function/diagram

The samples below use the dummy that Step 3 compiles and installs. The function
that creates a backend can be written in Python, too. The one below prints its arguments
and calls the function of the dummy. We register it under another name:

.. listing:: gallery/tutorial/step_2_create_function/create_function.py
   :part: create
"""

# %%
# Members and devices
# -------------------
#
# The program creates a group of both ranks, and a group of rank 1 only. Then it creates
# groups with a backend for each device:
#
# .. listing:: gallery/tutorial/step_2_create_function/create_function.py
#    :part: groups

from launcher import launch

# sphinx_gallery_start_ignore
from functools import partial

# What PyTorch 2.13 logs when it destroys a group whose argument names devices.
launch = partial(launch, expected_stderr="No backend of type 0")
# sphinx_gallery_end_ignore
launch("step_2_create_function/create_function.py", ranks=2)

# %%
# Rank 0 is not a member of the second group and does not call the function. Rank 1 is
# rank 0 of that group.
#
# One call is enough for ``cpu:traced,cuda:traced``: a single backend serves both devices.
# If another backend is among them, PyTorch calls a function for each device. Each call
# receives the same rank and size. The keys in the store differ, because each key contains
# the name of the device.
#
# But a group keeps one backend of each ``BackendType``, and all backends that are not part
# of PyTorch share the type ``CUSTOM``. In the last two groups, the first one serves all
# devices. PyTorch drops the others and does not call their ``shutdown``.
# :doc:`step-4-dispatch-by-device` shows this.
#
# The default of a device
# -----------------------
#
# A registration makes the backend the default of each device that has none yet:

import torch.distributed as dist

dist.Backend.register_backend("acme", lambda *arguments: None, devices=["cpu", "npu"])
defaults = dist.Backend.default_device_backend_map
print({device: defaults[device] for device in ["cpu", "npu"]})

# %%
# ``init_process_group(device_id=…)`` of a program that names no backend uses the default of
# this device.
#
# A rank that is late
# -------------------
#
# With the store of ``torchrun``, ``init_process_group`` itself waits for nobody. The function
# of the backend waits if it exchanges addresses. In this program, rank 1 starts each group as soon
# as rank 0 has it, or 3 seconds later:
#
# .. listing:: gallery/tutorial/step_2_create_function/late_rank.py
#    :part: start

launch("step_2_create_function/late_rank.py", ranks=2)

# %%
# The dummy does not use the store, so rank 0 has its group at once. Gloo connects all ranks
# when it is created. With ``TORCH_DIST_INIT_BARRIER=1``, PyTorch itself waits in the store
# until all ranks have created the backend.
#
# Without ``torchrun``, rank 0 hosts the store and waits there until all ranks have
# connected. No sample shows this case.
#
# If your backend connects later, for example in the first collective, a program can
# finish ``init_process_group`` although another rank is missing. The timeout of the
# collective must then report the missing rank.
#
# Keys of a destroyed group
# -------------------------
#
# PyTorch names groups by a counter, and puts the name before each key. A store in memory
# can list its keys:

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
# ``destroy_process_group()`` sets the counter back. The second ``init_process_group`` on
# the same store uses the same names, and the function finds the old keys. Programs under
# ``torchrun`` have one store for their whole life, so this happens to them.
#
# A backend that exchanges addresses can then connect to a group that no longer exists. In
# the next program, both ranks publish an address and read the addresses of all:
#
# .. listing:: gallery/tutorial/step_2_create_function/old_keys.py
#    :part: exchange
#
# A second function puts the number of the group before its keys. ``add`` of the store
# counts the calls of all ranks. No rank begins a group before all ranks have made the
# call for the group before, because each call waits for all addresses. The number of
# earlier calls, divided by the size and rounded down, is therefore the same on all ranks:
#
# .. listing:: gallery/tutorial/step_2_create_function/old_keys.py
#    :part: numbered
#
# The program creates two groups with each function. Rank 1 is late for the second group:
#
# .. listing:: gallery/tutorial/step_2_create_function/old_keys.py
#    :part: groups

launch("step_2_create_function/old_keys.py", ranks=2)

# %%
# With the same keys, rank 0 takes the address that rank 1 had in group 1. With new keys
# it waits for the new address.

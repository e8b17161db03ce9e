"""
Choose a backend for each device
================================

A program with an accelerator often also sends CPU tensors. So one process group can combine
backends, for example gloo for CPU tensors and your own for the accelerator. This page shows how to assign
them, and when PyTorch does not call the backend that you expect.

The device of the tensors decides which backend runs a collective, and the first argument of
``init_process_group`` assigns the backends to the devices:

.. diagram:: tutorial/step_4_dispatch_by_device/diagram

.. list-table::
   :header-rows: 1

   * - Argument
     - Meaning
   * - ``"dummy"``
     - the dummy, for every device that it was registered with
   * - ``"cpu:dummy"``
     - the dummy for CPU tensors; no backend for any other
   * - ``"cpu:gloo,cuda:dummy"``
     - gloo for CPU tensors, the dummy for CUDA tensors
"""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

# sphinx_gallery_start_ignore
# expected stderr: No backend of type 0 found for Process Group
# sphinx_gallery_end_ignore
for backend in ["dummy", "cpu:dummy", "cpu:gloo,cuda:dummy"]:
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    print(f"init_process_group({backend!r})")
    print("    get_backend_config:", dist.get_backend_config())
    print("    a CPU tensor of ones after all_reduce:", tensor.tolist())
    dist.destroy_process_group()

# %%
# The dummy was registered for CPU and CUDA, so ``"dummy"`` alone stands for both. In the first two cases, the dummy set
# the tensor to zeros. In the last case, gloo ran the all-reduce, and left the ones, because the sum over one rank is
# the tensor itself.
#
# .. admonition:: The warning of PyTorch 2.13
#    :collapsible: closed
#
#    If the argument of a group names devices and a backend such as the dummy, PyTorch 2.13 logs a warning when the
#    group is destroyed: ``No backend of type 0 found for Process Group``. You can ignore it, because for collectives
#    the device of the tensor decides.
#
# PyTorch does not always call the backend that you expect: another one may have the same type, the device may
# have no kernels, or the group may have no backend for it. The next three sections show these cases.
#
# Backends that share a type
# --------------------------
#
# If two backends in the argument have the same ``BackendType``, the second is never called, because a group keeps one
# backend of each type. The first backend then serves the devices of both, without a warning. All backends from
# outside of PyTorch have the type ``CUSTOM``, and so have some of PyTorch's own, such as ``fake`` and, since PyTorch
# 2.14, ``nccl2``:

from torch.testing._internal.distributed import fake_pg  # registers "fake"


def start(backend, **options):
    dist.init_process_group(
        backend, store=dist.HashStore(), rank=0, world_size=1, **options
    )
    return dist.distributed_c10d._get_default_group()


for backend in ["cpu:gloo,cuda:dummy", "cpu:dummy,cuda:fake", "cpu:fake,cuda:dummy"]:
    group = start(backend)
    names = [group._get_backend(torch.device(x)).name() for x in ("cpu", "cuda")]
    print(f"{backend} has {names[0]} for CPU and {names[1]} for CUDA")
    dist.destroy_process_group()

# %%
# In the last two lines, the first backend also gets the CUDA tensors that are meant for the second. To avoid this,
# combine your backend with one of another type, such as gloo.
#
# A program that passes ``device_id`` gets an error instead. PyTorch binds the first backend to this device, does not
# bind the second, and then finds that the two are not bound to the same device:

try:
    start("cpu:dummy,cuda:fake", device_id=torch.device("cpu", 0))
except (RuntimeError, ValueError) as error:
    print(type(error).__name__, str(error).partition(" to be true")[0], sep=": ")

# %%
# .. note::
#
#    Before 2.15, ``device_id`` must be an accelerator. This program passes a CPU, so it fails earlier.
#
# Devices without kernels
# -----------------------
#
# A backend that is registered for a device may still never be called. Each collective is an operator of PyTorch's
# dispatcher. The dispatcher calls the kernel for the device of the tensor, and only this kernel calls the backend.
# For some devices, the PyTorch of this site has no kernels:

for key in ["CPU", "CUDA", "PrivateUse1", "XPU", "HPU", "MPS", "MTIA"]:
    found = torch._C._dispatch_has_kernel_for_dispatch_key("c10d::allreduce_", key)
    print(f"{key:12} {'has a kernel' if found else 'has no kernel'}")

# %%
# So a backend that is registered for ``xpu``, for example, is never called until a library registers
# kernels for that device. The type ``PrivateUse1``, which has kernels, is for accelerators that are not
# part of PyTorch, such as the simulated one of :doc:`/accelerators/device`.
#
# A tensor without a backend
# --------------------------
#
# With ``"cpu:dummy"``, a group has no backend for CUDA tensors, so PyTorch raises an error when it looks
# for one:

group = start("cpu:dummy")
try:
    group._get_backend(torch.device("cuda"))
except RuntimeError as error:
    print(error)

# sphinx_gallery_start_ignore
if hasattr(dist, "get_backend_impl"):
    cpu = torch.device("cpu")
    assert dist.get_backend_impl(device=cpu) is group._get_backend(cpu)
# sphinx_gallery_end_ignore
dist.destroy_process_group()

# %%
# The samples call the private ``_get_backend``, because all releases since PyTorch 2.13 have it. Since PyTorch 2.14,
# prefer the public ``dist.get_backend_impl``, which returns the same object.
#
# Check which backend ran
# -----------------------
#
# Not all of these cases raise an error, so check which backend ran. A sum over one rank changes nothing, so use two
# ranks with different numbers: gloo then gives their sum, and the dummy gives zeros. The worker all-reduces a CPU
# tensor with gloo. If the computer has a GPU, the worker also all-reduces a CUDA tensor with the dummy, and then
# broadcasts it, which the dummy cannot do:
#
# .. not-executed::
#    :partly:
#
#    The computer that builds this site has no GPU. The lines below ``if torch.cuda.is_available()`` were
#    not executed. All others were.
#
#    .. listing:: gallery/tutorial/step_4_dispatch_by_device/cpu_gloo_cuda_dummy.py

from launcher import launch

launch("step_4_dispatch_by_device/cpu_gloo_cuda_dummy.py", ranks=2)

# %%
# ``[3.0, 3.0]`` can only come from gloo, because the dummy would leave zeros. To test a group with several backends,
# choose numbers like these, whose result shows which backend ran.

"""
Choosing a communication library
================================

The same program can run on several libraries, each of which is a backend of ``torch.distributed``. The
right one depends on where the tensors are and on the network between the processes:

.. diagram:: operations/choosing_a_library/diagram

.. list-table::
   :header-rows: 1

   * - Where the tensors are
     - Backend
     - Remarks
   * - NVIDIA GPUs
     - ``nccl``
     - PyTorch's documentation recommends it for training on these GPUs; handles CUDA tensors only
   * - CPUs
     - ``gloo``
     - included in the builds that pip installs on Linux; needs only a network
   * - AMD GPUs
     - ``nccl``
     - in PyTorch for ROCm, this name means RCCL, AMD's library
   * - Intel GPUs
     - ``xccl``
     - only where it was compiled in
   * - a cluster with its own MPI
     - ``mpi``
     - PyTorch must be compiled against that MPI, for example Open MPI
   * - networks that UCX supports
     - ``ucc``
     - experimental; only where it was compiled in

If your hardware or library is missing here, look for a package: packages add support by registering a
backend of their own. The :doc:`tutorial </tutorial/basics>` shows how to write one.

When in doubt, train on NVIDIA GPUs with one process per GPU and ``nccl``, and use ``gloo`` for
everything on CPUs. If a program has both kinds of tensors, use both backends in one group, as
``"cpu:gloo,cuda:nccl"``.

The libraries in your PyTorch
-----------------------------

Builds of PyTorch differ, so ask yours before you rely on a library. For each, a function returns
whether your build has it:
"""

import torch
import torch.distributed as dist

names = ("gloo", "nccl", "mpi", "ucc", "xccl")
available = {name: getattr(dist, f"is_{name}_available")() for name in names}
print("distributed:", dist.is_available())
print("gloo:", available["gloo"])

# sphinx_gallery_start_ignore
assert available["nccl"] == (torch.version.cuda is not None)
# sphinx_gallery_end_ignore

# %%
# The other results depend on the build, so this page does not print them. The build for CUDA, which pip
# installs on Linux, has ``nccl``, and a CPU build does not. Neither has ``mpi``, ``ucc`` or ``xccl``.
#
# A build can have a library without the hardware for it. If you do not name a backend,
# ``init_process_group`` therefore chooses by the device: the one in ``device_id``, or else an accelerator that
# it finds, or else the CPU. It uses the backend that the next table has for this device, and no other, so
# a group on NVIDIA GPUs then has no backend for tensors on the CPU. A package that registers a backend for a new
# device adds a row:

for device, backend in sorted(dist.Backend.default_device_backend_map.items()):
    print(f"{device:5} {backend}")
accelerator = torch.accelerator.current_accelerator(check_available=True)
print("accelerator on this machine:", accelerator.type if accelerator else "none")

# %%
# Not run here: the libraries of the first table.

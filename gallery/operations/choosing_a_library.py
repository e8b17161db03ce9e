"""
Choose a communication library
==============================

The same program runs on several libraries. Which of them is right depends on where
the tensors are and on the network in between.

.. diagram:: operations/libraries

.. list-table::
   :header-rows: 1

   * - Where the tensors are
     - Backend
     - Remarks
   * - NVIDIA GPUs
     - ``nccl``
     - by far the fastest there; handles CUDA tensors only
   * - CPUs
     - ``gloo``
     - comes with the builds that pip installs on Linux, needs nothing but a network
   * - AMD GPUs
     - ``nccl``
     - under this name PyTorch for ROCm uses RCCL
   * - Intel GPUs
     - ``xccl``
     - where it was compiled in
   * - a cluster with its own MPI
     - ``mpi``
     - PyTorch has to be compiled against that MPI, for example Open MPI
   * - networks that UCX supports
     - ``ucc``
     - experimental, where it was compiled in

Other hardware and other libraries come as packages that register a backend of their
own. How to write one is the subject of the last part of this site.

What your PyTorch has
---------------------

Builds of PyTorch differ. One function for each library says whether yours has it:
"""

import torch
import torch.distributed as dist

names = ("gloo", "nccl", "mpi", "ucc", "xccl")
available = {name: getattr(dist, f"is_{name}_available")() for name in names}
print("distributed:", dist.is_available())
print("gloo:", available["gloo"])

# sphinx_gallery_start_ignore
assert dist.is_available() and dist.is_gloo_available()
assert available["nccl"] == (torch.version.cuda is not None)
assert not any(available[name] for name in ("mpi", "ucc", "xccl"))
# sphinx_gallery_end_ignore

# %%
# This page does not print the other answers, because they depend on the build. The
# build for CUDA, which pip installs on Linux, has ``nccl``, and a CPU build does not.
# Neither has ``mpi``, ``ucc`` or ``xccl``.
#
# That a library is there does not mean that the hardware is. Without an argument,
# ``init_process_group`` looks at the hardware, and chooses the backend that belongs to
# it:

for device, backend in sorted(dist.Backend.default_device_backend_map.items()):
    print(f"{device:5} {backend}")
accelerator = torch.accelerator.current_accelerator(check_available=True)
print("accelerator on this machine:", accelerator.type if accelerator else "none")

# sphinx_gallery_start_ignore
assert dist.Backend.default_device_backend_map["cpu"] == "gloo"
# sphinx_gallery_end_ignore

# %%
# When in doubt: one process per GPU and ``nccl`` for training on NVIDIA GPUs, ``gloo``
# for everything on CPUs, and both in one group, as ``"cpu:gloo,cuda:nccl"``, for
# programs that have both kinds of tensors.

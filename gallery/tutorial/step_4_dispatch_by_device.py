"""
Step 4: Choose a backend for each device
========================================

After this page you can combine backends in one process group, for example gloo for CPU
tensors and your own for tensors of an accelerator.

The device of its tensors decides which backend runs a collective. The first argument of
``init_process_group`` assigns the backends to the devices. A group can contain only one
backend that is not part of PyTorch. If the argument names two, the first serves the
devices of both, without a warning (see :doc:`step-2-create-function`).

.. diagram:: backend/dispatch

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
assert dummy_collectives.__doc__
expected = {
    "dummy": ("cpu:dummy,cuda:dummy", [0.0, 0.0]),
    "cpu:dummy": ("cpu:dummy", [0.0, 0.0]),
    "cpu:gloo,cuda:dummy": ("cpu:gloo,cuda:dummy", [1.0, 1.0]),
}
# sphinx_gallery_end_ignore
for backend in ["dummy", "cpu:dummy", "cpu:gloo,cuda:dummy"]:
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    print(f"init_process_group({backend!r})")
    print("    get_backend_config:", dist.get_backend_config())
    print("    a CPU tensor of ones after all_reduce:", tensor.tolist())
    # sphinx_gallery_start_ignore
    assert (dist.get_backend_config(), tensor.tolist()) == expected[backend]
    # sphinx_gallery_end_ignore
    dist.destroy_process_group()

# %%
# The name ``"dummy"`` alone is for all devices of the registration, here CPU and CUDA. In
# the last case gloo ran the all-reduce. The sum over one rank is the tensor itself.
#
# .. note::
#
#    You can ignore one warning of PyTorch 2.13, ``No backend of type 0 found for Process
#    Group``. PyTorch 2.13 compares ``DUMMY`` with ``dummy``. If the argument names devices,
#    it therefore sets no default backend, and ``name()`` of the group is ``undefined``. It logs
#    the warning when it destroys the group. Groups with NCCL are not affected. Collectives are
#    not affected either, because the device of the tensor decides. Later releases do not log
#    the warning, and the name is ``custom``.
#
# A tensor without a backend
# --------------------------
#
# With ``"cpu:dummy"``, a group has no backend for CUDA tensors. PyTorch raises an error:

dist.init_process_group("cpu:dummy", store=dist.HashStore(), rank=0, world_size=1)
group = dist.distributed_c10d._get_default_group()
try:
    group._get_backend(torch.device("cuda"))
except RuntimeError as error:
    print(error)

# sphinx_gallery_start_ignore
    assert "cuda" in str(error)
else:
    raise AssertionError("found a backend for CUDA tensors")
# sphinx_gallery_end_ignore
dist.destroy_process_group()

# %%
# Two ranks, two devices
# ----------------------
#
# On two ranks the numbers show which backend ran. The worker all-reduces a CPU tensor with
# gloo. If the computer has a GPU, it also all-reduces a CUDA tensor with the dummy. The last
# call is a broadcast of the CUDA tensor. It reaches the dummy, which has no ``broadcast``:
#
# .. not-executed::
#    :partly:
#
#    The computer that builds this site has no GPU. The lines below
#    ``if torch.cuda.is_available()`` were not executed. All others were.
#
#    .. literalinclude:: /../gallery/tutorial/workers/cpu_gloo_cuda_dummy.py
#       :language: python
#       :caption: gallery/tutorial/workers/cpu_gloo_cuda_dummy.py
#       :emphasize-lines: 17-28

from launcher import launch

launch(
    "workers/cpu_gloo_cuda_dummy.py",
    ranks=2,
    expected_stderr="No backend of type 0 found for Process Group",
)

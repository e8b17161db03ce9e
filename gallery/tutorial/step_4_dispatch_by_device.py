"""
Step 4: Choose a backend for each device
========================================

A process group can hold more than one backend. Which of them runs a collective
depends on the device of its tensors. The first argument of
``init_process_group`` says who gets what:

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
# The bare name ``"dummy"`` covers the devices that the registration listed, here
# CPU and CUDA. In the last case gloo ran the all-reduce: the sum over one rank is
# the tensor itself.
#
# .. note::
#
#    PyTorch 2.13 logs the warning ``No backend of type 0 found for Process Group`` when
#    it destroys a group whose argument named devices, once a third-party backend is
#    registered and unless NCCL is among the backends. PyTorch 2.13 compares ``DUMMY``
#    with ``dummy`` and sets no default backend for such a group. Its ``name()`` is then
#    ``undefined``. Collectives are not affected, because they choose the backend by the
#    device of the tensor. Later releases do not log the warning. With PyTorch 2.15 the
#    name is ``custom``.
#
# A tensor without a backend
# --------------------------
#
# Under ``"cpu:dummy"`` a CUDA tensor has nowhere to go. PyTorch says so instead of
# guessing:

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
# On two ranks the difference shows in the numbers. The worker sends a CPU tensor
# through gloo and, where there is a GPU, a CUDA tensor through the dummy:
#
# .. not-executed::
#    :partly:
#
#    The machine that builds this site has no GPU. What stands below
#    ``if torch.cuda.is_available()`` was not executed; all else was.
#
#    .. literalinclude:: /../gallery/tutorial/workers/cpu_gloo_cuda_dummy.py
#       :language: python
#       :caption: gallery/tutorial/workers/cpu_gloo_cuda_dummy.py
#       :emphasize-lines: 17-21

from launcher import launch

launch(
    "workers/cpu_gloo_cuda_dummy.py",
    ranks=2,
    expected_stderr="No backend of type 0 found for Process Group",
)

"""
Step 4: Use the backend asynchronously
======================================

After this page you can start a collective, do other work, and use its result later.

With ``async_op=True`` a program does not wait for the collective: the call returns a
``Work``. It is the ``WorkDummy`` that our ``allreduce`` has created. c10d also accepts a
method that has finished and returns a null pointer. The call then returns ``None``,
which a functional collective cannot use, as :doc:`step-4-backend-in-python` shows. Also, the
flight recorder of PyTorch 2.15 lists such a call as one that has not ended. So return a
``Work`` that is complete.

.. diagram:: asynchronous
"""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)

tensor = torch.ones(3)
work = dist.all_reduce(tensor, async_op=True)

# %%
# Wait for it
# -----------
#
# Until ``wait`` has returned, the tensor belongs to the backend. Do not read it, and do not
# write to it. The dummy sends nothing, so its work is complete from the start.

print("completed:", work.is_completed())
print("wait() returns", work.wait())
print(tensor)

# %%
# Or take the future
# ------------------
#
# ``get_future`` returns a :class:`torch.futures.Future`. Its value is the list of tensors
# that the operation wrote. They are the same tensors and not copies.
# ``DistributedDataParallel`` waits for the future of each bucket's all-reduce and takes the
# gradients from it. It crashes if the future contains no tensor.

future = work.get_future()
print(future.wait())

# sphinx_gallery_start_ignore
assert future.wait()[0].data_ptr() == tensor.data_ptr()
# sphinx_gallery_end_ignore

# %%
# ``then`` attaches a function to the future. The function runs when the future is complete:


def norm(finished):
    [reduced] = finished.value()
    return reduced.norm()


print("norm:", future.then(norm).wait().item())

# %%
# All-gather works the same way. The value of its future is the list of outputs:

outputs = [torch.ones(2)]
work = dist.all_gather(outputs, torch.ones(2), async_op=True)
print(work.get_future().wait())

# %%
# What not to call from Python
# ----------------------------
#
# ``Work`` also has ``is_success`` and ``result``. In Python both are deprecated, and PyTorch
# writes a warning to stderr. Use ``wait`` and the future instead. ``wait`` raises an exception
# if the operation failed. The dummy does not implement ``result``:

print("success:", work.is_success())
try:
    work.result()
except RuntimeError as error:
    print(error)

# sphinx_gallery_start_ignore
# expected stderr: Work::(is_success|result) API is being deprecated
# sphinx_gallery_end_ignore

dist.destroy_process_group()

"""
Step 4: Use the backend asynchronously
======================================

A collective takes time, and a program can often do something useful meanwhile.
With ``async_op=True`` it gets a ``Work`` back at once instead of waiting. Behind
that Python object stands the ``WorkDummy`` which our ``allreduce`` created.

.. diagram:: operations/asynchronous
"""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)

tensor = torch.ones(3)
work = dist.all_reduce(tensor, async_op=True)

# sphinx_gallery_start_ignore
assert dummy_collectives.__doc__
assert isinstance(work, dist.Work)
# sphinx_gallery_end_ignore

# %%
# Wait for it
# -----------
#
# Until ``wait`` has returned, the tensor belongs to the backend: neither read it
# nor write to it. The dummy has nothing to send, so its work is complete before we
# could ask.

print("completed:", work.is_completed())
print("wait() returns", work.wait())
print(tensor)

# sphinx_gallery_start_ignore
assert work.is_completed() and work.wait() is True
assert tensor.tolist() == [0.0] * 3
# sphinx_gallery_end_ignore

# %%
# Or take the future
# ------------------
#
# ``get_future`` returns a :class:`torch.futures.Future`. Its value is the list of
# tensors that the operation wrote; not copies, the very same tensors.
# DistributedDataParallel builds on this: it chains what comes after the all-reduce
# of a bucket to the future, and fails if there is no tensor in it.

future = work.get_future()
print(future.wait())

# sphinx_gallery_start_ignore
assert future.wait()[0].data_ptr() == tensor.data_ptr()
# sphinx_gallery_end_ignore

# %%
# What comes next can be attached to the future, and runs when it is complete:


def norm(finished):
    [reduced] = finished.value()
    return reduced.norm()


print("norm:", future.then(norm).wait().item())

# sphinx_gallery_start_ignore
assert future.then(norm).wait().item() == 0.0
# sphinx_gallery_end_ignore

# %%
# All-gather works the same way. The value of its future is the list of outputs:

outputs = [torch.ones(2)]
work = dist.all_gather(outputs, torch.ones(2), async_op=True)
print(work.get_future().wait())

# sphinx_gallery_start_ignore
assert work.get_future().wait()[0].data_ptr() == outputs[0].data_ptr()
assert outputs[0].tolist() == [0.0, 0.0]
# sphinx_gallery_end_ignore

# %%
# What not to call from Python
# ----------------------------
#
# ``Work`` also has ``is_success`` and ``result``. Our backend implements both, for
# C++ code that calls them. From Python, PyTorch answers each call with a
# warning on stderr that they are deprecated: use ``wait``, which raises an exception
# when the operation failed, and the future.

print("success:", work.is_success())
print("result:", work.result())

# sphinx_gallery_start_ignore
# expected stderr: Work::(is_success|result) API is being deprecated
assert work.is_success() and work.result()[0].data_ptr() == outputs[0].data_ptr()
# sphinx_gallery_end_ignore

dist.destroy_process_group()

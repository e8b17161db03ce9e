"""
Step 4: Call a collective that is not implemented
=================================================

Nobody implements all of c10d on the first day. What happens when a program calls
an operation that the backend does not have?

``c10d::Backend`` gives every operation a default that throws. In Python it
arrives as a ``RuntimeError`` which names the backend and the operation:

.. diagram:: backend/unimplemented
"""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)

# sphinx_gallery_start_ignore
assert dummy_collectives.__doc__
# sphinx_gallery_end_ignore
try:
    dist.broadcast(torch.ones(2), src=0)
except RuntimeError as error:
    print(error)

# sphinx_gallery_start_ignore
    assert str(error) == "Backend dummy does not support broadcast"
else:
    raise AssertionError("broadcast did not fail")
# sphinx_gallery_end_ignore

# %%
# That sentence depends on ``getBackendName``. A backend that does not override it
# fails with ``INTERNAL ASSERT FAILED`` and a request to report a bug to PyTorch: with
# 2.15 already in ``init_process_group``, and with earlier releases instead of this message.
# The build of this page does not run that case.
#
# All the others
# --------------
#
# The names in the messages are those of the C++ methods. They tell you which one to
# override, and some of them differ from the names in Python:

one = torch.ones(2)
calls = {
    "reduce": lambda: dist.reduce(one, dst=0),
    "gather": lambda: dist.gather(one, [one], dst=0),
    "scatter": lambda: dist.scatter(one, [one], src=0),
    "reduce_scatter": lambda: dist.reduce_scatter(one, [one]),
    "all_gather_single": lambda: dist.all_gather_single(one, one),
    "reduce_scatter_single": lambda: dist.reduce_scatter_single(one, one),
    "all_to_all": lambda: dist.all_to_all([one], [one]),
    "all_to_all_single": lambda: dist.all_to_all_single(one, one),
    "send": lambda: dist.send(one, dst=1),
    "recv": lambda: dist.recv(one, src=1),
    "recv without a source": lambda: dist.recv(one),
    "barrier": lambda: dist.barrier(),
}
for name, call in calls.items():
    try:
        call()
    except RuntimeError as error:
        print(f"{name:22} {error}")

# sphinx_gallery_start_ignore
        assert str(error).startswith("Backend dummy does not support "), error
    else:
        raise AssertionError(f"{name} did not fail")
# sphinx_gallery_end_ignore

# %%
# Since PyTorch 2.14, the three calls that end in ``_single`` have a C++ method of the same
# name. With 2.13, the messages name ``_allgather_base``, ``_reduce_scatter_base`` and
# ``alltoall_base``. Newer releases have these methods, too, and call them for the new
# names: override the old ones if your source must compile with 2.13.
#
# The group survives such an error. All-reduce works as before:

dist.all_reduce(one)
print(one)

# sphinx_gallery_start_ignore
assert one.tolist() == [0.0, 0.0]
# sphinx_gallery_end_ignore

# %%
# After an abort
# --------------
#
# It is different when the group was aborted, because a rank was lost, say. ``abort``
# of the group calls that of each of its backends, and our backend answers nothing
# any more:

dist.group.WORLD.abort()
try:
    dist.all_reduce(one)
except RuntimeError as error:
    print(error)

# sphinx_gallery_start_ignore
    assert str(error) == "Backend dummy was shut down and cannot run allreduce"
else:
    raise AssertionError("an aborted group went on")
# sphinx_gallery_end_ignore

dist.destroy_process_group()

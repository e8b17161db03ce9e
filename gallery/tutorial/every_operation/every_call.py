"""Worker: find the method of the backend that each Python call reaches, on one rank."""

import json
import re
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.distributed.distributed_c10d import _coalescing_manager

import dummy_collectives  # importing it registers "dummy"

warnings.simplefilter("ignore")  # Some of the calls are deprecated.


def coalesced(call, *tensors):
    with _coalescing_manager():
        call(*tensors)


one, cpu = torch.ones(1), torch.device("cpu")
dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
group = dist.group.WORLD
CALLS = {
    "broadcast": lambda: dist.broadcast(one, src=0),
    "broadcast_object_list": lambda: dist.broadcast_object_list([0], device=cpu),
    "all_reduce": lambda: dist.all_reduce(one),
    "all_gather": lambda: dist.all_gather([one], one),
    "all_gather_object": lambda: dist.all_gather_object([0], 0),
    "all_gather_single": lambda: dist.all_gather_single(one, one),
    "reduce_scatter": lambda: dist.reduce_scatter(one, [one]),
    "reduce_scatter_single": lambda: dist.reduce_scatter_single(one, one),
    "all_to_all": lambda: dist.all_to_all([one], [one]),
    "all_to_all_single": lambda: dist.all_to_all_single(one, one),
    "send": lambda: dist.send(one, dst=1),
    "isend": lambda: dist.isend(one, dst=1),
    "recv": lambda: dist.recv(one, src=1),
    "irecv": lambda: dist.irecv(one, src=1),
    "recv(src=None)": lambda: dist.recv(one),
    "send_object_list": lambda: dist.send_object_list([0], dst=1, device=cpu),
    "batch_isend_irecv": lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, one, 1)]),
    "reduce": lambda: dist.reduce(one, dst=0),
    "gather": lambda: dist.gather(one, [one], dst=0),
    "gather_single": lambda: dist.gather_single(one, one, dst=0),
    "gather_object": lambda: dist.gather_object(0, [0]),
    "scatter": lambda: dist.scatter(one, [one], src=0),
    "scatter_object_list": lambda: dist.scatter_object_list([0], [0]),
    "barrier": lambda: dist.barrier(),
    "monitored_barrier": lambda: dist.monitored_barrier(),
    "_coalescing_manager: all_reduce": lambda: coalesced(dist.all_reduce, one),
    "_coalescing_manager: all_gather_single": lambda: coalesced(dist.all_gather_single, one, one),
    "_coalescing_manager: reduce_scatter_single": lambda: coalesced(
        dist.reduce_scatter_single, one, one
    ),
    "funcol.all_reduce": lambda: funcol.all_reduce(one, "sum", group),
    "funcol.all_gather_tensor": lambda: funcol.all_gather_tensor(one, 0, group),
    "funcol.reduce_scatter_tensor": lambda: funcol.reduce_scatter_tensor(one, "sum", 0, group),
    "funcol.all_to_all_single": lambda: funcol.all_to_all_single(one, None, None, group),
    "funcol.broadcast": lambda: funcol.broadcast(one, 0, group),
    "all_gather_coalesced": lambda: dist.all_gather_coalesced([[one]], [one]),
    "group._start_coalescing": lambda: group._start_coalescing(cpu),
    "group.get_reconfigure_handle": lambda: group.get_reconfigure_handle(),
    "group.new_window": lambda: group.new_window(),
}


# Once the group has been aborted, the dummy refuses the two collectives that it has, too.
group.abort()
NAMED = r"not support|cannot run|not implement|implementation of"


def method_of(call):
    """Return the method that the error of a call names, or None if there is no such call."""
    try:
        call()
    except Exception as error:
        found = re.search(rf"Backend dummy .*(?:{NAMED}) (\w+)", str(error))
        return found and found[1]




found = {name: method_of(call) for name, call in CALLS.items()}
print(json.dumps({name: method for name, method in found.items() if method}))
assert found["all_reduce"] == "allreduce" and found["scatter"] == "scatter"
assert dummy_collectives.__doc__

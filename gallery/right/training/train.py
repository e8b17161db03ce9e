"""Worker: train with store and gloo, continue from a checkpoint, record a step, and ignore ReduceOp."""

import json
import shutil
import tempfile
from collections import Counter

import forwarding
from forwarding import IgnoresOp, RecordingGroup, RefusesOp, new_group
from training_runs import ddp, fsdp2, fsdp2_by_4, pipeline, tensor_parallel

import torch
import torch.distributed as dist
from torch.distributed import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.profiler import ProfilerActivity, profile

import store_collectives  # importing it registers "store"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("store", store=store, rank=rank, world_size=size)
result = {"calls": {}}

# [compare]
ours, gloo = dist.group.WORLD, dist.new_group(backend="gloo")
losses = {}
for feature in [ddp, fsdp2, tensor_parallel, pipeline]:
    trainings = [feature(group) for group in [ours, gloo]]
    mine, theirs = [[x.step() for _ in range(10)] for x in trainings]
    losses[feature.__name__] = [mine[0], mine[-1], mine == theirs]
    # [/compare]
    parameters = [x.model.parameters() for x in trainings]
    for one, other in zip(*parameters, strict=True):
        if isinstance(one, DTensor):
            one, other = one.to_local(), other.to_local()
        assert torch.equal(one, other)
    for backend, x in zip(["store", "gloo"], trainings, strict=True):
        with profile(activities=[ProfilerActivity.CPU]) as recording:
            x.step()
        prefixes = {event.name.partition(":")[0] for event in recording.events()}
        assert prefixes & {"store", "gloo"} == {backend}, (feature, backend, prefixes)
result["losses"] = losses

one, other = [DeviceMesh.from_group(group, "cpu") for group in [ours, gloo]]
result["meshes"] = one == other

folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)


# [checkpoint]
import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


def state_of(x):
    model, optimizer = get_state_dict(x.model, x.optimizer)
    return {"model_state_dict": model, "optim_state_dict": optimizer}


first = fsdp2(ours)
for _ in range(5):
    first.step()
with profile(activities=[ProfilerActivity.CPU]) as recording:
    checkpoint.save(state_of(first), checkpoint_id=folder[0])
expected = [first.step() for _ in range(5)]

second = fsdp2(ours, seed=2)  # begins with other parameters
state = state_of(second)
checkpoint.load(state, checkpoint_id=folder[0])
set_state_dict(second.model, second.optimizer, **state)
continued = [second.step() for _ in range(5)]
# [/checkpoint]
assert continued == expected != [fsdp2(ours, seed=2).step() for _ in range(5)]
names = {event.name for event in recording.events()}
result["save"] = sorted(name for name in names if name.startswith("store:"))
result["continued"] = continued == expected

group = new_group(RecordingGroup)
for feature in [ddp, fsdp2, fsdp2_by_4, tensor_parallel, pipeline]:
    x = feature(group)
    x.step(), x.step()  # DDP arranges its buckets anew in the second step
    forwarding.calls.clear()
    x.step()
    calls = Counter(map(tuple, forwarding.calls))
    result["calls"][feature.__name__] = list(calls.items())

group = new_group(IgnoresOp)
ignored = {}
for feature, optimizer in [(ddp, "SGD"), (fsdp2, "SGD"), (fsdp2, "Adam")]:
    trainings = [feature(x, optimizer=optimizer) for x in [ours, group]]
    both = [[x.step() for _ in range(10)] for x in trainings]
    ignored[f"{feature.__name__}, {optimizer}"] = both
result["ignored"] = ignored

group = new_group(RefusesOp)
try:
    fsdp2(group).step()
except ValueError as error:
    result["refused"] = str(error)

# [refuse]
x = fsdp2(group)
for layer in [x.model[0], x.model[2]]:  # they have the parameters
    layer.set_force_sum_reduction_for_comms(True)
forced = [x.step() for _ in range(10)]
# [/refuse]
result["forced"] = forced == ignored["fsdp2, SGD"][0]
dist.barrier()
if rank == 0:
    shutil.rmtree(folder[0])
dist.destroy_process_group()
print(json.dumps(result))

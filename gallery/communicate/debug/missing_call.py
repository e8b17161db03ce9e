"""Worker: find with the flight recorder which call rank 1 did not make."""

import io
import json
import re
import tempfile
from contextlib import redirect_stderr, suppress
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)
tensor = torch.ones(1000)

recorded, hooked = "shm", hasattr(c10d, "_reset_fr_trace")


def dump(collectives, active, backend):
    """Return a trace: PyTorch 2.13 records gloo only, and 2.14 all backends in one recorder."""
    arguments = [collectives, active, backend]
    return c10d._dump_fr_trace_json(*(arguments if hooked else arguments[:2]))


if not hasattr(c10d, "FlightRecorderHook"):
    recorded = "gloo"
group = dist.new_group(backend=recorded, timeout=timedelta(seconds=1))
if recorded == "shm" and not hooked:
    hook = c10d.FlightRecorderHook.attach(group)

# [calls]
dist.all_reduce(tensor, group=group)
dist.barrier(group)
if rank == 0:
    with suppress(RuntimeError):
        dist.broadcast(tensor, src=1, group=group)
# [/calls]
entries = json.loads(dump(True, False, "shm"))["entries"]
if hooked:  # the calls returned no work, so the recorder cannot see their ends
    assert not any(entry["retired"] for entry in entries[-2:])
    assert entries[-1]["state"] == "scheduled"

with tempfile.TemporaryDirectory() as own:
    if rank == 0:
        store.set("folder", own)
    folder = Path(store.get("folder").decode())
    if hooked:
        # [trace]
        trace = c10d._dump_fr_trace(True, True, False, "shm")
        (folder / f"rank_{rank}").write_bytes(trace)
        # [/trace]
    store.set(f"{rank} has written", "")
    store.wait([f"{other} has written" for other in range(size)])
    if hooked and rank == 0:
        with redirect_stderr(io.StringIO()) as report:  # the logger of torchfrtrace keeps it
            from torch.distributed.flight_recorder.fr_trace import main
        main([str(folder)])
        print(*re.findall("^(?:collective|missing ranks): .*", report.getvalue(), re.M), sep="\n")
    store.set(f"{rank} has ended", "")
    store.wait([f"{other} has ended" for other in range(size)])


# [recorder]
def last_call():
    """Return the newest entry of this rank's recorder."""
    entry = json.loads(dump(True, False, "shm"))["entries"][-1]
    operation = entry["profiling_name"].partition(":")[2]
    return f"collective {entry['collective_seq_id']} is {operation}"


print(last_call())
# [/recorder]
dist.destroy_process_group()

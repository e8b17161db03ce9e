"""Worker: collectives that do not block, a barrier, and collectives on objects."""

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

# [asynchronous]
tensor = torch.ones(1_000_000)
work = dist.all_reduce(tensor, async_op=True)
useful = sum(range(1000))  # Runs while the tensor is on its way.
work.wait()
# [/asynchronous]
print(f"all_reduce gave {tensor[0].item():g}, meanwhile the sum became {useful}")
assert tensor.eq(world_size).all() and useful == 499500

# [barrier]
shared = Path(os.environ["SHARED_FOLDER"]) / "written-by-rank-0"
if rank == 0:
    time.sleep(0.2)
    shared.write_text("ready")
dist.barrier()
text = shared.read_text()  # Without the barrier, the file might be missing.
# [/barrier]
print("after the barrier the file says:", text)
assert text == "ready"

# [objects]
settings = [{"learning rate": 0.1}] if rank == 0 else [None]
dist.broadcast_object_list(settings, src=0)

reports = [None] * world_size
dist.all_gather_object(reports, {"rank": rank, "losses": [0.5 / (rank + 1)]})

received = [None]  # Every rank receives one object of the list.
dist.scatter_object_list(received, ["first half", "second half"], src=0)

if rank == 0:
    dist.send_object_list([{"step": 7}], dst=1)
elif rank == 1:
    progress = [None]
    dist.recv_object_list(progress, src=0)
# [/objects]
print("settings from rank 0:", settings[0])
print("reports:", reports)
print("scattered:", received[0])
if rank == 1:
    print("sent by rank 0:", progress[0])
    assert progress == [{"step": 7}]
assert received == [["first half", "second half"][rank]]
assert settings == [{"learning rate": 0.1}]
assert [report["rank"] for report in reports] == list(range(world_size))

dist.destroy_process_group()

"""Worker: gloo for CPU tensors and the dummy for CUDA tensors, in one group."""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("cpu:gloo,cuda:dummy")
rank = dist.get_rank()

on_cpu = torch.full((2,), rank + 1.0)
dist.all_reduce(on_cpu)
print(f"CPU tensor, summed by gloo: {on_cpu.tolist()}")
assert on_cpu.tolist() == [3.0, 3.0], "1 + 2, from two ranks"

if torch.cuda.is_available():
    device = f"cuda:{rank % torch.cuda.device_count()}"
    on_gpu = torch.full((2,), rank + 1.0, device=device)
    dist.all_reduce(on_gpu)
    print(f"CUDA tensor, zeroed by the dummy: {on_gpu.tolist()}")
    assert on_gpu.tolist() == [0.0, 0.0]
    try:
        dist.broadcast(on_gpu, src=0)
    except RuntimeError as error:
        print(error)
        assert str(error) == "Backend dummy does not support broadcast"
    else:
        raise AssertionError("broadcast did not fail")
else:
    print("no CUDA device here: the dummy was not called")

dist.destroy_process_group()

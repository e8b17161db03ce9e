"""Worker: the sum from gloo and zero from the dummy, by device and by group."""

import dummy_collectives  # noqa: F401  (registers "dummy")
import torch
import torch.distributed as dist

dist.init_process_group("cpu:gloo,cuda:dummy")
rank, ranks = dist.get_rank(), dist.get_world_size()
assert dist.get_backend_config() == "cpu:gloo,cuda:dummy"
expected_sum = ranks * (ranks + 1) / 2
dummy = dist.new_group(backend="dummy")


def all_reduce(group=None, device="cpu"):
    tensor = torch.tensor(rank + 1.0, device=device)
    dist.all_reduce(tensor, group=group)
    return tensor.item()


by_gloo = all_reduce()
by_dummy = all_reduce(dummy)
outputs = [torch.tensor(-1.0) for _ in range(ranks)]
dist.all_gather(outputs, torch.tensor(rank + 1.0))
assert [output.item() for output in outputs] == [1.0, 2.0], "gloo really gathers"
dist.barrier()  # gloo has one
if torch.cuda.is_available():
    device = f"cuda:{rank % torch.cuda.device_count()}"
    assert all_reduce(device=device) == 0.0
    assert all_reduce(dummy, device=device) == 0.0

dist.destroy_process_group(dummy)
by_gloo_again = all_reduce()
assert (by_gloo, by_dummy, by_gloo_again) == (expected_sum, 0.0, expected_sum)
dist.destroy_process_group()
print(f"gloo: {by_gloo}, dummy: {by_dummy}, gloo again: {by_gloo_again}")

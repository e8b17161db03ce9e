"""The shortest program that shows what one check of the suite found."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
# [solution]
inputs = [torch.ones(3), torch.ones(3)]
for operation, arguments in {
    dist.all_reduce: [torch.ones(3)],
    dist.reduce_scatter: [torch.empty(3), inputs],
}.items():
    work = operation(*arguments, async_op=True)
    work.wait()
    print(f"{operation.__name__}: is_completed() is {work.is_completed()} after wait()")
# [/solution]
dist.destroy_process_group()

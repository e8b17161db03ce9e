"""Worker: run one stage of a model on each rank, with two schedules."""

import copy
import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)
inputs, targets = torch.randn(8, 16), torch.randn(8, 16)

# [parts]
first, second = nn.Linear(16, 16), nn.Linear(16, 16)
whole = nn.Sequential(first, nn.Tanh(), second, nn.Tanh())
mine = whole[:2] if rank == 0 else whole[2:]
# [/parts]

loss_of_whole = nn.functional.mse_loss(whole(inputs), targets)
loss_of_whole.backward()


# [step]
def step(schedule_class, part):
    """Run one forward and one backward pass of the pipeline, and return the loss."""
    between_stages = torch.empty(2, 16, requires_grad=True)
    stage = PipelineStage(
        part,
        stage_index=rank,
        num_stages=world_size,
        device=torch.device("cpu"),
        input_args=between_stages,
        output_args=between_stages,
    )
    schedule = schedule_class(stage, n_microbatches=4, loss_fn=nn.MSELoss())
    if stage.is_first:
        schedule.step(inputs)
        return None
    losses = []
    schedule.step(target=targets, losses=losses)
    return torch.stack(losses).mean()
# [/step]


# [record]
def record(part):
    """Return a list that receives each forward and backward pass of ``part``."""
    order = []
    numbers = itertools.count()

    def after_forward(module, args, output):
        number = next(numbers)
        order.append(f"F{number}")
        output.register_hook(lambda gradient: order.append(f"B{number}"))

    part.register_forward_hook(after_forward)
    return order
# [/record]


for schedule_class in (ScheduleGPipe, Schedule1F1B):
    # [compare]
    part = copy.deepcopy(mine)
    order = record(part)
    loss = step(schedule_class, part)
    print(f"{schedule_class.__name__:13} {' '.join(order)}")

    for ours, theirs in zip(part.parameters(), mine.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    if rank == world_size - 1:
        torch.testing.assert_close(loss, loss_of_whole)
        print(f"loss {loss:.4f}, of the whole model {loss_of_whole:.4f}")
    # [/compare]
    assert len(order) == 8
    assert any(parameter.grad.abs().max() > 0.01 for parameter in part.parameters())

dist.destroy_process_group()

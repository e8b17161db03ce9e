"""Program: launch kernels on two streams of the device, and draw what runs when."""

import simulated_accelerator  # noqa: F401  # importing it makes torch.sim
import torch
from time_line import draw

device = torch.device("sim")
number = torch.zeros(1, device=device)
torch.accelerator.synchronize()

# [one]
torch.sim.start_trace()
gate = torch.sim.Gate()
gate.hold()
number.fill_(3)
number.mul_(10)
print("has the stream ended:", torch.accelerator.current_stream().query())
gate.open()
torch.accelerator.synchronize()
print(draw(torch.sim.stop_trace(), ["stream"]))
# [/one]
print()


# [two]
def double_on_another_stream(ordered):
    """Write a number on the current stream, and double it on another one."""
    number = torch.zeros(1, device=device)
    other = torch.Stream()
    torch.accelerator.synchronize()
    torch.sim.start_trace()
    gate = torch.sim.Gate()
    gate.hold()
    number.fill_(3)
    written = torch.accelerator.current_stream().record_event()
    with other:
        if ordered:
            other.wait_event(written)
        twice = number * 2
    torch.sim.settle()
    gate.open()
    torch.accelerator.synchronize()
    names = ["this stream", "other stream"] if ordered else ["other stream", "this stream"]
    print(draw(torch.sim.stop_trace(), names, waits=True))
    return twice.item()


print("with the event:", double_on_another_stream(True))
print("without it:", double_on_another_stream(False))
# [/two]
print()


# [owns-nothing]
number = torch.full((1,), 3.0, device=device)
torch.accelerator.synchronize()
other, gate = torch.Stream(), torch.sim.Gate()
with other:
    gate.hold()
    twice = number * 2
del number
next_owner = torch.full((1,), 99.0, device=device)
torch.accelerator.current_stream().synchronize()  # which the gate does not hold
gate.open()
torch.accelerator.synchronize()
print("twice the number:", twice.item())
# [/owns-nothing]

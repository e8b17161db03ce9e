"""Program: let one stream use what another one makes, with an event and without."""

import simulated_accelerator  # noqa: F401  # importing it makes torch.sim
import torch
from time_line import draw

device = torch.device("sim")


# [program]
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
# [/program]

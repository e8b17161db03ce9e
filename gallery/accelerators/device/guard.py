"""Program: use streams and events of sim as those of every accelerator."""

import torch

import simulated_accelerator  # importing it makes torch.sim

# [guard]
with torch.sim.device(1):
    print("a tensor on", torch.ones(1, device="sim").device)
stream = torch.Stream("sim:0")
begin, end = (torch.Event("sim:0", enable_timing=True) for _ in range(2))
print("default:", torch.accelerator.current_stream() == torch.sim.default_stream())
with torch.sim.stream(stream):
    print("current:", torch.accelerator.current_stream() == stream)
    begin.record()
    number = torch.ones(1000, device="sim")
    end.record()
end.synchronize()
print("reached:", end.query(), stream.query(), "after a time:", begin.elapsed_time(end) > 0)
stream.synchronize()
torch.accelerator.synchronize("sim:0")
# [/guard]

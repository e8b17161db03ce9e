"""Program: use the device sim by what PyTorch has for every accelerator."""

# [module]
import torch

import simulated_accelerator

accelerator = torch.accelerator.current_accelerator()
print("accelerator:", accelerator, "with", torch.accelerator.device_count(), "devices")
print("torch.sim is the module:", torch.sim is simulated_accelerator)
print("available:", torch.accelerator.is_available(), torch.sim.is_initialized())
with torch.autocast("sim", dtype=torch.bfloat16):
    print("autocast:", torch.nn.Linear(1, 1, device="sim")(torch.ones(1, device="sim")).dtype)
# [/module]

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

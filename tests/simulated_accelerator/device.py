"""Checks of the device `sim`, which tests/checks.py runs.

The process of the tests does not import the device, which would become the accelerator of all
other tests. The programs of gallery/accelerators/device print what the device does in plain uses.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import simulated_accelerator  # noqa: F401
import stream_collectives  # noqa: F401
import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

sim = torch.device("sim")


def check_names():
    assert torch.ones(1, device="sim").is_sim
    assert torch.ones(1).sim().device == torch.device("sim:0")


def check_autocast_keeps_what_needs_precision():
    with torch.autocast("sim", dtype=torch.bfloat16):
        out = torch.nn.Linear(4, 4, device=sim)(torch.ones(1, 4, device=sim))
        assert out.dtype == torch.bfloat16 and out.softmax(-1).dtype == torch.float


def check_memory_is_used_again_at_once():
    number = torch.ones(1000, device=sim)
    address, before = number.data_ptr(), torch.accelerator.memory_allocated()
    del number
    assert torch.accelerator.memory_allocated() == before - 4096
    assert torch.empty(1000, device=sim).data_ptr() == address
    with torch.Stream():
        assert torch.empty(1000, device=sim).data_ptr() != address
    assert torch.accelerator.max_memory_allocated() >= before
    other = torch.empty(2000, device=sim)
    other.record_stream(torch.Stream())
    del other
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved() == torch.accelerator.memory_allocated()


def check_pinned_memory_belongs_to_no_stream():
    number, back = torch.ones(3, device=sim), torch.zeros(3).pin_memory()
    gate, address = torch.sim.Gate(), back.data_ptr()
    # PyTorch gives the callbacks of futures such streams.
    with torch.Stream(stream_id=-1, device_index=0, device_type=torch.Stream().device_type):
        gate.hold()
        back.copy_(number, non_blocking=True)
    del back  # the stream still writes it
    assert torch.ones(3).pin_memory().data_ptr() != address
    gate.open()


def check_pinned_memory():
    number = torch.ones(3).pin_memory()
    assert number.is_pinned() and number[1:].is_pinned() and not torch.ones(3).is_pinned()
    gate = torch.sim.Gate()
    gate.hold()
    there = number.to(sim, non_blocking=True)
    back = torch.zeros(3).pin_memory()
    back.copy_(there, non_blocking=True)
    assert back.tolist() == [0, 0, 0]
    address = number.data_ptr()
    del number  # the stream still reads it
    assert torch.ones(3).pin_memory().data_ptr() != address
    gate.open()
    torch.accelerator.synchronize()
    assert back.tolist() == [1, 1, 1]


def check_two_devices():
    number = torch.ones(2, device="sim:1")
    assert (number.to("sim:0") + 1).tolist() == [2, 2]
    with torch.accelerator.device_index(1):
        assert torch.empty(1, device=sim).device.index == 1
    assert torch.empty(1, device=sim).device.index == 0
    with pytest.raises(RuntimeError, match="same device"):
        number + torch.ones(2, device="sim:0")


def check_kernels():
    for dtype in (torch.float, torch.half, torch.bfloat16, torch.int, torch.bool, torch.cfloat):
        here = torch.arange(6).to(dtype)
        there = here.to(sim)
        for call in (
            lambda x: x,
            lambda x: x.view(2, 3).t().contiguous(),
            lambda x: x.view(2, 3)[:, 1:],
            lambda x: x * 2 + x,
            lambda x: x + torch.ones(2, 1, device=x.device, dtype=x.dtype),
            lambda x: x / 4,
            lambda x: 0.1 * x - 1,
            lambda x: x.clone().fill_(1),
            lambda x: x.to(torch.float64),
            lambda x: torch.cat([x, x]),
            lambda x: x.clone().resize_(4),
            lambda x: x.conj().clone() if x.is_complex() else -x if x.dtype != torch.bool else x,
        ):
            ours, theirs = call(there), call(here)
            assert ours.device.type == "sim" and torch.equal(ours.cpu(), theirs), dtype
    number = torch.full((2,), 1 + 2j, device=sim)
    assert number.conj().cpu().tolist() == [1 - 2j] * 2 and number.conj().imag.tolist() == [-2] * 2


def check_inference_mode():
    model = torch.nn.Linear(3, 2, device=sim)
    outside = torch.ones(3, device=sim)
    pinned = torch.ones(3).pin_memory()
    with torch.inference_mode():
        made = torch.ones(3, device=sim)
        made += 1
        made.mul_(2).sub_(outside)
        outside += made  # a tensor of autograd may be written, too
        assert made.is_inference() and made.tolist() == [3, 3, 3]
        assert model(made).is_inference() and not outside.is_inference()
        pinned.copy_(made.to("sim:1").to(sim), non_blocking=True)
        made[:2].zero_()
    torch.accelerator.synchronize()
    assert (pinned.tolist(), outside.tolist(), made.cpu().tolist()) == ([3] * 3, [4] * 3, [0, 0, 3])
    with torch.no_grad():
        model.weight.zero_().add_(1)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        model.weight.zero_()
    model(outside).sum().backward()
    assert model.weight.grad.tolist() == [[4, 4, 4]] * 2
    with torch.inference_mode(), torch.autocast("sim", dtype=torch.bfloat16):
        assert model(made).dtype == torch.bfloat16


def check_a_storage_grows_in_another_stream():
    number, gate = torch.ones(1000, device=sim), torch.sim.Gate()
    torch.accelerator.synchronize()
    with torch.Stream():
        gate.hold()
        number.resize_(2000)  # copies what the storage had
    torch.full((1000,), 99.0, device=sim)  # must not get the memory that is still to be copied
    torch.sim.settle()
    gate.open()
    torch.accelerator.synchronize()
    assert number[:1000].tolist() == [1] * 1000


def check_streams_that_wait_hold_no_threads():
    gate, threads = torch.sim.Gate(), len(os.listdir("/proc/self/task"))
    streams = [torch.Stream(device=sim) for _ in range(200)]
    numbers = torch.zeros(200, device=sim)
    for number, stream in zip(numbers, streams, strict=True):
        with stream:
            gate.hold()
            number.fill_(1)
    torch.sim.settle()
    assert len(os.listdir("/proc/self/task")) - threads < 10
    gate.open()
    torch.accelerator.synchronize()
    assert numbers.sum().item() == 200


def check_a_thread_that_cannot_be_started():
    stream, number = torch.Stream(), torch.ones(1, device=sim)
    torch.accelerator.synchronize()
    time.sleep(1.5)  # the threads of the device end when they have nothing to do for a second
    libc, usual = ctypes.CDLL(None), ctypes.create_string_buffer(64)  # a pthread_attr_t
    libc.pthread_getattr_default_np(usual)
    endless = ctypes.create_string_buffer(usual.raw, 64)
    libc.pthread_attr_setstacksize(endless, ctypes.c_size_t(2**60))
    assert libc.pthread_setattr_default_np(endless) == 0
    try:
        with pytest.raises(RuntimeError, match=f"no thread .* for stream {stream.stream_id} of"):
            with stream:
                number.fill_(2)
    finally:
        libc.pthread_setattr_default_np(usual)
    with stream:
        number.fill_(3)
        assert number.tolist() == [3]


def check_save_and_load():
    number = torch.arange(4.0, device="sim:1")
    with tempfile.TemporaryFile() as file:
        torch.save({"number": number}, file)
        file.seek(0)
        loaded = torch.load(file)["number"]
        assert loaded.device == number.device and torch.equal(loaded, number)
        file.seek(0)
        assert torch.load(file, map_location="cpu")["number"].device.type == "cpu"


def check_random_numbers():
    torch.manual_seed(1)
    one = torch.randn(3, device=sim)
    state = torch.sim.get_rng_state()
    assert torch.equal(torch.sim.get_rng_state(), state) and state.numel() == 16
    next_ones = torch.randn(3, device=sim)
    torch.sim.set_rng_state(state)
    assert torch.equal(torch.randn(3, device=sim), next_ones)
    torch.manual_seed(1)
    assert torch.equal(torch.randn(3, device=sim), one) and not torch.equal(one, next_ones)
    for seed in (-1, 5):
        torch.manual_seed(0)
        torch.sim.manual_seed(seed, 1)
        first = torch.rand(3, device="sim:1")
        torch.sim.manual_seed(seed, 1)
        assert torch.equal(torch.rand(3, device="sim:1"), first)
    torch.manual_seed(-1)


CPU, DEVICE = ProfilerActivity.CPU, ProfilerActivity.PrivateUse1


def profiled(call, activities=(CPU, DEVICE)):
    torch.sim.settle()  # what ends in the profile is in it
    with profile(activities=activities) as p:
        call()
        torch.sim.settle()
    return p


def rows_of_the_device(p):
    events = [x for x in p.events() if x.device_type == torch.autograd.DeviceType.PrivateUse1]
    return [(x.name, x.device_index, x.device_resource_id) for x in events]


def kernels_of_operations(p):
    return {x.name: [kernel.name for kernel in x.kernels] for x in p.events() if x.kernels}


def check_the_profiler_shows_kernels():
    _, other = torch.Stream("sim:1"), torch.Stream("sim:1")  # unlike device 1, it has number 2

    def kernels():
        number = torch.ones(2, device=sim)
        number * 2, number + 1
        with other:
            torch.zeros(1, device="sim:1")

    p = profiled(kernels)
    expected = [("add", 0, 0), ("fill", 0, 0), ("fill", 1, other.stream_id), ("mul", 0, 0)]
    assert sorted(rows_of_the_device(p)) == expected
    assert kernels_of_operations(p) == {
        "aten::fill_": ["fill"],
        "aten::zero_": ["fill"],
        "aten::mul": ["mul"],
        "aten::add": ["add"],
    }
    assert rows_of_the_device(profiled(kernels, [CPU])) == []
    assert sorted(rows_of_the_device(profiled(kernels, [DEVICE]))) == expected


def check_the_profiler_shows_when_kernels_ran():
    number, gate, times = torch.ones(2, device=sim), torch.sim.Gate(), []

    def held():
        gate.hold()
        number * 2  # launched before the first time, and run between both
        times.append(time.time_ns())
        gate.open()
        torch.accelerator.synchronize()
        times.append(time.time_ns())

    p = profiled(held)
    with tempfile.TemporaryDirectory() as folder:
        p.export_chrome_trace(f"{folder}/trace.json")
        trace = json.loads(Path(folder, "trace.json").read_text())
    (row,) = [x for x in trace["traceEvents"] if x.get("cat") == "kernel"]
    assert (row["name"], row["pid"], row["tid"]) == ("mul", 0, 0)
    begin = trace["baseTimeNanoseconds"] + round(row["ts"] * 1000)
    assert times[0] <= begin <= begin + round(row["dur"] * 1000) <= times[1]


def check_the_profiler_shows_collectives():
    dist.init_process_group("simccl", store=dist.HashStore(), rank=0, world_size=1)
    number = torch.ones(2, device=sim)
    p = profiled(lambda: dist.all_reduce(number))
    dist.destroy_process_group()
    ((name, device, stream),) = rows_of_the_device(p)
    assert (name, device) == ("all_reduce", 0) and stream != 0
    assert kernels_of_operations(p) == {"c10d::allreduce_": ["all_reduce"]}


def other_process(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **environment},
    )


def check_the_entry_point_loads_the_device():
    for modules in ("torch", "simulated_accelerator, torch", "torch, simulated_accelerator"):
        code = f"import {modules}\nprint(torch.ones(1, device='sim').device)"
        done = other_process(code, TORCH_DEVICE_BACKEND_AUTOLOAD="1")
        assert done.stdout.strip() == "sim:0", (modules, done.stderr)


def check_the_number_of_devices():
    code = "import torch, simulated_accelerator\nprint(torch.accelerator.device_count())"
    assert other_process(code, SIM_DEVICES="5").stdout.strip() == "5"


def check_the_process_ends_while_streams_are_held():
    code = (
        "import torch, simulated_accelerator\ngate = torch.sim.Gate()\ngate.hold()\n"
        "torch.ones(9, device='sim') * 2"
    )
    done = other_process(code)
    assert (done.returncode, done.stderr) == (0, "")

"""What a reader must know of the machine to judge times that were measured on it."""

import os
import platform
import re
import subprocess
from pathlib import Path

AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


def machine():
    """Return a line: the processor, its caches, whether it is virtual, the kernel and so on."""
    described = subprocess.run(
        ["lscpu"],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    ).stdout
    properties = dict(re.findall(r"^ *([\w ]+): +(.+)$", described, re.M))
    cpus = f"{len(os.sched_getaffinity(0))} CPUs"
    kind = "virtual machine" if "Hypervisor vendor" in properties else "physical machine"
    caches = [f"{name} {properties[f'{name} cache'].partition(' (')[0]}" for name in ("L2", "L3")]
    kernel = f"{platform.system()} {platform.release().partition('-')[0]}"
    grouped = AUTOGROUP.is_file() and AUTOGROUP.read_text().strip() == "1"
    autogroup = f"autogroup {'on' if grouped else 'off'}"
    return ", ".join([f"{kind} with {cpus}", properties["Model name"], *caches, kernel, autogroup])

"""What a reader must know of the machine to judge times that were measured on it."""

import os
import platform
import re
import subprocess

import psutil


def machine():
    """Return the processor, its cores that may be used, its caches, the kernel and the memory."""
    described = subprocess.run(
        ["lscpu"],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    ).stdout
    found = dict(re.findall(r"^ *(Model name|L\w+ cache): +(.+)$", described, re.M))
    return {
        "processor": found.pop("Model name"),
        "cores": len(os.sched_getaffinity(0)),
        "caches": {name.removesuffix(" cache"): size for name, size in found.items()},
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
    }

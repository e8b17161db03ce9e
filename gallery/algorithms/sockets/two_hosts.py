"""Train four ranks on two hosts."""

import os
import socket
import subprocess
import sys
from pathlib import Path

# The package of the suite: beside gallery/, unless pip has installed it.
sys.path.append(str(Path(__file__).resolve().parents[3] / "conformance"))

# [hosts]
from c10d_conformance.hosts import ENVIRONMENT, HostsError, simulated_hosts

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2"]
RANK = "sockets/train.py"


def train_on(hosts, environment, port):
    """Start a torchrun on each host, and print what rank 0 has written."""
    meeting = [f"--master-addr={hosts[0].address}", f"--master-port={port}"]
    torchruns = [
        host.popen(
            [*TORCHRUN, *meeting, f"--node-rank={number}", RANK],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, host in enumerate(hosts)
    ]
    print("$ torchrun --nnodes=2 --nproc-per-node=2", RANK)
    outputs = [torchrun.communicate()[0] for torchrun in torchruns]
    print("".join(outputs), end="")
    assert not any(torchrun.returncode for torchrun in torchruns)
# [/hosts]


class ThisHost:
    address, popen = "127.0.0.1", staticmethod(subprocess.Popen)


try:
    with simulated_hosts(2) as hosts:
        train_on(hosts, ENVIRONMENT, port=29500)  # free on a new host
except HostsError:  # without the right to create namespaces: two torchruns on this host
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    train_on([ThisHost(), ThisHost()], {}, port)

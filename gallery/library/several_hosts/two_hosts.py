"""Run four ranks on two hosts."""

import os
import socket
import subprocess
import sys
from pathlib import Path

# The package of the suite: beside gallery/, unless pip has installed it.
sys.path.append(str(Path(__file__).resolve().parents[3] / "conformance"))

# [hosts]
from c10d_conformance.hosts import HostsError, simulated_hosts

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2"]
RANK = "several_hosts/what_they_share.py"
PORT = 29500  # nobody else listens on a new host


def run_on(hosts):
    """Start a torchrun on each host, and print what the ranks have written."""
    meeting = [f"--master-addr={hosts[0].address}", f"--master-port={PORT}"]
    torchruns = [
        host.popen(
            [*TORCHRUN, *meeting, f"--node-rank={number}", RANK],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, host in enumerate(hosts)
    ]
    print("$ torchrun --nnodes=2 --nproc-per-node=2", RANK)
    outputs = [torchrun.communicate()[0] for torchrun in torchruns]
    print("".join(sorted("".join(outputs).splitlines(keepends=True))), end="")
    assert not any(torchrun.returncode for torchrun in torchruns)
# [/hosts]


class ThisHost:
    address, popen = "127.0.0.1", staticmethod(subprocess.Popen)


try:
    with simulated_hosts(2) as hosts:
        run_on(hosts)
except HostsError:  # without the right to create namespaces: two torchruns, through the network
    with socket.create_server(("127.0.0.1", 0)) as free:
        PORT = free.getsockname()[1]
    os.environ["MPIR_CVAR_NOLOCAL"] = "1"
    run_on([ThisHost(), ThisHost()])

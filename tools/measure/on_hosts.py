"""Measure groups in turns on simulated hosts. As a program, this is one of the ranks."""

import gc
import json
import math
import os
import subprocess
import sys
from dataclasses import astuple, dataclass
from importlib import import_module

import torch
import torch.distributed as dist

from ..project.errors import BuildError
from ..project.paths import ROOT, SUITE
from .cases import Case
from .ranks import MODULES, OPERATION_TIMEOUT, samples

GLOO, TCP, SHM = "gloo", "tcp", "shm"  # and algorithms of tcp by name
PORT = 29500  # free on a new host
BLOCK = 0.1  # seconds that a sample takes: ranks begin it apart by a latency
LIMIT = 600  # seconds, for the ranks of one network


@dataclass(frozen=True)
class Network:
    """Hosts with some ranks each, and the links between the hosts."""

    hosts: int
    ranks_of_host: int
    latency: float = 0.0  # in seconds
    rate: float = math.inf  # in bits per second

    @property
    def ranks(self):
        return self.hosts * self.ranks_of_host


def measure_on_hosts(network, names, cases, rounds):
    """Return for each case and name the microseconds of the slowest rank in each round.

    The names are GLOO, TCP, SHM for ranks of one host, or those of algorithms for all_reduce.
    Raises BuildError if hosts cannot be simulated, or if a rank fails.
    """
    sys.path.insert(0, str(SUITE))
    from c10d_conformance.hosts import ENVIRONMENT, HostsError, simulated_hosts

    try:
        with simulated_hosts(network.hosts, network.latency, network.rate) as hosts:
            plan = [f"tcp://{hosts[0].address}:{PORT}", names, [*map(astuple, cases)], rounds]
            command = [sys.executable, "-m", "tools.measure.on_hosts", json.dumps(plan)]
            path = os.pathsep.join(sys.path)
            common = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}
            common["TORCH_FR_BUFFER_SIZE"] = "0"  # The flight recorder takes time of each call.
            common["WORLD_SIZE"] = str(network.ranks)
            processes = [
                hosts[rank // network.ranks_of_host].popen(
                    command,
                    cwd=ROOT,
                    env={**common, "RANK": str(rank)},
                    stdout=subprocess.PIPE,
                    start_new_session=True,  # as torchrun does; Linux schedules by sessions
                )
                for rank in range(network.ranks)
            ]
            outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    except HostsError as error:
        raise BuildError(str(error)) from None
    except subprocess.TimeoutExpired:
        raise BuildError(f"the {network.ranks} ranks have not ended after {LIMIT} s") from None
    if any(process.returncode for process in processes):
        raise BuildError("a rank failed, and has said why")
    return json.loads(outputs[0])


def _measure_in_rank(plan):
    import tcp_collectives  # registers TCP

    import_module(MODULES[SHM])

    address, names, cases, rounds = json.loads(plan)
    torch.set_num_threads(1)
    gc.disable()  # It would run in some samples and not in others.
    rank, size = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    dist.init_process_group(TCP, address, OPERATION_TIMEOUT, rank=rank, world_size=size)
    groups = {name: _group(name, tcp_collectives.Options()) for name in names}
    found = [samples(Case(*case), groups, rounds, BLOCK) for case in cases]
    if rank == 0:
        print(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def _group(name, options):
    if name in (GLOO, SHM):
        return dist.new_group(backend=name, timeout=OPERATION_TIMEOUT)
    options.algorithms = "" if name == TCP else f"all_reduce={name}"
    return dist.new_group(backend=TCP, timeout=OPERATION_TIMEOUT, pg_options=options)


if __name__ == "__main__":
    _measure_in_rank(sys.argv[1])

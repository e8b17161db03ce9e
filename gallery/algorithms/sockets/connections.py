"""Worker: count what a group of tcp adds to a process, and what a wait costs."""

import os
import time
from ipaddress import ip_address

import psutil
import torch
import torch.distributed as dist

import tcp_collectives  # importing it registers "tcp"

options = tcp_collectives.Options()
options.interface = "lo"
dist.init_process_group("tcp", pg_options=options)
STORE = int(os.environ["MASTER_PORT"])


def connections():
    """Return the ends of all connections, without those to the store."""
    ends = [(each.laddr, each.raddr) for each in psutil.Process().net_connections("tcp")]
    return {(here, there) for here, there in ends if not there or there.port != STORE}


def threads():
    return len(os.listdir("/proc/self/task"))


connections_before, threads_before = connections(), threads()
group = dist.new_group(pg_options=options)
new = connections() - connections_before
if dist.get_rank() == 0:
    print(f"{len(new)} connections and {threads() - threads_before} threads more")
    print("all on the loopback:", all(ip_address(here.ip).is_loopback for here, _ in new))
    print("ports that still listen:", len([here for here, there in new if not there]))
dist.barrier()
before = time.process_time()
if dist.get_rank() == 1:
    time.sleep(2)
dist.all_reduce(torch.ones(1), group=group)
busy = time.process_time() - before
print("busy for less than 0.2 seconds:", busy < 0.2)
# [/late]
dist.barrier()
dist.destroy_process_group()

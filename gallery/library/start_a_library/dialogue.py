"""Program: start MPI in processes of its own, and answer what they ask as mpiexec would."""

import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

# [process]
PROCESS = """
import ctypes, sys
mpi = ctypes.CDLL(sys.prefix + "/lib/libmpi.so.12")
mpi.MPI_Init(None, None)
mpi.MPI_Finalize()
"""
# MPI takes the two processes for two hosts; otherwise it would need no addresses.
SETTINGS = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}


def start_process(rank, end):
    """Start a rank of MPI, which asks its launcher through this end of a socket pair."""
    pmi = {"PMI_FD": str(end.fileno()), "PMI_RANK": str(rank), "PMI_SIZE": "2"}
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS],
        env={**os.environ, **SETTINGS, **pmi},
        pass_fds=[end.fileno()],
        stderr=subprocess.PIPE,
        text=True,
    )


# [/process]
CONSTANTS = {
    "init": "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
    "get_maxes": "cmd=maxes rc=0 kvsname_max=256 keylen_max=256 vallen_max=1024",
    "get_appnum": "cmd=appnum rc=0 appnum=0",
    "get_my_kvsname": f"cmd=my_kvsname rc=0 kvsname=job{os.getpid()}",
    "finalize": "cmd=finalize_ack rc=0",
}


# [answer]
def answer(line, keys, barrier):
    """Return the answer to a line, which may first have to wait for other ranks."""
    fields = dict(field.split("=", 1) for field in line.split())
    command, key = fields["cmd"], fields.get("key")
    if command == "put":
        keys[key] = fields["value"]
        return "cmd=put_result rc=0"
    if command == "get":
        found = f"rc=0 value={keys[key]}" if key in keys else "rc=-1 msg=key_not_found"
        return f"cmd=get_result {found}"
    if command == "barrier_in":
        barrier()
        return "cmd=barrier_out rc=0"
    return CONSTANTS[command]


# [/answer]
def serve(socket, process, keys, barrier, said):
    """Answer a process until it closes its end of the socket pair, and note what was said."""
    with socket, socket.makefile("r") as lines:
        for line in lines:
            # A process that is aborted would leave its name in shared memory behind.
            maps = Path(f"/proc/{process.pid}/maps").read_text()
            for name in re.findall(r"/dev/shm/mpich_\S+", maps):
                Path(name).unlink(missing_ok=True)
            text = answer(line, keys, barrier)
            said.append((line.strip(), text))
            socket.sendall(f"{text}\n".encode())


def shorten(text):
    """Leave out what differs from run to run, and what is the same in each line."""
    text = re.sub(r"\b[0-9A-F]{12,}\S*", "ADDRESS", text)
    return re.sub(r" kvsname=job\d+(?= key)|cmd=|(?<=job)\d+", "", text)


def show(ranks, barrier, last=0):
    """Start these of two ranks, and print what rank 0 asks, or the `last` of it."""
    keys, said, processes, servers = {}, {rank: [] for rank in ranks}, [], []
    for rank in ranks:
        ours, end = socket.socketpair()
        with end:
            processes.append(start_process(rank, end))
        arguments = (ours, processes[-1], keys, barrier, said[rank])
        servers.append(threading.Thread(target=serve, args=arguments))
        servers[-1].start()
    errors = [process.communicate()[1] for process in processes]
    for server in servers:
        server.join()
    for question, text in said[0][-last:]:
        print(f"{shorten(question):40} -> {shorten(text)}")
    print(*errors[0].splitlines()[-1:], sep="\n", end="")


if __name__ == "__main__":
    # [shown]
    show([0, 1], barrier=threading.Barrier(2).wait)
    # [/shown]

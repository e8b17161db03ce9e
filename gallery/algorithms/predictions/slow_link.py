"""Time two messages over a slow link between simulated hosts."""

import socket
import sys
import time
from pathlib import Path

# The package of the suite: beside gallery/, unless pip has installed it.
sys.path.append(str(Path(__file__).resolve().parents[3] / "conformance"))

from c10d_conformance.hosts import HostsError, simulated_hosts


# [link]
def milliseconds(sender, receiver, count):
    """Return the time from the beginning of a send to its last byte."""
    start = time.monotonic()
    sender.sendall(bytes(count))
    receiver.recv(count, socket.MSG_WAITALL)
    return 1000 * (time.monotonic() - start)


def compare():
    with simulated_hosts(2, latency=0.02, rate=10e6) as (one, other):
        # A socket stays in the network in which it was made.
        listener = other.call(lambda: socket.create_server((other.address, 5000)))
        sender = one.call(lambda: socket.create_connection((other.address, 5000)))
        receiver, _ = listener.accept()
        with listener, sender, receiver:
            for count, least in (1, 20), (65536, 20 + 52):
                enough = milliseconds(sender, receiver, count) >= least
                print(f"{count} B take at least {least} ms: {enough}")
# [/link]


try:
    compare()
except HostsError as error:
    print(f"no simulated hosts: {error}")

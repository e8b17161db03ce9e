"""Worker: both ranks send first, and neither reaches its receive."""

import re
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=2))
other = 1 - dist.get_rank()

theirs = torch.empty(1)
failure = ""
try:
    dist.send(torch.ones(1), dst=other)
    dist.recv(theirs, src=other)
except RuntimeError as error:
    failure = str(error)
    print("send failed: nobody received within two seconds")
# The first to give up closes the connection, and the other may report the closed connection.
assert re.search("Timed out waiting 2000ms for send|Connection closed", failure)

dist.destroy_process_group()

"""MPICH in a process that is the only rank: a library without a backend."""

import os
from ctypes import CDLL, byref, c_int, c_void_p, create_string_buffer
from importlib import metadata

# The network that the wheel of MPICH can use everywhere.
os.environ.update(MPIR_CVAR_CH4_NETMOD="ofi", FI_PROVIDER="tcp")
installed = {file.name: file.locate() for file in metadata.files("mpich")}
mpi = CDLL(str(installed["libmpi.so.12"]))

# These are numbers in MPICH's mpi.h.
SELF, INT, ERRORS_RETURN = c_int(0x44000001), c_int(0x4C000405), c_int(0x54000001)
STATUS_IGNORE = c_void_p(1)


def describe(error):
    """Return what MPI says of an error code: its kind, and the end of its stack."""
    text, length = create_string_buffer(512), c_int()
    mpi.MPI_Error_string(c_int(error), text, byref(length))
    lines = text.value.decode().split("\n")
    return f"{lines[0].split(',')[0]}: {lines[-1].split(': ')[-1]}"


SERIALIZED = 2  # Any thread may call MPI, one at a time.
mpi.MPI_Init_thread(None, None, SERIALIZED, byref(c_int()))
mpi.MPI_Comm_set_errhandler(SELF, ERRORS_RETURN)

"""Functions of MPICH, called with ctypes in a process in which the backend has started MPI."""

import ctypes
import re
from importlib import metadata

files = {file.name: file.locate() for file in metadata.files("mpich")}
mpi = ctypes.CDLL(str(files["libmpi.so.12"]))

# Types, operations and communicators are numbers in MPICH's mpi.h.
HANDLES = {
    name: int(number, 16)
    for name, number in re.findall(
        r"#define (MPIX?_\w+)\s+\(+MPI_(?:Datatype|Op|Comm)\)\(?(0x\w+)", files["mpi.h"].read_text()
    )
}


def arguments_of(one, other, type, op):
    """Return the arguments that MPI's reductions begin with: two tensors, a count, names."""
    return (
        ctypes.c_void_p(one.data_ptr()),
        ctypes.c_void_p(other.data_ptr()),
        other.numel(),
        HANDLES[type],
        HANDLES[op],
    )

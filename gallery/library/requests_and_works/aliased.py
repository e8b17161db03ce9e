"""Program: give MPI an output that is also the input."""

from ctypes import byref, c_int, c_void_p

from single_mpi import INT, SELF, describe, mpi

# [alias]
one = c_int(1)
IN_PLACE = c_void_p(-1)
for name, given in [("the output", byref(one)), ("MPI_IN_PLACE", IN_PLACE)]:
    error = mpi.MPI_Allgather(given, 1, INT, byref(one), 1, INT, SELF)
    print(f"input is {name}: {describe(error) if error else 'gathered'}")
# [/alias]
mpi.MPI_Finalize()

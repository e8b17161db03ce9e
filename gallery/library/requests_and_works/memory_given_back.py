"""Program: let a request of MPI fail, while MPI still has its memory."""

from ctypes import byref, c_int

from single_mpi import INT, SELF, STATUS_IGNORE, mpi


class Pool:
    """Memory that is used again, as that of an allocator."""

    def __init__(self):
        self.free = [c_int(), c_int()]

    def take(self):
        return self.free.pop()


# [calls]
class Receive:
    """A receive from this process itself, whose request has not ended."""

    def __init__(self, pool):
        self.memory, self.request = pool.take(), c_int()
        mpi.MPI_Irecv(byref(self.memory), 1, INT, 0, 0, SELF, byref(self.request))


def give_back_at_once(pool, call):
    """Give the memory back, because the operation has failed."""
    pool.free.append(call.memory)


def give_back_never(pool, call):
    """Keep the memory, because MPI may still write into it."""
    kept.append(call)


# [/calls]
kept = []
# [late]
for give_back in [give_back_at_once, give_back_never]:
    pool = Pool()
    call = Receive(pool)
    give_back(pool, call)  # the deadline is over
    other = pool.take()  # for another tensor
    other.value = 7
    mpi.MPI_Send(byref(c_int(99)), 1, INT, 0, 0, SELF)  # the data comes late
    mpi.MPI_Wait(byref(call.request), STATUS_IGNORE)
    print(f"{give_back.__name__}: the other tensor, which was 7, is {other.value}")
# [/late]
mpi.MPI_Finalize()

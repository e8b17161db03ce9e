"""Program: let three ranks read one key of a store, and erase it too early or in time."""

from datetime import timedelta

from torch.distributed import HashStore


# [mistake]
def read_and_erase(store, rank, number):
    """Read the value and erase it, because this rank no longer needs it."""
    value = store.get(f"{number}/value")
    store.delete_key(f"{number}/value")
    return value.decode()


# [/mistake]
# [cure]
def read_and_keep(store, rank, number):
    """Read the value, and let rank 0 erase the one before as soon as all ranks are here."""
    store.set(f"{number}/{rank}", "has ended what was before")
    value = store.get(f"{number}/value")
    if rank == 0 and number > 1:
        store.wait([f"{number}/{other}" for other in range(3)])
        store.delete_key(f"{number - 1}/value")
    return value.decode()


# [/cure]
for read in (read_and_erase, read_and_keep):
    store = HashStore()
    store.set_timeout(timedelta(seconds=1))
    print(read.__name__)
    for number in (1, 2):
        store.set(f"{number}/value", f"value {number}")
        for rank in (1, 2, 0):  # one after another, in one process
            try:
                result = read(store, rank, number)
            except RuntimeError as error:
                result = type(error).__name__
            print(f"    broadcast {number}, rank {rank}: {result}")
    erased = "is left" if store.check(["1/value"]) else "is erased"
    print(f"    the first value {erased}")

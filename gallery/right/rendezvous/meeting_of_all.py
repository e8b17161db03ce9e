"""Worker: the solution of the exercise. All ranks meet twice and learn all texts."""

import secrets
import time

import torch.distributed as dist

store, rank, size = next(dist.rendezvous("env://"))


# [solution]
def meet(keys, rank, size, text):
    """Return what all ranks say in this meeting, in the order of the ranks."""
    mine = secrets.token_hex(8)
    if rank == 0:
        number = mine
        keys.set(f"text/{number}/0", text)
        others = range(1, size)
        while not keys.check([f"text/{number}/{other}" for other in others]):
            for other in others:
                if keys.check([f"member/{other}"]):
                    keys.set("answer/" + keys.get(f"member/{other}").decode(), number)
            time.sleep(0.01)
    else:
        keys.set(f"member/{rank}", mine)
        number = keys.get(f"answer/{mine}").decode()
        keys.set(f"text/{number}/{rank}", text)
    texts = [f"text/{number}/{other}" for other in range(size)]
    keys.wait(texts)
    return [keys.get(text).decode() for text in texts]


# [/solution]
for meeting in [1, 2]:
    time.sleep(0.2 * rank)  # The old keys of the others are there before their new ones.
    print(meet(store, rank, size, f"{rank} in {meeting}"))

"""Program: the solution of the exercise. Count the orders in which a wakeup is lost."""

from itertools import permutations

# [solution]
POSTER = ["the counter changes", "the poster reads sleepers"]
WAITER = ["sleepers changes", "the waiter reads the counter"]


def count(*ordered):
    """Return how many orders lose the wakeup, and how many there are."""
    lost = total = 0
    for order in permutations(POSTER + WAITER):
        when = order.index
        if all(when(write) < when(read) for write, read in ordered):
            total += 1
            not_woken = when(POSTER[1]) < when(WAITER[0])
            lost += not_woken and when(WAITER[1]) < when(POSTER[0])
    return f"{lost} of {total} orders lose the wakeup"


print("no side keeps its order:", count())
print("the waiter keeps its order:", count(WAITER))
print("the poster keeps its order:", count(POSTER))
print("both keep their order:", count(WAITER, POSTER))
# [/solution]

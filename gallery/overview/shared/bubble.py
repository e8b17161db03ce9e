"""Time axis of a pipeline with two stages."""


# [clock]
def can_start(task, rank, done):
    other = rank - 1 if task.startswith("F") else rank + 1
    return other not in (0, 1) or (other, task) in done


def put_on_a_clock(orders):
    """Return a row for each rank, with two dots where it must wait."""
    todo, rows, done = [list(order) for order in orders], [[], []], set()
    while any(todo):
        started = [r for r in (0, 1) if todo[r] and can_start(todo[r][0], r, done)]
        assert started, "each rank waits for the other"
        for rank in (0, 1):
            rows[rank].append(todo[rank].pop(0) if rank in started else "..")
        done |= {(rank, rows[rank][-1]) for rank in started}
    return rows


# [/clock]

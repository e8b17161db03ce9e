"""Draw what the streams of the device `sim` did, from a trace of it, as lines of text."""


def draw(steps, names=(), waits=False):
    """Return a line for the host and one for each stream.

    ``steps`` is what ``torch.sim.stop_trace()`` returns. From left to right goes the order of
    events, and not the time. ``names`` are those of the streams, in the order in which they
    begin; the others have numbers. Dots say that a gate holds the stream, and with ``waits``
    also that it waits for an event. Use ``waits`` only where the program decides that: a stream
    does not wait for an event that was reached before.
    """
    rows, streams, queues, column = {"host": ""}, [], {}, 0
    heads = {}  # of each stream: the column in which its first task could begin
    for what, name, *place in steps:
        place, event = tuple(place), name.startswith("wait for")
        if event and not waits:
            continue
        queue = queues.setdefault(place, [])
        if what == "launch":
            if not event:
                column = max(column, len(rows["host"]))
                rows["host"] = rows["host"].ljust(column) + name + " "
            if not queue:
                heads[place] = column
            queue.append(name)
            continue
        if place not in streams:
            streams.append(place)
            rows[place] = ""
        if event or name == "gate":
            if what == "begin":
                rows[place] = rows[place].ljust(heads[place]).ljust(column, ".")
        else:
            column = max(column, len(rows[place]))
            rows[place] = rows[place].ljust(column) + (f"[{name}" if what == "begin" else "]")
            column += 1
        if what == "end":
            queue.pop(0)
            heads[place] = column
    labels = {"host": "host"}
    for number, place in enumerate(streams):
        labels[place] = names[number] if number < len(names) else f"stream {number}"
    width = max(map(len, labels.values()))
    return "\n".join(f"{labels[key]:{width}}  {row}".rstrip() for key, row in rows.items())

"""Draw what the streams of the device `sim` did, from a trace of it, as lines of text."""


def draw(steps, names=()):
    """Return a line for the host and one for each stream, without what waits for events.

    ``steps`` is what ``torch.sim.stop_trace()`` returns. From left to right goes the order of
    events, and not the time. ``names`` are those of the streams, in the order in which they
    begin; the others have numbers.
    """
    streams, rows, begun, column = [], {"host": ""}, {}, 0
    for what, name, device, stream in steps:
        if name.startswith("wait for"):
            continue
        place = device, stream
        if what == "launch":
            column = max(column, len(rows["host"]))
            rows["host"] = rows["host"].ljust(column) + name + " "
        elif what == "begin":
            if place not in streams:
                streams.append(place)
            row = rows.setdefault(place, "")
            column = max(column, len(row))
            rows[place] = row.ljust(column) + f"[{name}"
            begun[place] = len(rows[place])
            column += 1
        else:
            column = max(column, begun[place])
            rows[place] = rows[place].ljust(column) + "]"
            column += 1
    labels = {"host": "host"}
    for number, place in enumerate(streams):
        labels[place] = names[number] if number < len(names) else f"stream {number}"
    width = max(map(len, labels.values()))
    return "\n".join(f"{labels[key]:{width}}  {row}".rstrip() for key, row in rows.items())

"""Tables of the times that ``make bench-algorithms`` has recorded, in microseconds."""

import csv
from itertools import combinations
from pathlib import Path

from shared.tables import size

NEAR = 0.2  # of a time
PREDICTED = (8, 8), (2, 4)  # hosts, and ranks on all of them together
COMPARED = (1, 2), (1, 4), (2, 2), (2, 4)
RATE_OF_PREDICTIONS = "200"  # Mbit/s; the backends are compared on other links

_first, *_lines = Path("shared/measurements.csv").read_text().splitlines()
machine = _first.removeprefix("# ")
_rows = [*csv.DictReader(_lines)]
for _row in _rows:
    _row |= {name: float(_row[name] or "nan") for name in ("median", "least", "predicted")}


def predictions(hosts, ranks):
    """Return a header and rows of times in milliseconds, and of the error against the median."""
    header = ["algorithm", "size", "least", "median", "predicted", "deviation"]
    table = []
    for row in _predicted(hosts, ranks):
        times = [_milliseconds(row[name]) for name in header[2:5]]
        percent = round(100 * _error(row, "median"))
        error = f"{percent:+d} %".replace("-", "−") if percent else "0 %"
        table.append([row["algorithm"], size(row["size"]), *times, error])
    return header, table


def counts():
    """Return a header and rows: how many times are near to the prediction, or in its order."""
    header = ["hosts x ranks", "predictions", "near the median", "near the least", "orders"]
    table = []
    for hosts, ranks in PREDICTED:
        rows = _predicted(hosts, ranks)
        near = [sum(abs(_error(x, name)) <= NEAR for x in rows) for name in ("median", "least")]
        found = [len(rows), *near, _orders(rows)]
        table.append([_place(hosts, ranks), *map(str, found)])
    return header, table


def ratios(hosts, ranks):
    """Return for each operation and size how many times as long as tcp gloo takes.

    There are two, of the medians and of the least times, the smaller one first.
    """
    return {key: _ratios(of["gloo"], of["tcp"]) for key, of in _compared(hosts, ranks).items()}


def beside_gloo(hosts, ranks):
    """Return a header and rows of these ratios, one for each operation."""
    found = ratios(hosts, ranks)
    lines = {}
    for (operation, _), pair in found.items():
        lines.setdefault(operation, [operation]).append(_range(f"{x:.1f}" for x in pair))
    sizes = dict.fromkeys(size for _, size in found)
    return [_place(hosts, ranks), *map(size, sizes)], [*lines.values()]


def inside_hosts():
    """Return a header and rows: what an all_reduce of tcp takes on one host.

    The unit is a percent of its time with two hosts of two ranks; once the medians, once the least.
    """
    *near, whole = _compared(1, 2), _compared(1, 4), _compared(2, 4)
    table = []
    for key, backends in whole.items():
        if key[0] == "all_reduce":
            pairs = [_ratios(of[key]["tcp"], backends["tcp"]) for of in near]
            cells = [_range(f"{100 * x:.0f}" for x in pair) for pair in pairs]
            table.append([size(key[1]), *(f"{cell} %" for cell in cells)])
    return ["all_reduce", _place(1, 2), _place(1, 4)], table


def where_gloo_is_ahead():
    """Return a line for each case in which both ratios are below 1, and a line that counts them."""
    cases = [
        (f"{_place(*where)}, {operation}, {size(count)}", larger < 1)
        for where in COMPARED
        for (operation, count), (_, larger) in ratios(*where).items()
    ]
    ahead = [text for text, is_ahead in cases if is_ahead]
    return [f"{len(ahead)} of {len(cases)}", *ahead]


def _orders(rows):
    """Return how many pairs that differ clearly were measured in the predicted order.

    A pair is two algorithms with the same size; the order is that of the medians.
    """
    pairs = [
        sorted(pair, key=lambda row: row["predicted"])
        for pair in combinations(rows, 2)
        if pair[0]["size"] == pair[1]["size"]
    ]
    clear = [pair for pair in pairs if pair[1]["predicted"] > (1 + NEAR) * pair[0]["predicted"]]
    return f"{sum(fast['median'] < slow['median'] for fast, slow in clear)} / {len(clear)}"


def _compared(hosts, ranks):
    """Return for each operation and size the rows of the backends, by their name."""
    found = {}
    for row in _of(hosts, ranks):
        if row["rate"] != RATE_OF_PREDICTIONS and row["size"] != "0":
            key = row["operation"].replace(" and ", ", "), row["size"]
            found.setdefault(key, {})[row["algorithm"]] = row
    return found


def _ratios(row, other):
    """Return how many times as long a row takes, by medians and by least, the smaller one first."""
    return sorted(row[name] / other[name] for name in ("median", "least"))


def _range(texts):
    return "–".join(dict.fromkeys(texts))


def _predicted(hosts, ranks):
    return [x for x in _of(hosts, ranks) if x["predicted"] > 0]  # NaN is not


def _of(hosts, ranks):
    return [x for x in _rows if (x["hosts"], x["ranks"]) == (str(hosts), str(ranks))]


def _place(hosts, ranks):
    return f"{hosts} x {ranks // hosts}"


def _error(row, name):
    return row["predicted"] / row[name] - 1


def _milliseconds(time):
    return f"{time / 1000:.2f}" if time < 10_000 else f"{time / 1000:.1f}"

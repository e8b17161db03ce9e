"""The times that ``make accept-bench-backend`` has recorded, in microseconds."""

import csv
from pathlib import Path

# Named like this module, so that zip files with the module include it.
_first, *_lines = Path("shared/measurements.csv").read_text().splitlines()
machine = _first.removeprefix("# ")
runs = 0  # of each case

# (operation, bytes, ranks, sessions) -> backend -> the median, lowest and highest time
measured = {}
for _row in csv.DictReader(_lines):
    runs = int(_row["runs"])
    _case = _row["operation"], int(_row["size"]), int(_row["ranks"]), int(_row["sessions"])
    _times = [float(_row[name]) for name in ("median", "lowest", "highest")]
    measured.setdefault(_case, {})[_row["backend"]] = _times

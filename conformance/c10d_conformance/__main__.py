"""Run the suite: `python -m c10d_conformance --backend NAME`."""

import sys

from c10d_conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""The releases of PyTorch that are supported, read from releases.toml.

usage: python -m tools.project.releases

Started as a program, this prints them as JSON, for workflows.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from .configuration import read
from .paths import ROOT

RELEASES_FILE = ROOT / "releases.toml"
ENVIRONMENT = ".venv-"  # Its name begins like this if it is not for the default.


@dataclass(frozen=True)
class Release:
    version: str
    download: float
    disk: float

    @property
    def series(self):
        return series(self.version)


def series(version):
    """Return the first two numbers of a version, which name outputs and results."""
    return ".".join(version.split(".")[:2])


RELEASES = read(RELEASES_FILE, lambda file: tuple(Release(**entry) for entry in file["release"]))
DEFAULT = RELEASES[0]


def current():
    """Return the release that this environment is for, whether it is installed or not."""
    name = Path(sys.prefix).name
    version = name.removeprefix(ENVIRONMENT) if name.startswith(ENVIRONMENT) else ""
    return next((x for x in RELEASES if x.version == version), DEFAULT)


def pins(release):
    """Return the file that pins the dependencies of a release."""
    return ROOT / "requirements" / "torch" / f"{release.version}.txt"


if __name__ == "__main__":
    print(json.dumps([{"version": x.version} for x in RELEASES]))

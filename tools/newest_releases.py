"""Let releases.toml name the newest patch of each series that pip can find.

usage: python -m tools.newest_releases [--nightly]

With --nightly, a pre-release that is newer than all of them is added at the top. Dependencies
that requirements/torch already pins keep their versions; pip chooses the others, so it checks no
hashes.
"""

import json
import re
import subprocess
import sys

from .project.errors import BuildError, run_command
from .project.releases import DEFAULT, RELEASES, RELEASES_FILE, Release, pins

TIMEOUT = 300  # seconds


def offered(*options):
    """Return the releases that pip finds for this Python, newest first, without local parts."""
    command = [sys.executable, "-m", "pip", "index", "versions", "torch", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        raise BuildError(f"pip finds no PyTorch:\n{done.stderr}")
    return list(dict.fromkeys(x.partition("+")[0] for x in json.loads(done.stdout)["versions"]))


def newest(series, versions):
    """Return the newest of ``versions`` that is a patch of ``series``, or None."""
    patches = [x for x in versions if re.fullmatch(rf"{re.escape(series)}\.\d+", x)]
    return max(patches, key=lambda x: int(x.rpartition(".")[2]), default=None)


def rename(before, now):
    """Put another patch into releases.toml; its dependencies may differ."""
    text = RELEASES_FILE.read_text()
    RELEASES_FILE.write_text(text.replace(f'"{before.version}"', f'"{now}"'))
    own = r"^(torch|triton|nvidia-|cuda-)"
    pinned = re.findall(r"^[\w.-]+==\S+", pins(before).read_text(), re.M)  # without hashes
    lines = [x for x in pinned if not re.match(own, x)]
    _write_pins(now, lines)


def add_nightly(version):
    """Put a pre-release at the top of releases.toml, the new default."""
    text = RELEASES_FILE.read_text()
    entry = f'[[release]]\nversion = "{version}"\ndownload = 3.0\ndisk = 6.0\n\n'
    RELEASES_FILE.write_text(text.replace("[[release]]", entry + "[[release]]", 1))
    _write_pins(version, [])


def _write_pins(version, lines):
    file = pins(Release(version, download=0, disk=0))
    file.write_text("\n".join([f"# What PyTorch {version} depends on.", *lines, ""]))


def main(option: str = "") -> None:
    versions = offered()
    for release in RELEASES:
        now = newest(release.series, versions)
        if now and now != release.version:
            print(f"{release.version} -> {now}")
            rename(release, now)
    if option == "--nightly":
        nightly = offered("--pre")[0]
        if "dev" not in nightly:
            raise BuildError(f"pip finds no nightly, the newest is PyTorch {nightly}")
        print(f"{DEFAULT.version} -> {nightly}")
        add_nightly(nightly)


if __name__ == "__main__":
    run_command(main, __doc__)

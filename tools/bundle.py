"""The zip file of a sample: everything it takes to run it somewhere else."""

import io
import re
import zipfile

from .compile import extension_sources
from .paths import ROOT

README = """\
How to run this sample
======================

You need Python 3.11 or newer and a C++20 compiler. In this folder:

    python3 -m venv .venv
    . .venv/bin/activate
    pip install -r requirements.txt
    pip install --no-build-isolation ./extension/dummy_collectives
    cd gallery
    python {script}
"""
PACKAGES = ("torch", "numpy", "setuptools", "ninja", "psutil")
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # The same bytes, whenever it is made.


def write(target, script, used_files):
    """Write ``target`` with ``script``, what it uses, and the extension."""
    contents = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in [script, *used_files, *extension_sources()]
    }
    contents["README.txt"] = README.format(script=script.name).encode()
    contents["requirements.txt"] = _requirements().encode()
    contents["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(f"{script.stem}/{name}", ZIP_EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    target.write_bytes(buffer.getvalue())


def _requirements():
    pinned = "".join(
        (ROOT / "requirements" / f"{name}.txt").read_text()
        for name in ("execute", "render")
    )
    lines = [re.search(rf"^{name}==\S+$", pinned, re.M)[0] for name in PACKAGES]
    return "\n".join(lines) + "\n"

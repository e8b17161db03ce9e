"""Two builds of one commit in different surroundings write the same bytes.

Each is a clone of its own, in which everything is compiled, executed and rendered. Not
part of `make test`, because that takes minutes: see `make test-reproducible`.
"""

import hashlib
import os
import subprocess

import pytest

from tools.project.paths import ROOT, SITE, relative

# The locale, the time zone, the order of sets; the umask, the number of cores, the folder,
# the times of the files and the time of the day are different, too.
HERE = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "1"}
ELSEWHERE = {"LC_ALL": "C", "TZ": "Asia/Seoul", "PYTHONHASHSEED": "2", "LANGUAGE": "ko"}
A_DAY = 24 * 60 * 60


def clone(folder, umask):
    command = ["git", "clone", "--quiet", "--no-hardlinks", ROOT, folder]
    subprocess.run(command, check=True, umask=umask)
    # What the requirements pin is the same in all clones; only that is shared.
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
    (folder / ".git/info/exclude").write_text("/.venv\n")
    return folder


def make_files_older(folder):
    for path in folder.rglob("*"):
        if not path.is_symlink() and ".git" not in path.parts:
            past = path.stat().st_mtime - 400 * A_DAY
            os.utime(path, (past, past))


def build(folder, environment, umask, before=lambda: None):
    python = folder / ".venv/bin/python"
    done = subprocess.run(
        [python, "-m", "tools.html"],
        cwd=folder,
        # As the Makefile has it.
        env={**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": "", **environment},
        umask=umask,
        preexec_fn=before,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return folder / relative(SITE)


def on_one_core():
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])


def digests(site):
    return {
        path.relative_to(site).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in site.rglob("*")
        if path.is_file()
    }


@pytest.mark.timeout(3600)
def test_two_clean_builds_of_one_commit_are_equal(tmp_path):
    first = clone(tmp_path / "a", umask=0o022)
    one = build(first, HERE, umask=0o022)
    second = clone(tmp_path / "in" / "another" / "folder", umask=0o077)
    make_files_older(second)
    other = build(second, ELSEWHERE, umask=0o077, before=on_one_core)
    these, those = digests(one), digests(other)
    assert len(these) > 100
    differing = sorted(name for name in these | those if these.get(name) != those.get(name))
    assert not differing, f"{relative(SITE)}: {differing}"

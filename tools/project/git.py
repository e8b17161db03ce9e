"""Read the history of the clone with git, whatever its user has configured for all clones."""

import subprocess
from datetime import date
from functools import cache

from .paths import ROOT

SETTINGS = ["-c", "log.showSignature=false", "-c", "status.showUntrackedFiles=normal"]


def git(*arguments):
    """Return what git prints, or None without git or a repository."""
    command = ["git", "-C", ROOT, *SETTINGS, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit():
    """Return the commit that is checked out, its day and whether anything has changed; or None."""
    # Not the history of another repository that merely contains the sources.
    if git("rev-parse", "--show-toplevel") != str(ROOT):
        return None
    if not (log := git("log", "-1", "--format=%H %cs")):
        return None
    name, day = log.split()
    return name, day, bool(git("status", "--porcelain"))


def changed_files(folder, since="HEAD"):
    """Return the paths in a folder that differ from a commit, or are gone since."""
    return _files("diff", "--name-only", since, "--", folder)


def committed_files(folder):
    """Return the paths in a folder that are as the last commit has them."""
    changed = set(changed_files(folder))
    return [path for path in _files("ls-files", "--", folder) if path not in changed]


def _files(*arguments):
    """Return the paths that git names, or none outside of a clone of this project."""
    if git("rev-parse", "--show-toplevel") != str(ROOT):
        return []
    names = git("-c", "core.quotePath=false", *arguments) or ""
    return [ROOT / name for name in names.splitlines()]


@cache
def has_history():
    """Return whether this is a clone of its own with all its commits."""
    top = git("rev-parse", "--show-toplevel", "--is-shallow-repository")
    return top is not None and top.splitlines() == [str(ROOT), "false"]


def head_date():
    """Return the day of the commit that is checked out, or None."""
    text = git("log", "-1", "--format=%cs") if has_history() else None
    return date.fromisoformat(text) if text else None


@cache
def last_changes():
    """Return the day on which each file last changed in the branch checked out, by its path.

    The changes of a merged branch count as those of its merge, as far as the merge kept them.
    """
    days: dict[str, date] = {}
    if has_history():
        lines = ["--format=%x00%cs", "--name-only", "--no-renames"]
        log = git("log", "--first-parent", "--diff-merges=first-parent", *lines) or ""
        for commit in log.split("\0")[1:]:
            day, *names = commit.split("\n")
            for name in filter(None, names):
                days.setdefault(name, date.fromisoformat(day))
    return days

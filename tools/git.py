"""What git says of the clone, whatever its user has set for all clones."""

import subprocess

from .paths import ROOT

SETTINGS = ["-c", "log.showSignature=false", "-c", "status.showUntrackedFiles=normal"]


def git(*arguments):
    """What git prints, or None where there is no git or no repository."""
    command = ["git", "-C", ROOT, *SETTINGS, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

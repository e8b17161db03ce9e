"""Whatever happened to the last build, the next one writes the bytes of a clean build.

Uses a small project: a page, and a sample that has a child process and a temporary folder
for a while.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from tests.tools.conftest import Project

HTML = ["tools.html"]
SEED = 20261121
KILLS = 6
PAGE = "# Title\n\nA `first` text.\n\n```{toctree}\ntutorial/sample\n```\n"
SAMPLE = """\
import subprocess, sys, tempfile, time
folder = tempfile.mkdtemp()
with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"],
                      start_new_session=True) as child:
    time.sleep(0.5)
print("done")
"""
pytestmark = pytest.mark.timeout(600)


class Clone:
    """The small project, with a folder for temporary files of its own."""

    def __init__(self, folder):
        self.project = Project(folder / "clone")
        self.root = self.project.root
        # Not in the folder: the paths of sockets must be short.
        self.temporary = Path(tempfile.mkdtemp())
        self.environment = {"TMPDIR": str(self.temporary), "PYTHONPATH": ""}

    def build(self, *command, **environment):
        command = command or HTML
        return self.project.run(*command, timeout=500, **self.environment, **environment)

    def start(self):
        return subprocess.Popen(
            [sys.executable, "-m", *HTML],
            cwd=self.root,
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def good_build(self, **environment):
        status, output = self.build(**environment)
        assert status == 0, output
        return self.site()

    def site(self):
        site = self.root / "_build/html"
        return {
            path.relative_to(site).as_posix(): path.read_bytes()
            for path in site.rglob("*")
            if path.is_file()
        }

    def leftovers(self):
        """Processes that work in the clone, and temporary files."""
        found = list(self.temporary.iterdir())
        for process in psutil.process_iter(["cmdline"]):
            try:
                if process.environ().get("TMPDIR", "").startswith(str(self.temporary)):
                    found.append(process.info["cmdline"])
            except psutil.Error:
                continue
        return found


def make_clone(folder):
    clone = Clone(folder)
    clone.project.write("docs/index.md", PAGE)
    clone.project.sample(SAMPLE)
    languages = clone.project.read("languages.toml").rstrip()
    languages = languages.replace(
        '\n\n[[language]]\ngettext = "zh', '\ncomplete = false\n\n[[language]]\ngettext = "zh'
    )
    clone.project.write("languages.toml", f"{languages}\ncomplete = false\n")
    status, output = clone.build("tools.execute")
    assert status == 0, output
    status, output = clone.build("tools.i18n_update")
    assert status == 0, output
    return clone


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A clone after a clean build, and the bytes of its site."""
    clone = make_clone(tmp_path_factory.mktemp("killed"))
    (clone.root / "only-a-compiler").mkdir()
    (clone.root / "only-a-compiler/c++").symlink_to(shutil.which("c++"))
    clean = clone.good_build()
    assert len(clean) > 50 and not clone.leftovers()
    return clone, clean


def differing(one, other):
    return sorted(name for name in one | other if one.get(name) != other.get(name))


def forget(clone):
    """Let every stage but the first have something to do."""
    (clone.root / "_build/execute/tutorial/sample.json").unlink(missing_ok=True)
    shutil.rmtree(clone.root / "_build/render", ignore_errors=True)


def kill_after(clone, seconds, how):
    build = clone.start()
    try:
        build.wait(seconds)
    except subprocess.TimeoutExpired:
        build.send_signal(how)
        build.wait(30)


def test_after_sigkill_at_any_moment(built):
    clone, clean = built
    moments = random.Random(SEED)
    print("seed", SEED)
    started = time.monotonic()
    forget(clone)
    assert not differing(clone.good_build(), clean)
    duration = time.monotonic() - started
    for _ in range(KILLS):
        seconds = moments.uniform(0, duration)
        forget(clone)
        kill_after(clone, seconds, signal.SIGKILL)
        assert not differing(clone.site(), clean), f"the last site, killed after {seconds:.1f} s"
        assert not differing(clone.good_build(), clean), f"killed after {seconds:.1f} s"
        assert not clone.leftovers(), f"killed after {seconds:.1f} s"


def test_ctrl_c_leaves_nothing(built):
    clone, clean = built
    for seconds in (0.7, 3, 6):
        forget(clone)
        kill_after(clone, seconds, signal.SIGINT)
        assert not clone.leftovers(), f"interrupted after {seconds} s"
    assert not differing(clone.good_build(), clean)


def cached(clone):
    """Return one file of each kind that a build leaves, except the site."""
    kinds = {}
    for path in sorted((clone.root / "_build").rglob("*")):
        inside = path.relative_to(clone.root / "_build")
        if path.is_file() and inside.parts[0] not in ("html", "logs"):
            kind = inside.parts[0], path.suffix or path.name
            kinds.setdefault(kind, path)
    return kinds.values()


def flip(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = [
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: flip(content) if content else b"x",
    lambda content: b"\xff\xfe\x00" * 40,
]


@pytest.mark.parametrize("first", range(len(DAMAGES)))
def test_damaged_files(built, first):
    """Each kind of file becomes empty, truncated, changed by a bit, and not text, in turn."""
    clone, clean = built
    for number, path in enumerate(cached(clone), start=first):
        if "extension" in path.parts and first:
            continue  # Once is enough: it is compiled again, which takes long.
        damage = DAMAGES[number % len(DAMAGES)]
        path.write_bytes(damage(path.read_bytes()))
    assert not differing(clone.good_build(), clean)


def test_a_clock_that_was_set_back(built):
    """All files then have a time in the future."""
    clone, clean = built
    future = time.time() + 400 * 24 * 60 * 60
    for path in clone.root.rglob("*"):
        os.utime(path, (future, future))
    (clone.root / "docs/index.md").write_text(f"(unmistakable)=\n{PAGE}")
    os.utime(clone.root / "docs/index.md", (1, 1))
    changed = clone.good_build()
    (clone.root / "docs/index.md").write_text(PAGE)
    os.utime(clone.root / "docs/index.md", (future, future))
    assert not differing(clone.good_build(), clean)
    assert b'id="unmistakable"' in changed["en/index.html"]


# The locale and the time zone are those of test_reproducible.py.
SURROUNDINGS = {"PATH": "only-a-compiler", "HOME": "/nowhere", "XDG_CACHE_HOME": "/nowhere"}
SURROUNDINGS |= {"NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": "1"}


def test_surroundings_that_do_not_matter(built):
    clone, clean = built
    forget(clone)
    assert not differing(clone.good_build(**SURROUNDINGS), clean)

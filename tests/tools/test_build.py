"""Bad surroundings: one clear message, or no failure at all, and nothing lost."""

import errno
import fcntl
import shutil
import subprocess
import sys
import time

import pytest

from tools.execute.samples import page_of, samples
from tools.processes import one_build
from tools.processes.sphinx import original_names
from tools.project.paths import BUILD, relative


def test_an_argument_is_answered_with_the_usage(project):
    status, output = project.run("tools.html", "everything")
    assert status == 1 and "usage: python -m tools.html\n" in output


@pytest.fixture
def pages(project):
    """The project with a page and the page of a sample."""
    project.write("docs/index.md", "# Title\n\nA text.\n")
    project.write("docs/tutorial/sample.rst", ":orphan:\n\nSample\n======\n")
    return project


def test_rendering_without_pages_says_what_to_do(project):
    project.sample("print(1)\n")
    output = project.fail("tools.render")
    assert "gallery/tutorial/sample.py has no page: run `make execute` first" in output


def test_rendering_needs_neither_torch_nor_a_compiler(pages):
    status, output = pages.run_without_torch("tools.render")
    assert status == 0, output
    for page in ("index.html", "en/index.html", "ko/index.html", "zh-cn/index.html"):
        assert (pages.root / "_build/render" / page).is_file()


def test_no_catalog_replaces_the_english_text(pages):
    for page, text in {"index": "A text.", "sphinx": "Choose a language"}.items():
        pages.write_catalog(page, {text: "바뀐 글"}, "en")
    status, output = pages.run("tools.render")
    assert status == 0, output
    files = [
        *pages.root.glob("_build/render/en/**/*.html"),
        *pages.root.glob("_build/render/*"),
    ]
    texts = [path.read_text() for path in files if path.suffix == ".html"]
    assert len(texts) > 3 and not any("바뀐 글" in text for text in texts)


def test_a_dangerous_text_of_the_start_page_is_refused(pages):
    text = "There is no page at this address"
    pages.write_catalog("sphinx", {text: f"<b>{text}</b>"})
    place = "locales/ko/LC_MESSAGES/sphinx.po:4"
    assert f"{place}: refused a translation with other HTML" in pages.fail("tools.render")


def test_a_sphinx_warning_in_any_language_is_an_error(pages):
    pages.write("docs/index.md", "# Title\n\n[nowhere](missing.md)\n")
    output = pages.fail("tools.render")
    for language in ("en", "ko", "zh-cn"):
        assert f"rendering {language} failed" in output
    assert "docs/index.md:3: WARNING" in output


def test_a_message_names_the_files_that_are_edited():
    script = samples()[0]
    copies = f"x/index.md:3: one\nx/{page_of(script)}.rst:12: two\nx/gone.md:1: three"
    assert original_names(copies, "x/").splitlines() == [
        "docs/index.md:3: one",
        f"{relative(script)}, on its page:12: two",
        "x/gone.md:1: three",
    ]


def test_a_second_build_of_the_same_clone_waits_and_says_so(project):
    with open(project.root / "_build" / "build.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "tools.compile"]
        with open(project.root / "log", "w") as log:
            second = subprocess.Popen(command, cwd=project.root, stdout=log, stderr=log)
        deadline = time.monotonic() + 600
        while "waiting for it" not in project.read("log"):
            assert time.monotonic() < deadline and second.poll() is None
            time.sleep(0.05)
    assert second.wait(timeout=600) == 0


def message_of(monkeypatch, error):
    """Return what a build prints that raises ``error``."""
    monkeypatch.setattr(one_build, "SITE", BUILD)  # Some site that is there.
    # What it changes in its process is not for the tests that follow in this one.
    monkeypatch.setattr(one_build.signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(one_build, "forget_inherited_settings", lambda: None)
    monkeypatch.setenv(one_build.MARKER, "")

    def fail():
        raise error

    monkeypatch.setattr(sys, "argv", ["compile"])
    with pytest.raises(SystemExit) as caught:
        one_build.main(fail, usage="")
    return str(caught.value)


def test_a_build_folder_that_may_not_be_written(monkeypatch):
    error = PermissionError(errno.EACCES, "Permission denied", str(BUILD / "html.new"))
    message = message_of(monkeypatch, error)
    assert message.startswith(f"\nerror: cannot write {BUILD}/html.new: Permission denied")
    assert "was not changed" in message


def test_an_environment_that_lacks_a_package(monkeypatch):
    error = ModuleNotFoundError("No module named 'sphinx'", name="sphinx")
    message = message_of(monkeypatch, error)
    assert message.startswith(f"\nerror: {sys.prefix} has no module sphinx. Remove this folder")
    assert "was not changed" in message
    error = ModuleNotFoundError("No module named 'tools.html'", name="tools.html")
    with pytest.raises(ModuleNotFoundError):
        message_of(monkeypatch, error)


@pytest.mark.skipif(
    not shutil.which("unshare")
    or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0,
    reason="this system does not let us mount a small disk",
)
@pytest.mark.parametrize("options", ["size=2m", "ro"], ids=["full", "read-only"])
def test_a_real_disk_that_is_full_or_read_only(project, options):
    project.sample("print('x' * 4_000_000)\n")
    site = project.root / "_build"
    keep = project.root / "keep"
    shutil.move(site, keep)
    site.mkdir()
    script = (
        f"mount -t tmpfs -o size=2m none {site} && mkdir {site}/html && "
        f"echo good > {site}/html/index.html && mount -o remount,{options} {site} && "
        f"ln -s {keep}/extension {site}/extension 2>/dev/null; "
        f"{sys.executable} -m tools.execute; status=$?; "
        f"cat {site}/html/index.html; exit $status"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    expected = "Read-only file system" if options == "ro" else "No space left on device"
    assert "error: " in done.stderr and expected in done.stderr
    assert done.stdout.endswith("good\n")

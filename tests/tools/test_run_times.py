"""A new page costs its own run, and no page is without the time that it takes a reader."""

import json
import signal
import subprocess
import sys
import time

import psutil

from tools.execute import run_seconds
from tools.execute.samples import page_of, samples

MEASURE = "tools.run_times"
TIMES = "gallery/run_seconds.json"


def measured(project, *page):
    """Measure; return the names of the samples that ran, and the file."""
    status, output = project.run(MEASURE, *page)
    assert status == 0, output
    ran = [line.rpartition("/")[2] for line in output.splitlines() if " s  gallery/" in line]
    return ran, json.loads(project.read(TIMES))


def test_only_what_is_new_or_has_changed_is_measured(project):
    project.sample("print('one')\n", name="one")
    two = project.sample("print('two')\n", name="two")
    one = {"seconds": 5, "code": "of other code"}
    project.write(TIMES, json.dumps({"tutorial/one": one, "tutorial/gone": {"seconds": 5}}))
    ran, times = measured(project, "tutorial/two")
    assert ran == ["two.py"] and times["tutorial/one"] == one and "tutorial/gone" not in times
    assert times["compile dummy_collectives"].keys() == {"seconds"}, "that of its last run"
    assert project.read(TIMES).count("\n") == len(times) + 2, "a line for each, for short diffs"
    assert measured(project)[0] == ["one.py"]
    two.write_text(two.read_text().replace("A text.", "Another text.") + "# A comment.\n")
    assert measured(project)[0] == []
    two.write_text(two.read_text() + "print('more')\n")
    assert measured(project)[0] == ["two.py"]
    assert "tutorial/three is no page of a sample" in project.fail(MEASURE, "tutorial/three")


def test_a_page_without_a_time_is_found(monkeypatch):
    assert run_seconds.findings() == []
    script = samples()[0]
    entries = {name: x for name, x in run_seconds.entries().items() if name != page_of(script)}
    monkeypatch.setattr(run_seconds, "entries", lambda: entries)
    [finding] = run_seconds.findings()
    assert f"gallery/{script.parent.name}/{script.name}: has no time" in finding
    assert "make run-times" in finding


def test_a_build_waits_for_it_and_ends_what_a_killed_one_has_left(project):
    code = "import os, time\nopen('pid.new', 'w').write(str(os.getpid()))\n"
    code += "os.rename('pid.new', 'pid')\ntime.sleep(100)\n"
    project.sample(f"import warnings\nwarnings.simplefilter('ignore')\n{code}")
    measuring = subprocess.Popen([sys.executable, "-m", MEASURE], cwd=project.root)
    try:
        wait_for(lambda: (project.root / "gallery/tutorial/pid").exists(), measuring)
        sample = psutil.Process(int(project.read("gallery/tutorial/pid")))
        with open(project.root / "log", "w") as log:
            command = [sys.executable, "-m", "tools.compile"]
            build = subprocess.Popen(command, cwd=project.root, stdout=log, stderr=log)
        wait_for(lambda: "waiting for it" in project.read("log"), build)
    finally:
        measuring.send_signal(signal.SIGKILL)
        measuring.wait()
    assert build.wait(timeout=600) == 0, project.read("log")
    assert not sample.is_running()


def wait_for(is_so, process):
    deadline = time.monotonic() + 600
    while not is_so():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)

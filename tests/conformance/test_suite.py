"""The suite itself: its command line, its verdicts, its report, and what it says of bad ranks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from c10d_conformance import registry, stacks, verdicts
from c10d_conformance.cli import ERROR, main
from c10d_conformance.verdicts import (
    ABSENT,
    CRASH,
    HANG,
    RAISED,
    REFUSED,
    RIGHT,
    WRONG,
    Status,
    is_clear,
    judge,
    worst,
)

FOLDER = Path(registry.__file__).parents[1]


def start(backend, *arguments, **options):
    """Run the command line in a process of its own and return how it ended."""
    command = [sys.executable, "-m", "c10d_conformance", "--backend", backend, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, **options)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "--backend is missing"),
        (["--backend", "nothing"], "no backend is called 'nothing'"),
        (["--backend", "gloo", "--import", "no_such_module"], "No module named 'no_such_module'"),
        (["--backend", "gloo", "--ranks", "two"], "--ranks two: give numbers"),
        (["--backend", "gloo", "--ranks", "0"], "--ranks 0: give numbers"),
        (["--backend", "gloo", "--ranks", ""], "give numbers"),
        (["--backend", "gloo", "--report", "/no/folder/r.json"], "--report /no/folder/r.json can"),
        (["--backend", "gloo", "--junit", "/no/folder/r.xml"], "--junit /no/folder/r.xml cannot"),
        (["--backend", "gloo", "--skips", "/no/file"], "--skips /no/file cannot be read"),
        (["--backend", "gloo", "--claims", "/no/file"], "--claims /no/file cannot be read"),
        (["--backend", "gloo", "--add-claims", "/no/folder/c"], "--add-claims /no/folder/c cannot"),
        (["--backend", "gloo", "--limit", "0"], "--limit must be more than 0"),
        (["--backend", "gloo", "--examples", "0"], "--examples 0: give a number from 1 on"),
        (["--backend", "gloo", "--device", "moon"], "--device moon"),
        (["--backend", "gloo", "--hosts", "0"], "--hosts 0: give a number from 1 to 64"),
        (["--backend", "gloo", "--hosts", "65"], "--hosts 65: give a number from 1 to 64"),
        (["--backend", "gloo", "--blocking-wait"], "--blocking-wait is for an accelerator"),
    ],
)
def test_a_wrong_call_is_one_message(arguments, text, capfd):
    assert main(arguments) == ERROR
    output, error = capfd.readouterr()
    assert text in error and "Traceback" not in error + output
    assert error.startswith("c10d-conformance: ")


@pytest.mark.parametrize(
    ("expression", "text"),
    [("no_such_check", "no check matches"), ("and and", "is no expression")],
)
def test_a_wrong_expression_is_one_message(expression, text):
    done = start("gloo", "-k", expression)
    assert done.returncode == ERROR
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("c10d-conformance: ") and text in last


def test_an_author_s_own_pytest_changes_nothing(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text("raise ValueError('not for ranks')\n")
    environment = {**os.environ, "PYTEST_ADDOPTS": "-v --no-header", "PYTEST_PLUGINS": "xdist"}
    arguments = ["--ranks", "2", "-k", "registered"]
    done = start("gloo", *arguments, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr


def test_a_skips_file_needs_reasons(tmp_path, capfd):
    path = tmp_path / "skips"
    path.write_text("# comment\nvalues.*\n")
    assert main(["--backend", "gloo", "--skips", str(path)]) == ERROR
    assert "line 2: a reason is missing" in capfd.readouterr().err


def test_a_module_that_ends_the_process_is_one_message(tmp_path, monkeypatch, capfd):
    (tmp_path / "ends_at_once.py").write_text("import os\nos._exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["--backend", "gloo", "--import", "ends_at_once"]) == ERROR
    assert "importing ends_at_once ended the process" in capfd.readouterr().err


def test_list_shows_promises_and_sources(capsys):
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("values.all_reduce_types  [all_reduce]") for line in lines)
    assert len(lines) == 3 * len(registry.load())


def test_checks_are_complete():
    checks = registry.load()
    assert len({check.id for check in checks}) == len(checks)
    assert {check.capability for check in checks} == set(registry.CAPABILITIES)
    quick = {check.capability for check in checks if check.quick}
    assert quick == set(registry.CAPABILITIES), "--quick covers every capability"
    for check in checks:
        assert check.promise.endswith(".") and check.source


def test_it_runs_from_its_folder(tmp_path):
    copy = tmp_path / "c10d_conformance"
    subprocess.run(["cp", "-r", FOLDER / "c10d_conformance", copy], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    arguments = ["--ranks", "2", "-k", "barrier_waits", "--report", "r.json"]
    done = start("gloo", *arguments, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["counts"]["right"] > 0


@pytest.mark.parametrize(
    ("kinds", "verdict"),
    [
        ([RIGHT, RIGHT], RIGHT),
        ([RIGHT, ABSENT], RIGHT),
        ([RAISED, RAISED], REFUSED),
        ([RAISED, ABSENT], REFUSED),
        ([RAISED, RIGHT], WRONG),
        ([RAISED, HANG], HANG),
        ([RIGHT, WRONG], WRONG),
        ([CRASH, HANG], CRASH),
        ([RAISED, CRASH], CRASH),
    ],
)
def test_the_verdict_of_a_case(kinds, verdict):
    statuses = [Status(kind, "Backend mine does not support reduce") for kind in kinds]
    assert judge("a case", statuses, "mine", "reduce").verdict == verdict


def test_a_hang_begins_with_the_rank_that_raised():
    statuses = [Status(HANG, "does not return"), Status(RAISED, "ValueError: no float16")]
    text = judge("a case", statuses, "mine", "reduce").text
    assert text == "rank 1 raises, and another does not return: ValueError: no float16"


@pytest.mark.parametrize(
    ("text", "clear"),
    [
        ("Backend mine does not support broadcast", True),
        ("allreduce: only float", True),
        ("Invalid scalar type", True),
        ("", False),
        ("   ", False),
        ("oops", False),
        ("INTERNAL ASSERT FAILED: all_reduce; please report a bug to PyTorch", False),
    ],
)
def test_a_refusal_says_what_is_refused(text, clear):
    assert is_clear(text, "mine", "all_reduce") is clear


def test_the_worst_verdict_counts():
    assert worst([RIGHT, REFUSED]) == RIGHT
    assert worst([REFUSED, REFUSED]) == REFUSED
    assert worst([RIGHT, HANG, WRONG]) == HANG


def test_stacks_have_the_frames_of_the_backend_only():
    text = """Fatal Python error: Aborted

Current thread 0x00007f (most recent call first):
  File "mine.py", line 3 in hang
  File "rank.py", line 62 in case
  File "pool.py", line 1 in _serve
SIGABRT(6), PID: 1, Thread 1:
 frame #0: c10::FatalSignalHandler::x() + 0x8f (0x7f in /lib/libc10.so)
frame #1: my::Backend::wait() + 0x5b (0x7f in /lib/libmine.so)
frame #2: <unknown function> + 0x3c6 (0x7f in /lib/python3.11/mine/_for_torch.cpython-311.so)
frame #3: <unknown function> + 0x89 (0x7f in /lib/libc.so.6)
frame #4: <unknown function> + 0x1a (0x7f in /usr/bin/python3.11)
frame #5: <unknown function> + 0x2b (0x7f in /lib/python3.11/torch/lib/libtorch_python.so)
"""
    lines = stacks.shorten(text).splitlines()
    assert "mine.py" in "".join(lines) and "rank.py" not in "".join(lines)
    assert [line.strip() for line in lines[-2:]] == [
        "my::Backend::wait() (libmine.so)",
        "<unknown function> + 0x3c6 (_for_torch.cpython-311.so)",  # for addr2line
    ]
    assert "Fatal" not in lines[0], lines


def test_threads_with_the_same_frames_are_shown_once():
    thread = "SIGABRT(6), PID: 1, Thread 1:\nframe #0: sim::serve() + 0x5b (0x7f in /lib/sim.so)\n"
    assert stacks.shorten(2 * thread) == "SIGABRT(6), 2 threads:\n  sim::serve() (sim.so)"


def test_texts_do_not_depend_on_the_run():
    text = "peer [127.0.0.1]:45678 at 0x7fff, pid 123, /tmp/c10d-x/store"
    assert verdicts.stable(text) == "peer [127.0.0.1]:… at 0x…, pid …, /tmp/…"


def test_an_error_of_the_suite_itself_is_no_success():
    program = """
import sys
from c10d_conformance import cli, pool

def run(*arguments):
    raise KeyError("nothing of the backend")

pool.Pool.run = run
sys.exit(cli.main(["--backend", "gloo", "--ranks", "2", "-k", "registered"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == ERROR
    text = "an error of the suite itself, in lifecycle.registered[2]: KeyError: 'nothing of the"
    assert text in done.stderr


def run(tmp_path, monkeypatch, *arguments, defect="", status=1):
    """Run the suite on the defective backend and return its report and its output."""
    monkeypatch.setenv("C10D_DEFECT", defect)
    report = tmp_path / "report.json"
    options = ["--import", "defective", "--ranks", "2", "--limit", "3", "--report", str(report)]
    done = start("defective", *options, *arguments)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(report.read_text()), done.stdout


def test_a_hang_is_reported_with_stacks(tmp_path, monkeypatch):
    report, output = run(
        tmp_path, monkeypatch, "-k", "all_reduce_layouts", defect="an_empty_tensor_hangs"
    )
    failure = next(x for x in report["checks"][0]["failures"] if x["verdict"] == HANG)
    assert failure["case"] == "all_reduce float32 SUM shape 0 contiguous sync"
    assert failure["ranks"] == ["hang: does not return"] * 2
    assert "defective.py" in failure["stacks"] and "rank 1" in failure["stacks"]
    assert "HANG: all_reduce float32 SUM shape 0 contiguous sync" in output


def test_a_crash_does_not_spoil_what_follows(tmp_path, monkeypatch):
    arguments = ["-k", "too_few_outputs or works_after_a_refusal or too_small"]
    report, _ = run(tmp_path, monkeypatch, *arguments, defect="a_wrong_argument_crashes")
    verdict = {check["id"]: check["verdict"] for check in report["checks"]}
    assert verdict["failure.too_few_outputs"] == CRASH
    assert verdict["failure.too_small_an_output"] == RIGHT
    failure = report["checks"][0]["failures"][0]
    assert "ended by SIGSEGV" in "".join(failure["ranks"]) and "defective.py" in failure["stacks"]


def test_a_crash_does_not_end_the_cases_of_its_check(tmp_path, monkeypatch):
    report, _ = run(
        tmp_path, monkeypatch, "-k", "broadcast_layouts", defect="an_empty_tensor_crashes"
    )
    counts = report["checks"][0]["counts"]
    assert counts[CRASH] >= 2 and counts[RIGHT] > 10


def test_refusals_are_no_failures(tmp_path, monkeypatch):
    report, output = run(tmp_path, monkeypatch, "-k", "premultiplied", status=1)
    assert report["counts"] == {"right": 0, "refused": 5, "wrong": 0, "crash": 0, "hang": 0}
    assert "Not one case was right." in output


def test_the_report_is_the_same_each_time(tmp_path, monkeypatch):
    def without_seconds(value):
        if isinstance(value, dict):
            return {k: without_seconds(v) for k, v in value.items() if k != "seconds"}
        return [without_seconds(x) for x in value] if isinstance(value, list) else value

    arguments = ["-k", "broadcast_types or barrier_waits"]
    reports = [run(tmp_path, monkeypatch, *arguments, status=0)[0] for _ in range(2)]
    assert without_seconds(reports[0]) == without_seconds(reports[1])
    row = reports[0]["capabilities"][0]
    assert row["id"] == "broadcast" and set(row["counts"]) == set(verdicts.VERDICTS)


def test_junit_and_skips(tmp_path, monkeypatch):
    skips = tmp_path / "skips"
    skips.write_text("values.scatter_t*: the reason\n")
    junit = tmp_path / "junit.xml"
    arguments = ["-k", "broadcast_types or scatter_types and not reduce"]
    arguments += ["--skips", str(skips), "--junit", str(junit)]
    report, output = run(tmp_path, monkeypatch, *arguments, status=0)
    assert "skipped: the reason: values.scatter_types" in output
    cases = ElementTree.parse(junit).getroot().findall(".//testcase")
    assert len(cases) == 2 and cases[1].find("skipped").get("message") == "the reason"
    names = {x.get("name") for x in cases[0].findall(".//property")}
    assert {"capability", "promise", "source", "verdict right"} <= names


def test_claims_are_noted_and_held(tmp_path, monkeypatch):
    claims = tmp_path / "claims.txt"
    claims.write_text("lifecycle.registered: 1\n")
    arguments = ["-k", "works.callbacks", "--add-claims", str(claims)]
    _, output = run(tmp_path, monkeypatch, *arguments, status=0)
    assert f"{claims}: not claimed: 0 refused cases, 0 checks that fail" in output
    noted = claims.read_text()
    cases = int(re.search(r"works.callbacks: (\d+)", noted)[1])
    assert cases > 1 and noted.startswith("lifecycle.registered: 1\n")

    _, output = run(tmp_path, monkeypatch, "--claims", str(claims), status=0)
    assert "claimed" not in output and "0 of 2 checks fail" in output
    arguments = ["-k", "lifecycle.registered", "--claims", str(claims)]
    _, output = run(tmp_path, monkeypatch, *arguments, status=0)
    assert "claimed" not in output and "0 of 1 checks fail" in output
    more = noted.replace(f"callbacks: {cases}", f"callbacks: {cases + 1}")
    claims.write_text(more)
    report, output = run(tmp_path, monkeypatch, "--claims", str(claims))
    assert f"works.callbacks: {cases + 1} cases claimed, {cases} right" in output
    assert report["unkept_claims"][0]["right"] == cases


def test_claims_of_checks_that_fail_or_are_not_there(tmp_path, monkeypatch, capfd):
    claims = tmp_path / "claims.txt"
    arguments = ["-k", "scatter_types", "--add-claims", str(claims)]
    _, output = run(tmp_path, monkeypatch, *arguments, defect="scatter_is_rotated")
    assert "rank 1: wrong: " in output  # it has another element than rank 0
    assert re.search(r"not claimed: \d+ refused cases, 2 checks that fail", output)
    assert "values.scatter_types" not in claims.read_text()
    claims.write_text("values.scatter_types: 1\n")
    arguments = ["--claims", str(claims)]
    _, output = run(tmp_path, monkeypatch, *arguments, defect="scatter_is_rotated")
    assert "values.scatter_types: 1 cases claimed, but one fails" in output
    for line, text in (
        ("a.b: 1", "the suite has no check a.b"),
        ("works.callbacks", "give the number"),
    ):
        claims.write_text(f"# a comment\n{line}\n")
        assert main(["--backend", "gloo", "--claims", str(claims)]) == ERROR
        assert f"claims.txt, line 2: {text}" in capfd.readouterr().err

"""Stage "execute": run each gallery script once and turn it into a page.

Each script runs in a process of its own, under sphinx-gallery, with a time limit.
A script is run again when its own text, the files of gallery/ that it names, the
extension, or the versions of PyTorch, Python and the compiler have changed.

A script may say, in a comment, ``expected stderr: <regular expression>`` and
``time limit: <seconds>``.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from .compile import compile_extension, extension_key, versions
from .digest import digest
from .errors import BuildError, readable
from .paths import (
    AUTO_GALLERY,
    EXECUTED,
    INSTALLED_EXTENSION,
    LOGS,
    ROOT,
    VERSIONS,
    relative,
)
from .processes import run
from .samples import samples, used_files

DEFAULT_TIME_LIMIT = 120  # seconds
# What a stack shows of sphinx-gallery and of Python itself tells a reader nothing.
NOISE = re.compile(
    r"\s*(File .*(/sphinx_gallery/|/sphinx/|tools/run_sample|<frozen runpy>)|"
    r"Extension modules: )"
)
# A change of what makes the pages is a change of the pages.
MACHINERY = [ROOT / "tools" / f"{name}.py" for name in ("execute", "run_sample")]


def execute():
    """Run the samples that have changed; return how many ran and how many are."""
    compile_extension()
    shared = digest(
        MACHINERY,
        extension_key(),
        (ROOT / "requirements/execute.txt").read_text(),
    )
    keys = {s: digest([s, *used_files(s)], shared) for s in samples()}
    stale = [script for script, key in keys.items() if not _is_current(script, key)]
    _remove_pages_without_script()
    VERSIONS.unlink(missing_ok=True)
    failures = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        running = {pool.submit(_execute_one, s, keys[s]): s for s in _longest_first(stale)}
        for future in as_completed(running):
            try:
                future.result()
                print(f"    executed {relative(running[future])}", flush=True)
            except BuildError as error:
                failures.append(str(error))
    if failures:
        raise BuildError("\n\n".join(sorted(failures)))
    # All pages that there are were now made with these: they are part of each key.
    EXECUTED.mkdir(parents=True, exist_ok=True)
    VERSIONS.write_text(json.dumps(versions(), indent=1) + "\n")
    return len(stale), len(keys)


def measured_seconds(script):
    """How long the last execution of a script took, or None."""
    file = _seconds_file(script)
    return float(file.read_text()) if file.is_file() else None


def _page(script):
    return AUTO_GALLERY / f"{script.stem}.rst"


def _key_file(script):
    return EXECUTED / f"{script.stem}.key"


def _seconds_file(script):
    return EXECUTED / f"{script.stem}.seconds"


def _is_current(script, key):
    key_file = _key_file(script)
    made = key_file.is_file() and _page(script).is_file()
    return made and key_file.read_text() == key


def _remove_pages_without_script():
    expected = {_page(script) for script in samples()}
    if AUTO_GALLERY.is_dir():
        for path in set(AUTO_GALLERY.iterdir()) - expected:
            path.unlink()


def _longest_first(scripts):
    """So that no long one is left over in the end, with one core idle."""
    return sorted(scripts, key=lambda script: -_time_limit(script.read_text()))


def _time_limit(text):
    declared = re.search(r"# time limit: (\d+)", text)
    return int(declared[1]) if declared else DEFAULT_TIME_LIMIT


def _execute_one(script, key):
    _key_file(script).unlink(missing_ok=True)
    work = EXECUTED / script.stem
    shutil.rmtree(work, ignore_errors=True)
    (work / "docs").mkdir(parents=True)

    text = script.read_text()
    limit = _time_limit(text)
    log = LOGS / f"{script.stem}.log"
    command = [sys.executable, "-X", "faulthandler", "-m", "tools.run_sample"]
    command += [script, work]
    environment = {
        "PYTHONPATH": os.pathsep.join([str(INSTALLED_EXTENSION), str(ROOT)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
    }
    # Not in the work folder: sockets have to have short paths.
    with tempfile.TemporaryDirectory(
        prefix="sample-", ignore_cleanup_errors=True
    ) as temporary:
        environment["TMPDIR"] = temporary
        started = time.monotonic()
        done = run(command, timeout=limit, log=log, env=environment)
        seconds = time.monotonic() - started

    name, details = relative(script), _clean(done.text, work)
    hint = f"The whole output: {relative(log)} and {relative(log)}.stderr"
    if done.timed_out:
        raise BuildError(
            f"{name}: still running after {limit} s\n{_tail(details)}\n{hint}"
        )
    if done.status != 0:
        how = f"signal {-done.status}" if done.status < 0 else f"status {done.status}"
        raise BuildError(f"{name}: failed ({how})\n{_tail(details)}\n{hint}")
    expected = re.search(r"# expected stderr: (.+)", text)
    unexpected = [
        line
        for line in _clean(done.stderr, work).splitlines()
        if line.strip() and not (expected and re.search(expected[1], line))
    ]
    if unexpected:
        lines = "\n".join(unexpected)
        raise BuildError(f"{name}: unexpected output on stderr\n{_tail(lines)}\n{hint}")

    generated = work / "docs" / "auto_gallery" / f"{script.stem}.rst"
    if not generated.is_file():
        raise BuildError(f"{name}: ended the process before its last line\n{hint}")
    AUTO_GALLERY.mkdir(parents=True, exist_ok=True)
    _page(script).write_text(_strip_page(generated.read_text()))
    shutil.rmtree(work)
    _seconds_file(script).write_text(f"{seconds:.1f}\n")
    _key_file(script).write_text(key)


def _clean(text, work):
    """Make output readable; paths in the work folder count from there."""
    return readable(text.replace(f"{work}/", ""))


def _tail(text, lines=40):
    kept = [line for line in text.rstrip().splitlines() if not NOISE.match(line)]
    return "\n".join("    " + line for line in kept[-lines:])


def _strip_page(text):
    """Keep what the script says and prints; drop what sphinx-gallery adds.

    Its header and footer speak of files that would not run on their own, and its
    comments hold line numbers.
    """
    start = text.index(".. _sphx_glr_auto_gallery_")
    end = text.index(".. _sphx_glr_download_auto_gallery_")
    body = re.sub(r"^\.\. GENERATED FROM PYTHON .*\n\n", "", text[start:end], flags=re.M)
    return f"{body.rstrip()}\n"

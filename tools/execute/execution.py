"""Stage "execute": run each gallery script once and turn it into a page.

Samples that do not use the extension run while it is being compiled.

Each script runs in a process of its own, under sphinx-gallery, with a time limit. It must show
what was committed (expected_outputs.py). It runs again after a change of its own text, of the
files that it may use, of its committed output, of the extension (if it uses that), or of the
versions of PyTorch, Python and the compiler.

A script may say, in a comment, ``expected stderr: <regular expression>``,
``time limit: <seconds>``, and ``every rank starts an interpreter of its own``. The
ranks of other scripts are forked from a process that has already imported PyTorch, because
the import would take nearly all of their time.
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..compile.compilation import compile_extension
from ..compile.extensions import EXTENSIONS, Extension
from ..compile.toolchain import toolchain, versions
from ..processes import fork_server
from ..processes.one_build import stage
from ..processes.progress import note, progress
from ..processes.run import WITHOUT_CUDA, run
from ..project.errors import BuildError, readable
from ..project.paths import (
    BUILD,
    EXECUTED,
    FRAME,
    GALLERY,
    INSTALLED_EXTENSIONS,
    LOGS,
    ROOT,
    VERSIONS,
    relative,
)
from ..project.releases import current, pins
from ..state.digests import digest, files_below, generated_pages
from ..state.records import Record
from ..state.runs import Run
from . import expected_outputs, run_seconds
from .samples import blocks_of, extensions_of, files_of, frame_of, page_of, samples, source_of

DEFAULT_TIME_LIMIT = 300  # seconds; beside other work, all takes longer
OWN_INTERPRETERS = re.compile("^# every rank starts an interpreter of its own$", re.M)
# What a stack shows of sphinx-gallery and of Python itself tells a reader nothing.
NOISE = re.compile(
    r"\s*(File .*(/sphinx_gallery/|/sphinx/|tools/(execute|processes)/|<frozen runpy>)|"
    r"Extension modules: )"
)
# A change of what makes the pages is a change of the pages.
MACHINERY = [*files_below(Path(__file__).parent), Path(fork_server.__file__)]
# What takes long to import, in a sample or in its ranks.
LOADED_ONCE = ["sphinx_gallery.gen_gallery", "sphinx.builders.dummy", "psutil"]
LOADED_ONCE += ["torch.distributed.run", "torch.distributed.rpc"]


@stage("execute")
def execute() -> tuple[int, int]:
    """Run the samples that have changed; return how many ran and how many there are."""
    keys = _keys()
    stale = [script for script, key in keys.items() if not _is_current(script, key)]
    _remove_pages_without_script()
    VERSIONS.unlink(missing_ok=True)
    failures, at_a_time = [], os.cpu_count() or 1
    ended: list[Path] = []
    compiling: dict[Future[bool], Extension] = {}
    running: dict[Future[Any], Path | None] = {}

    def describe() -> str:
        now = [x.name for task, x in list(compiling.items()) if task.running()]
        now += [page_of(x) for task, x in list(running.items()) if x and task.running()]
        return f"{len(ended)} of {len(stale)} samples executed; now {', '.join(now)}"

    with (
        progress(describe),
        ThreadPoolExecutor(at_a_time) as pool,
        _fork_server(stale) as server,
    ):
        compiling |= {pool.submit(compile_extension, x): x for x in EXTENSIONS}
        running |= dict.fromkeys(compiling)
        waiting = _longest_first(stale)
        needed = {script: extensions_of(script) for script in stale}
        missing = set(EXTENSIONS)
        while running or waiting:
            for script in [s for s in waiting if missing.isdisjoint(needed[s])]:
                if len(running) < at_a_time:
                    waiting.remove(script)
                    task = pool.submit(_execute_one, script, keys[script], server)
                    running[task] = script
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for task in done:
                script = running.pop(task)
                if script:
                    ended.append(script)
                try:
                    task.result()
                    if task in compiling:
                        missing.discard(compiling[task])
                    if script:
                        count = f"{len(ended)} of {len(stale)}"
                        note(f"    executed {relative(script)} ({count})")
                except BuildError as error:
                    failures.append(str(error))
                    if task in compiling:
                        waiting = []
    if failures:
        raise BuildError("\n\n".join(sorted(failures)))
    # All pages that there are were now made with these: they are part of each key.
    EXECUTED.mkdir(parents=True, exist_ok=True)
    VERSIONS.write_text(json.dumps(versions(), indent=1) + "\n")
    print(f"    {len(stale)} of {len(keys)} samples executed, the others have not changed")
    return len(stale), len(keys)


def _keys():
    """Return for each sample a digest of all that its page depends on."""
    requirements = [ROOT / "requirements/execute.txt", pins(current())]
    shared = digest([*MACHINERY, *requirements], *toolchain())
    of_extension = {extension: extension.key() for extension in EXTENSIONS}
    keys = {}
    for script in samples():
        files = [*files_of(script), *frame_of(script), *expected_outputs.accepted(script)]
        compiled = [of_extension[extension] for extension in extensions_of(script)]
        keys[script] = digest(files, shared, *compiled)
    return keys


def run_of(script):
    """Return the run of a sample, with all that it executes and what it was compared with."""
    loaded = [x for extension in extensions_of(script) for x in extension.loaded_sources()]
    return Run(
        "sample",
        Record(EXECUTED / f"{page_of(script)}.json", of_tools=False),
        (*files_of(script), *frame_of(script), *loaded, *expected_outputs.accepted(script)),
        page=page_of(script),
    )


def _is_current(script, key):
    return run_of(script).record.is_made(key, [source_of(script)])


def _remove_pages_without_script():
    expected = {source_of(script) for script in samples()}
    for path in set(generated_pages()) - expected:
        path.unlink()


def _longest_first(scripts):
    """Sort samples, the longest first: no long one then runs alone, with a core idle."""
    seconds = run_seconds.by_name()
    return sorted(scripts, key=lambda script: -seconds.get(page_of(script), math.inf))


def _time_limit(text):
    declared = re.search(r"# time limit: (\d+)", text)
    return int(declared[1]) if declared else DEFAULT_TIME_LIMIT


@contextmanager
def _fork_server(stale):
    """Yield the address of a fork server, if there is anything to run."""
    if not stale:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="fork-") as folder:
        environment = {**os.environ, **_environment()}
        with fork_server.running(folder, modules=LOADED_ONCE, env=environment) as address:
            yield address


def _environment(*modules):
    """Return the variables for a process that also imports from the folders ``modules``."""
    return {
        "PYTHONPATH": os.pathsep.join(str(folder) for folder in (*modules, GALLERY, ROOT)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(BUILD / "cache"),  # of the simulator
        "OMP_NUM_THREADS": "1",
        # The simulated accelerator lies beside the other extensions; samples ask for it.
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        # Pages are the same from every machine, whatever its CPU can do.
        **WITHOUT_CUDA,
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
    }


def _execute_one(script, key, server):
    last_run, page = run_of(script), source_of(script)
    last_run.record.forget()
    expected_outputs.last_run(script).unlink(missing_ok=True)  # It is not this code's.
    with last_run.recorded(key, lambda: [page]):
        text = run_sample(script, EXECUTED / page_of(script), server=server)
        expected_outputs.compare(script, text)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)


def run_sample(script, work, *, server=None):
    """Run a script in the folder ``work``; return the text of its page.

    With the address of a fork ``server``, the script and its ranks are forked there. Removes
    the folder after a success; otherwise raises BuildError.
    """
    shutil.rmtree(work, ignore_errors=True)
    (work / "docs").mkdir(parents=True)
    blocks_of(script)  # Or else sphinx-gallery says what it lacks, below its own stack.
    text = script.read_text()
    limit = _time_limit(text)
    log = LOGS / f"{page_of(script).replace('/', '-')}.log"
    command = [sys.executable, "-X", "faulthandler", "-m", "tools.execute.inside_sample"]
    command += [script, work]
    # Others run while the extension is being compiled, and must not see half of it.
    modules = [INSTALLED_EXTENSIONS] if extensions_of(script) else []
    modules += [FRAME] if frame_of(script) else []
    environment = _environment(*modules)
    popen: Callable[..., Any] = subprocess.Popen
    if server:
        popen = partial(fork_server.popen, address=server)
        if not OWN_INTERPRETERS.search(text):
            environment[fork_server.ADDRESS] = server
    # Not in the work folder: sockets need short paths.
    with tempfile.TemporaryDirectory(prefix="sample-", ignore_cleanup_errors=True) as temporary:
        environment["TMPDIR"] = temporary
        done = run(command, timeout=limit, log=log, env=environment, popen=popen)

    name, details = relative(script), _clean(done.text, work)
    hint = f"The whole output: {relative(log)} and {relative(log)}.stderr"
    if done.timed_out:
        raise BuildError(f"{name}: still running after {limit} s\n{_tail(details)}\n{hint}")
    if done.status:
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
    if done.stdout.strip():  # Python's own output is captured for the page.
        raise BuildError(
            f"{name}: a child process, C code or a thread that outlived the sample printed this, "
            f"which is not on the page:\n{_tail(_clean(done.stdout, work))}\n"
            "Capture it, for example with subprocess.run(..., capture_output=True, text=True), "
            f"and print it.\n{hint}"
        )

    generated = work / "docs" / "page" / f"{script.stem}.rst"
    if not generated.is_file():
        raise BuildError(f"{name}: ended the process before its last line\n{hint}")
    page = _strip_page(generated.read_text())
    shutil.rmtree(work)
    return page


def _clean(text, work):
    """Make output readable; shorten paths in the work folder."""
    return readable(text.replace(f"{work}/", ""))


def _tail(text, lines=40):
    kept = [line for line in text.rstrip().splitlines() if not NOISE.match(line)]
    return "\n".join("    " + line for line in kept[-lines:])


def _strip_page(text):
    """Keep the text and output of the script; remove what sphinx-gallery adds.

    Its header and footer offer files that would not run on their own, and its comments
    contain line numbers.
    """
    start = text.index(".. _sphx_glr_page_")
    end = text.index(".. _sphx_glr_download_page_")
    body = re.sub(r"^\.\. GENERATED FROM PYTHON .*\n\n", "", text[start:end], flags=re.M)
    return f"{body.rstrip()}\n"

"""A sample that fails in any way fails the build, with a message that names the place.

Starting a build takes longest, as it imports PyTorch: the samples of a kind share one.
"""

import re
import subprocess
from pathlib import Path

import pytest

BUILD = ["tools.execute"]
IGNORE, END = "# sphinx_gallery_start_ignore\n", "# sphinx_gallery_end_ignore\n"

# -- Samples that fail ---------------------------------------------------------------

BROKEN = {
    "a_hang": "# time limit: 8\nimport time\ntime.sleep(3600)",
    "assertion": "print(1)\n\nassert 1 == 2, 'not equal'",
    "warning": "import warnings\nwarnings.warn('old')",
    "exit": "import sys\nsys.exit(3)",
    "at_once": "import os\nos._exit(0)",
    "stderr": "import os\nos.write(2, b'C++ speaks')",
    "stderr_of_python": "import sys\nsys.stderr.write('Python speaks')",
    "stderr_of_a_child": "import subprocess\nsubprocess.run(['sh', '-c', 'echo child >&2'])",
    "logging": "import logging\nlogging.warning('of logging')",
    "thread": "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()",
    "late_thread": "import threading\n"
    "threading.Thread(target=lambda: [threading.main_thread().join(), print('late')]).start()",
    "child": "import subprocess\nsubprocess.run(['echo', 'from a child'])",
    "forked": "import multiprocessing\nmultiprocessing.set_start_method('fork')\n"
    "p = multiprocessing.Process(target=print, args=['from a fork'])\np.start()\np.join()",
    "puts": "import ctypes\nctypes.CDLL(None).puts(b'from C')\nprint('from Python')",
    "descriptor": "import os\nos.write(1, b'one\\ntwo\\n')",
    "segfault": "import ctypes\nctypes.string_at(0)",
    "syntax": "print(",
    "rank": "from launcher import launch\nlaunch('rank/bad.py', ranks=2)",
}


@pytest.fixture(scope="module")
def messages(lasting_project):
    """Run the broken samples; return the message of each, by its name."""
    for name, code in BROKEN.items():
        lasting_project.sample(code + "\n", name=name)
    lasting_project.write("gallery/tutorial/untitled.py", "print(1)\n")
    bad = "import os\nassert os.environ['RANK'] == '0'\n"
    lasting_project.write("gallery/tutorial/rank/bad.py", bad)
    # No option of the shell takes the assertions out of samples.
    output = lasting_project.fail(*BUILD, PYTHONOPTIMIZE="1")
    assert not list(lasting_project.root.glob("_build/execute/tutorial/*.rst"))
    name, *others = re.split(r"^(?:error: )?gallery/tutorial/(\w+)\.py: ", output, flags=re.M)
    return dict(zip(others[::2], others[1::2], strict=True))


@pytest.mark.parametrize(
    "name, expected",
    [
        ("a_hang", "still running after 8 s"),
        ("a_hang", 'gallery/tutorial/a_hang.py", line 10'),
        ("assertion", "line 10, in <module>"),
        ("assertion", "not equal"),
        ("warning", "UserWarning: old"),
        ("exit", "SystemExit: 3"),
        ("at_once", "ended the process before its last line"),
        ("stderr", "unexpected output on stderr"),
        ("stderr_of_python", "unexpected output on stderr\n    Python speaks\n"),
        ("stderr_of_a_child", "unexpected output on stderr\n    child\n"),
        ("logging", "unexpected output on stderr\n    WARNING:root:of logging\n"),
        ("thread", "ZeroDivisionError: division by zero"),
        ("child", "a child process, C code or a thread that outlived the sample printed this, "),
        ("child", "    from a child\nCapture it, for example with subprocess.run("),
        ("forked", "which is not on the page:\n    from a fork\n"),
        ("late_thread", "which is not on the page:\n    late\n"),
        ("puts", "which is not on the page:\n    from C\n"),
        ("descriptor", "which is not on the page:\n    one\n    two\n"),
        ("segfault", "failed (signal 11)"),
        ("syntax", "SyntaxError"),
        ("rank", "rank/bad.py: rank 1 of 2: ended with exit status 1"),
    ],
)
def test_a_broken_sample_fails_the_build(messages, name, expected):
    assert expected in messages[name]
    assert "sphinx_gallery" not in messages[name], "only our own part of the stack"


def test_a_script_that_cannot_be_read_gets_the_reason_alone(messages):
    assert messages["untitled"].startswith(
        'begins with no docstring: write """ on the first line, then a title\n'
    )
    reason, _ = messages["syntax"].split("The whole output")
    assert re.fullmatch(
        r'failed \(status 1\)\n {6}File "gallery/tutorial/syntax.py", line \d+\n'
        r" {8}.+\n +\^\n {4}SyntaxError: .+\n",
        reason,
    ), reason


# -- Samples that pass ---------------------------------------------------------------

GOOD = {
    "hidden": f"print(6 * 7)\n{IGNORE}assert 6 * 7 == 42\n{END}",
    "stderr": "# expected stderr: C.. speaks\nimport os\nos.write(2, b'C++ speaks')\n",
    "one": "import sys\nsys.marked = True\nprint('first')\n",
    "other": "import sys\nprint(hasattr(sys, 'marked'))\n",
    "temporary": "import tempfile\nwith open('where', 'w') as file:\n"
    "    file.write(tempfile.mkdtemp())\n",
    # Variables of a cluster's job, of a debugging session, of a git hook.
    "shell": "import os, torch\nfrom launcher import launch\nlaunch('shell/own.py', ranks=2)\n"
    "print(sorted({'GIT_DIR', 'PET_NNODES', 'PYTHONDEVMODE', 'RANK'} & set(os.environ)))\n",
    # A build of PyTorch for CUDA warns of an old driver, and a warning would fail the sample.
    "driver": "import torch\nimport torch.utils.cpp_extension\nprint(torch.cuda.is_available())\n"
    "print(torch.accelerator.current_accelerator(check_available=True))\n",
}
SHELL = {"RANK": "3", "WORLD_SIZE": "7", "MASTER_PORT": "1", "PET_NNODES": "2"}
SHELL |= {"TORCH_DISTRIBUTED_DEBUG": "DETAIL", "TORCH_CPP_LOG_LEVEL": "INFO"}
SHELL |= {"OMP_DISPLAY_ENV": "TRUE", "MKL_VERBOSE": "1"}
SHELL |= {"GLOO_SOCKET_IFNAME": "none", "PYTHONDEVMODE": "1", "GIT_DIR": "/nowhere"}


@pytest.fixture(scope="module")
def page(lasting_project, tmp_path_factory, messages):
    """Run the good samples after the broken ones; return a function that reads their pages."""
    for name in [*BROKEN, "untitled"]:
        (lasting_project.root / f"gallery/tutorial/{name}.py").unlink()
    for name, code in GOOD.items():
        lasting_project.sample(code, name=name)
    own = "import os\nprint(os.environ['WORLD_SIZE'])\n"
    lasting_project.write("gallery/tutorial/shell/own.py", own)
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text("int cuDriverGetVersion(int *v) { *v = 11040; return 0; }\n")
    command = ["cc", "-shared", "-fPIC", folder / "driver.c", "-o", folder / "libcuda.so.1"]
    subprocess.run(command, check=True)
    machine = {"LD_LIBRARY_PATH": str(folder), "CUDA_HOME": "/nowhere"}
    status, output = lasting_project.run(*BUILD, **SHELL, **machine)
    assert status == 0, output
    return lambda name: lasting_project.read(f"_build/execute/tutorial/{name}.rst")


def test_the_page_shows_code_and_output_and_hides_assertions(page):
    text = page("hidden")
    assert "    print(6 * 7)" in text and "    42\n" in text
    assert "assert" not in text and "LINES" not in text and "running time" not in text


@pytest.mark.parametrize(
    "name, shown",
    [
        ("other", "    False\n"),
        ("shell", "    [rank 0] 2\n    [rank 1] 2\n    []\n"),
        ("driver", "    False\n    None\n"),
    ],
    ids=["own process", "not steered by the shell", "neither driver nor toolkit"],
)
def test_what_a_sample_meets(page, name, shown):
    assert shown in page(name)


def test_the_temporary_folder_of_a_sample_is_short_and_goes(page, lasting_project):
    """Sockets of multiprocessing lie in it, and their paths may have 108 bytes."""
    where = Path(lasting_project.read("gallery/tutorial/where"))
    assert len(str(where)) < 70 and lasting_project.root not in where.parents
    assert not where.exists() and not where.parent.exists()


# -- What is kept --------------------------------------------------------------------


def test_only_what_changed_is_executed_again(project):
    pages = project.root / "_build/execute/tutorial"
    program = project.write("gallery/tutorial/a/used.py", "text = 'old'\n")
    project.sample("import runpy\nprint(runpy.run_path('a/used.py')['text'])\n", name="a")
    project.sample("print('independent')\n", name="b")
    project.sample("print('the real output')\n", name="edited")
    broken = project.sample("raise ValueError('still broken')\n", name="broken")
    assert "still broken" in project.fail(*BUILD)
    output = project.fail(*BUILD)
    assert "still broken" in output and "executed gallery" not in output

    broken.unlink()
    program.write_text("text = 'new'\n")
    page = (pages / "edited.rst").read_text()
    (pages / "edited.rst").write_text(page.replace("the real output", "a better one"))
    output = project.run(*BUILD)[1]
    assert "2 of 3 samples executed" in output and "executed gallery/tutorial/a.py (" in output
    assert "    new\n" in (pages / "a.rst").read_text()
    assert (pages / "edited.rst").read_text() == page, "the same bytes"

    (project.root / "gallery/tutorial/b.py").unlink()
    assert "0 of 2 samples executed" in project.run(*BUILD)[1]
    assert {path.name for path in pages.glob("*.rst")} == {"a.rst", "edited.rst"}

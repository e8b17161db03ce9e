"""A sample that fails in any way fails the build, with a message that names the place."""

import subprocess
from pathlib import Path

import pytest

BUILD = ["tools.execute"]


def test_the_page_shows_code_and_output_and_hides_assertions(project):
    project.sample(
        "print(6 * 7)\n"
        "# sphinx_gallery_start_ignore\n"
        "assert 6 * 7 == 42\n"
        "# sphinx_gallery_end_ignore\n"
    )
    status, output = project.run(*BUILD)
    assert status == 0, output
    page = project.read("_build/execute/tutorial/sample.rst")
    assert "    print(6 * 7)" in page and "    42\n" in page
    assert "assert" not in page
    assert "LINES" not in page and "running time" not in page


@pytest.mark.parametrize(
    "code, expected",
    [
        ("print(1)\n\nassert 1 == 2, 'not equal'", "line 10, in <module>"),
        ("import warnings\nwarnings.warn('old')", "UserWarning: old"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("import os\nos._exit(0)", "ended the process before its last line"),
        ("import os\nos.write(2, b'C++ speaks')", "unexpected output on stderr"),
        ("import ctypes\nctypes.string_at(0)", "failed (signal 11)"),
        ("print(", "SyntaxError"),
    ],
    ids=["assert", "warning", "exit", "_exit", "stderr", "segfault", "syntax"],
)
def test_a_broken_sample_fails_the_build(project, code, expected):
    project.sample(code + "\n")
    output = project.fail(*BUILD)
    assert "gallery/tutorial/sample.py" in output
    assert expected in output
    assert not (project.root / "_build/execute/tutorial/sample.rst").exists()


def test_a_hanging_sample_shows_the_line_where_it_hangs(project):
    project.sample("# time limit: 8\nimport time\ntime.sleep(60)\n")
    output = project.fail(*BUILD)
    assert "gallery/tutorial/sample.py: still running after 8 s" in output
    assert 'gallery/tutorial/sample.py", line 10' in output
    assert "sphinx_gallery" not in output, "only our own part of the stack"


def test_a_failing_rank_is_named(project):
    project.write("gallery/tutorial/sample/bad.py", "import os\nassert os.environ['RANK'] == '0'\n")
    project.sample("from launcher import launch\nlaunch('sample/bad.py', ranks=2)\n")
    output = project.fail(*BUILD)
    assert "gallery/tutorial/sample.py" in output
    assert "sample/bad.py: rank 1 of 2: ended with exit status 1" in output


def test_assertions_count_whatever_the_shell_says(project):
    project.sample("assert 1 + 1 == 3, 'not equal'\n")
    assert "not equal" in project.fail(*BUILD, PYTHONOPTIMIZE="1")


def test_the_shell_does_not_steer_samples(project):
    """Variables of a cluster's job, of a debugging session, of a git hook."""
    project.write("gallery/tutorial/sample/own.py", "import os\nprint(os.environ['WORLD_SIZE'])\n")
    project.sample(
        "import os, torch\nfrom launcher import launch\nlaunch('sample/own.py', ranks=2)\n"
        "print(sorted({'GIT_DIR', 'PET_NNODES', 'PYTHONDEVMODE', 'RANK'} & set(os.environ)))\n"
    )
    shell = {"RANK": "3", "WORLD_SIZE": "7", "MASTER_PORT": "1", "PET_NNODES": "2"}
    shell |= {"TORCH_DISTRIBUTED_DEBUG": "DETAIL", "TORCH_CPP_LOG_LEVEL": "INFO"}
    shell |= {"OMP_DISPLAY_ENV": "TRUE", "MKL_VERBOSE": "1"}
    shell |= {"GLOO_SOCKET_IFNAME": "none", "PYTHONDEVMODE": "1", "GIT_DIR": "/nowhere"}
    status, output = project.run(*BUILD, **shell)
    assert status == 0, output
    shown = "    [rank 0] 2\n    [rank 1] 2\n    []\n"
    assert shown in project.read("_build/execute/tutorial/sample.rst")


def test_expected_stderr_is_accepted(project):
    project.sample("# expected stderr: C.. speaks\nimport os\nos.write(2, b'C++ speaks')\n")
    status, output = project.run(*BUILD)
    assert status == 0, output


def test_each_sample_has_a_process_of_its_own(project):
    project.sample("import sys\nsys.marked = True\nprint('first')\n", name="a")
    project.sample("import sys\nprint(hasattr(sys, 'marked'))\n", name="b")
    assert project.run(*BUILD)[0] == 0
    assert "    False\n" in project.read("_build/execute/tutorial/b.rst")


def test_only_what_changed_is_executed_again(project):
    program = project.write("gallery/tutorial/a/used.py", "text = 'old'\n")
    project.sample("exec(open('a/used.py').read())\nprint(text)\n", name="a")
    project.sample("print('independent')\n", name="b")
    assert "2 of 2 samples executed" in project.run(*BUILD)[1]
    assert "0 of 2 samples executed" in project.run(*BUILD)[1]
    program.write_text("text = 'new'\n")
    output = project.run(*BUILD)[1]
    assert "1 of 2 samples executed" in output and "executed gallery/tutorial/a.py" in output
    assert "    new\n" in project.read("_build/execute/tutorial/a.rst")


def test_a_sample_that_failed_is_not_cached(project):
    project.sample("raise ValueError('still broken')\n")
    assert "still broken" in project.fail(*BUILD)
    assert "still broken" in project.fail(*BUILD)


def test_the_temporary_folder_of_a_sample_is_short_and_goes(project):
    """Sockets of multiprocessing lie in it, and their paths may have 108 bytes."""
    project.sample(
        "import tempfile\nopen('where', 'w').write(tempfile.mkdtemp())\n"  # Left behind on purpose.
    )
    assert project.run(*BUILD)[0] == 0
    where = Path(project.read("gallery/tutorial/where"))
    assert len(str(where)) < 70 and project.root not in where.parents
    assert not where.exists() and not where.parent.exists()


def test_the_page_of_a_removed_script_goes(project):
    script = project.sample("print('a')\n", name="a")
    project.sample("print('b')\n", name="b")
    assert project.run(*BUILD)[0] == 0
    script.unlink()
    assert project.run(*BUILD)[0] == 0
    pages = (project.root / "_build/execute/tutorial").glob("*.rst")
    assert [path.name for path in pages] == ["b.rst"]


def test_the_same_run_gives_the_same_bytes(project):
    project.sample("print('hello')\n")
    assert project.run(*BUILD)[0] == 0
    first = project.read("_build/execute/tutorial/sample.rst")
    (project.root / "_build/execute/tutorial/sample.json").unlink()
    assert project.run(*BUILD)[0] == 0
    assert project.read("_build/execute/tutorial/sample.rst") == first


def test_neither_an_old_driver_nor_a_missing_toolkit_matters(project, tmp_path):
    """A build of PyTorch for CUDA warns of both, and a warning would fail the sample."""
    driver = tmp_path / "driver.c"
    driver.write_text("int cuDriverGetVersion(int *version) { *version = 11040; return 0; }\n")
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", driver, "-o", library], check=True)
    project.sample(
        "import torch\n"
        "import torch.utils.cpp_extension\n"
        "print(torch.cuda.is_available())\n"
        "print(torch.accelerator.current_accelerator(check_available=True))\n",
        output="False\nNone\n",
    )
    machine = {"LD_LIBRARY_PATH": str(tmp_path), "CUDA_HOME": "/nowhere"}
    status, output = project.run(*BUILD, **machine)
    assert status == 0, output

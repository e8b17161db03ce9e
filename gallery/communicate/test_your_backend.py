"""
Test a backend: the conformance suite
=====================================

A program can end without an error although its backend returns wrong values, and a model trained with these values
may never learn.

The suite ``c10d-conformance`` holds any backend of ``torch.distributed`` to what PyTorch promises, with one
command. This page shows how to run it, how to read its report, and how to turn a failure into a program
that shows the bug.

The suite has :count:`checks` checks. It is in the folder ``conformance`` of the zip file at the end of this page, and
needs PyTorch, pytest and hypothesis.

.. diagram:: communicate/test_your_backend/diagram

Run the suite
-------------

The suite needs to know only your backend, so two arguments are enough:

.. not-executed::

   ``mine`` and ``my_module`` stand for your backend. The build runs the module ``c10d_conformance`` instead.

   .. code-block:: console

      $ pip install ./conformance
      $ c10d-conformance --backend mine --import my_module

``--backend`` is the name that a program passes to ``init_process_group``, and ``--import`` is the module
that registers this name. The suite starts the ranks itself, and runs most checks with two ranks and again with four,
unless ``--ranks`` says otherwise. While you work on one operation, ``-k`` selects checks by their names, as in
pytest.

The next program runs three checks of the dummy, the backend that moves no data, and shortens the output:
"""

import os
import re
import subprocess
import sys
from pathlib import Path

folders = [str(Path(x).resolve()) for x in ("../../conformance", "test_your_backend")]
environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, *sys.path])}


def conformance(*options):
    command = ["-m", "c10d_conformance", *map(str, options)]
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True
    )
    varying = r" \([\d.]+ s\)|, PyTorch [\w.+]+"
    return done.returncode, re.sub(varying, "", done.stdout + done.stderr)


selected = "all_gather_types or send_recv_types or registered"
dummy = ["--backend", "dummy", "--import", "dummy_collectives"]
status, output = conformance(*dummy, "--quick", "-k", selected)
# Leave out the list of the checks and the table of the operations.
_, failures, _, refusals, result = output.strip().split("\n\n")
print("...", failures, "...", refusals, sep="\n")
print(f"{result} (exit status {status})")

# %%
# Read the report
# ---------------
#
# The last line of the output counts verdicts, so begin with these. Each check runs one or more cases, such as one for
# each dtype, and each case has one of five verdicts:
#
# .. list-table::
#    :header-rows: 1
#
#    * - verdict
#      - meaning
#    * - ``right``
#      - The backend does what PyTorch promises.
#    * - ``refused``
#      - All ranks raise an error that says what the backend does not support.
#    * - ``wrong``
#      - A value, an effect or an error differs from what PyTorch promises, or some ranks refuse while
#        others return.
#    * - ``crash``
#      - The process of a rank ends.
#    * - ``hang``
#      - No rank makes progress for ten seconds, or for as long as ``--limit`` says; a few checks wait up to
#        six times as long.
#
# A check with one of the last three verdicts fails, and the exit status is then 1. In the output above, the
# check of ``all_gather`` fails, because the dummy returns zeros.
#
# To find the bug behind a failure, read the section ``Failures`` of the output. For each check that fails, it has the
# promise, and ``made by`` names the function or the header of PyTorch that makes this promise. For each case with wrong
# values, it has the operation, dtype, shape, memory layout and kind of call. The next line of the report says which
# element differs first: 0 where -3 is expected, for example. After a hang, the report contains the Python stack and the
# C++ stack of every rank.
#
# A backend need not have every operation, so a refusal is no failure: the dummy has no ``send``, and says so. But an
# operation that worked yesterday and is refused today then goes unnoticed, too. So record what works:
# ``--add-claims FILE`` writes into a file how many cases of each check are right, and a later run with
# ``--claims FILE`` fails if there are fewer.
#
# A refusal counts only if all ranks refuse. For example, without the method ``recvAnysource``, a receive from any rank
# fails, but the sender does not know that, and hangs. So that such a check does not delay every run, write its name and
# the reason into a file, as a line ``check: reason``, and pass the file with ``--skips``. The ``README.md`` of the
# suite has the other options.
#
# What one run does not find
# --------------------------
#
# A report without failures says nothing about code that did not run. For example, the suite tries all pairs of a
# dtype and a reduction with short tensors only. If your backend has another algorithm for long tensors, let an
# environment variable set the threshold, and run the suite once more with zero. A race shows itself only in some
# runs, so repeat the run, also with more ranks than cores.
#
# .. admonition:: Options for other runs
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - you want
#         - add
#       * - an overview: each capability with a few cases, as a rule with two ranks
#         - ``--quick``
#       * - the tensors on an accelerator, and the checks of streams
#         - ``--device TYPE``; also ``--blocking-wait`` if ``wait`` of your backend blocks the host, and no more
#           ``--ranks`` than devices if each needs its own
#       * - other inputs for the checks ``generated.*``, which draw shapes, layouts, splits and sequences of calls, and
#           show the smallest input that fails as a program
#         - ``--seed N``, and ``--examples N`` for more than 50 of each check
#       * - the ranks on several simulated hosts, so that the network is tested, too
#         - ``--hosts 2``, on Linux
#
# Run the suite with your own tests
# ---------------------------------
#
# So that one command and one report cover your own tests and the suite, the package is a plugin of pytest, too. The
# options of the plugin have ``--c10d-`` before the names above, and without ``--c10d-backend`` the plugin does
# nothing.
#
# To pytest, each check is a test with the marker ``c10d`` and a marker for its capability, such as
# ``c10d_all_reduce``. So ``-k``, ``-m``, ``-x``, ``--lf`` and reports for JUnit work as for your tests. In the next
# run, pytest finds the dummy's own test in the current folder, and adds the three checks:

import shlex

# The build has not installed the suite, so it names the plugin. pytest reads no settings of this site.
options = {
    "PYTEST_PLUGINS": "c10d_conformance.plugin",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_ADDOPTS": "-c /dev/null --rootdir . --no-header --tb=no -p no:cacheprovider",
}
command = "pytest -v --c10d-backend=dummy --c10d-import=dummy_collectives --c10d-quick"
command += f" -k '{selected} or one_rank'"
print("$", command)
call = [sys.executable, "-m", *shlex.split(command)]
place = {"cwd": "test_your_backend/repository", "env": environment | options}
output = subprocess.run(call, **place, capture_output=True, text=True).stdout
print(output.partition("selected\n\n")[2].partition("\n\n")[0])

# %%
# pytest shows a refusal as a skipped test. The suite starts the ranks from a process of its own, so your
# ``conftest.py`` can import the backend, start threads and use the device.
#
# To test each push, let GitHub run this command in a workflow:
#
# .. not-executed::
#
#    GitHub runs this file for each push. The build runs the last command, with fewer checks.
#
#    .. admonition:: ``test.yml``
#       :collapsible: closed
#
#       .. listing:: gallery/communicate/test_your_backend/test.yml
#
# .. admonition:: Base classes of PyTorch's tests
#    :collapsible: closed
#
#    Beside the suite, PyTorch's own tests can check your backend. Their base classes, and some of the tests, are
#    installed with PyTorch, in ``torch.testing._internal``. They need the package ``expecttest``, and may change with
#    each release:
#
#    .. list-table::
#       :header-rows: 1
#
#       * - class, and its module
#         - what it gives you
#         - what to know
#       * - ``MultiProcContinuousTest`` in ``common_distributed``
#         - ranks that start once for all tests of a class
#         - ``backend_str`` returns your name, and ``device_type`` your device
#       * - ``MultiProcessTestCase`` and ``DistributedTestBase`` in ``common_distributed``
#         - new ranks for each test
#         - ``DistributedTestBase`` knows no backend for ``PrivateUse1``, so override ``backend``
#       * - ``DistributedTest._DistTestBase`` in ``distributed.distributed_test``, to combine with ``TestDistBackend``
#         - PyTorch's tests of collectives and DDP
#         - It reads ``BACKEND`` and ``WORLD_SIZE`` from the environment. Many tests run only for the names in
#           ``DistTestCases.backend_feature``, or only on CUDA.
#       * - ``FSDPTest`` in ``common_fsdp``, ``DTensorTestBase`` in ``distributed._tensor.common_dtensor``
#         - base classes for tests of FSDP2 and DTensor
#         - They take the default backend of the current accelerator, so register yours with ``devices``, and import it
#           first.
#
#    Except for ``DistributedTest``, PyTorch's tests with these classes are in no package, but in the folder
#    ``test/distributed`` of PyTorch's repository.
#
# Bug: a test with zeros
# ----------------------
#
# The suite cannot know what is special in your backend, so you need tests of your own, too. This test is too weak:
#
# .. listing:: gallery/communicate/test_your_backend/tests_with_zeros.py
#    :part: mistake
#
# The sum of zeros is zero, and so is the output of a backend that never reads its input. The fix is a
# different number for each rank and each element:
#
# .. listing:: gallery/communicate/test_your_backend/tests_with_zeros.py
#    :part: cure
#
# The dummy passes the first test and fails the second:

from launcher import launch

output = launch("test_your_backend/tests_with_zeros.py", ranks=2)

# %%
# Choose the inputs so that each bug that you can think of changes the result: a wrong root, a missing
# element at the end, a sum in place of an average, or a message out of order.
#
# Scoreboard
# ----------
#
# To judge the counts of your backend, compare them with those of others. This table shows how many cases of the whole
# suite got each verdict with two ranks, and when. The backends of "this site" are explained in its other parts:

import csv

from result_table import show_table

columns = ["backend", "version", "right", "refused", "wrong", "crash", "hang", "date"]
with open("test_your_backend/scoreboard.csv") as file:
    rows = [[row[x] or "–" for x in columns] for row in csv.DictReader(file)]
show_table(columns, [[name, *(f"``{cell}``" for cell in cells)] for name, *cells in rows])

# sphinx_gallery_start_ignore
# time limit: 600
# sphinx_gallery_end_ignore

# %%
# ``fake`` moves no data, so most of its values are wrong. ``commux``, which needs an older PyTorch, and ``mccl``, which
# is for macOS, could not run here. Even gloo fails some checks, and ``simccl``, which moves its data with gloo,
# crashes where gloo crashes:
#
# .. admonition:: What gloo does otherwise than PyTorch promises
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - what gloo does
#         - a check that shows it
#       * - returns wrong values for a tensor that is not contiguous
#           (`pytorch#192920 <https://github.com/pytorch/pytorch/issues/192920>`_)
#         - ``values.all_reduce_layouts``
#       * - returns a bool that is the byte 2, for the sum of two true values
#         - ``values.all_reduce_types``
#       * - divides after the sum of ``AVG``, where PyTorch says that it divides before
#         - ``values.divided_first``
#       * - says that a ``reduce_scatter`` is not completed, also after ``wait``
#         - ``works.completed_after_wait``
#       * - says that a message is not completed until the program calls ``wait``
#         - ``messages.completed_without_wait``
#       * - waits without end for a message from a rank that does not exist
#         - ``generated.limits``
#       * - ends the process if a message has another size than expected
#         - ``failure.other_size``
#       * - lets a pending operation wait for its timeout when the group is aborted
#         - ``failure.abort``
#       * - has no ``perform_nocolor_split`` in Python, although it can split groups
#         - ``groups.on_a_bound_device``
#
# Exercise
# --------
#
# A check is too large to send to the author of a backend, so turn a failure into a short program. This is the report on
# ``works.completed_after_wait``, which gloo fails:

status, output = conformance("--backend", "gloo", "--ranks", 2, "-k", "completed_after_wait")
print(output.split("--------\n")[1].split("\n\n")[0])

# %%
# Write the shortest program that shows the bug without the suite. Include an operation for which gloo keeps
# the promise.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    ``reduce_scatter`` is in the report, and ``all_reduce`` is not:
#
#    .. listing:: gallery/communicate/test_your_backend/still_running.py
#       :part: solution
#
# Two ranks run the solution:

output = launch("test_your_backend/still_running.py", ranks=2)

# %%
# So one command has found the bug, and a short program shows it, which is also the best bug report. If you do not see
# the reason for a failure, the tools of :doc:`debug` show which rank waits, where, and for which other rank.
#
# Not run here: the suite on a GPU; the build has none. Two tests with ``MultiProcContinuousTest`` and three of
# ``distributed_test`` were run by hand with ``shm``, and passed.

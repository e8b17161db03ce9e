"""
Test your backend
=================

After this page you can test any backend of ``torch.distributed`` with one command. You can read
what the test reports, and turn a report into a program that shows the defect.

PyTorch promises much about each operation. Its classes ``MultiProcessTestCase`` and
``DistributedTestBase``, in ``torch.testing._internal.common_distributed``, start the ranks for tests
that you write, with any backend.
``c10d-conformance`` adds the tests: 190 checks for backends in C++ or in Python, of which 17 are about
streams of an accelerator. It needs PyTorch and pytest. The zip file at the end of this page contains
it, in the folder ``conformance``.

.. diagram:: communicate/test_your_backend/diagram

Run it
------

The argument ``--backend`` takes the name that a program gives to ``init_process_group``. The
module after ``--import`` registers it. Without ``--ranks``, the checks run with two and with four
ranks, except those that need another number. ``-k`` selects checks by their names, as in pytest.
The function below starts the suite and leaves out the times and the release of PyTorch, which
differ from run to run:
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
print(output)
print("exit status", status)

# %%
# Read the report
# ---------------
#
# Each check runs one or more cases, and each case has one of five verdicts:
#
# .. list-table::
#    :header-rows: 1
#
#    * - verdict
#      - meaning
#    * - ``right``
#      - The backend keeps the promise.
#    * - ``refused``
#      - All ranks raise an error that says what the backend does not support.
#    * - ``wrong``
#      - A value, an effect or an error differs from the promise. It is also wrong if some ranks
#        refuse and the others return.
#    * - ``crash``
#      - The process of a rank ends.
#    * - ``hang``
#      - No rank makes progress for ten seconds, or for as long as ``--limit`` says.
#
# A backend may refuse: the dummy has no ``send``, and says so. It may not return zeros from an
# ``all_gather``. A check with one of the last three verdicts fails, and the exit status is then 1.
#
# A failure begins with the check and the promise. ``made by`` names the function or the header of
# PyTorch that makes it. Then the report describes the case: the operation, the dtype, the
# shape, the layout of the memory and the kind of call. It shows the first element that
# differs, and how many do. After a hang, it contains the Python and the C++ stack of every
# rank.
#
# The same ranks run one check after another. After a check that fails, new ranks begin the next
# one. After a crash or a hang, new ranks continue with the next case of the same check. After the second
# hang of a check, its other cases are left out. ``--report`` writes everything as JSON, and
# ``--junit`` as JUnit XML.
#
# A refusal does not fail, so nothing reports a case that was right before and is refused now.
# ``--add-claims FILE`` writes into a file how many cases of each check are right. ``--claims FILE``
# fails if there are fewer. The project of :doc:`/tutorial/next-steps` has such a file.
#
# Three backends
# --------------
#
# ``--quick`` tries each capability with a few cases, as a rule with two ranks. This is what gloo,
# the dummy and ``shm`` can do. A number says how many of the cases have the verdict. In
# a row with ``wrong``, the other cases may be right or refused. In a row with ``right``, they are
# refused:

import json
import tempfile

shm = ["--backend", "shm", "--import", "shm_collectives"]
reports = {}
with tempfile.TemporaryDirectory() as folder:
    for options in (["--backend", "gloo"], dummy, shm):
        path = Path(folder, "report.json")
        # The longer limit is for a machine that does much else.
        conformance(*options, "--quick", "--limit", 60, "--report", path)
        reports[options[1]] = json.loads(path.read_text())


def cell(row):
    """Return the verdict of a row, and how many of its cases have it, unless all do."""
    cases, total = row["counts"][row["verdict"]], sum(row["counts"].values())
    return f"``{row['verdict']}``" + (f" ``{cases} of {total}``" if cases < total else "")


from result_table import show_table

rows = []
for same in zip(*(report["capabilities"] for report in reports.values()), strict=True):
    rows.append([same[0]["title"], *map(cell, same)])
show_table(["capability", *reports], rows)

# sphinx_gallery_start_ignore
# time limit: 600
# sphinx_gallery_end_ignore

# %%
# Gloo fails in two rows. In ``abort``, an operation that waits for another rank does not end when
# the group is aborted. The exercise is about ``Works and futures``. The whole suite finds more in
# gloo. For example, a tensor that is not contiguous gets wrong values without an error
# (`pytorch#192920 <https://github.com/pytorch/pytorch/issues/192920>`_). It finds no failure
# in ``shm``. ``make test-conformance`` runs it on these backends and on ``store``, ``mpich`` and
# ``simccl``, and compares with recorded results.
#
# ``--device`` takes the type of an accelerator, such as ``cuda``, which the build of this site does
# not have, or ``sim``, the device of :doc:`/accelerators/device`. The checks of streams then run, too:
# they hold a stream, and compare what kernels have read. Add ``--blocking-wait`` if ``wait`` of your
# backend blocks the host.
#
# A mistake: a test with zeros
# ----------------------------
#
# A test of your own is quickly written. The first of these two is too weak:
#
# .. listing:: gallery/communicate/test_your_backend/tests_with_zeros.py
#    :part: mistake
#
# The sum of zeros is zero, and so is the output of a backend that never reads its input. In the
# second one, each rank and each element has a different number:
#
# .. listing:: gallery/communicate/test_your_backend/tests_with_zeros.py
#    :part: cure
#
# The dummy passes the first test and fails the second:

from launcher import launch

output = launch("test_your_backend/tests_with_zeros.py", ranks=2)

# %%
# A test can also be too weak in what it varies. The suite draws its inputs so that a wrong root, a
# missing element at the end, a sum in place of an average, or a message out of order changes the
# result. A backend with deliberate defects tests the suite itself. Each defect names the
# checks that must find it.
#
# Exercise
# --------
#
# This is the check that gloo fails in the row ``Works and futures``:

status, output = conformance("--backend", "gloo", "--ranks", 2, "-k", "completed_after_wait")
print(output.split("--------\n")[1].split("\n\n")[0])

# %%
# Write the shortest program that shows the defect without the suite. Include an operation for
# which gloo keeps the promise.
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
# Such a program is also the best bug report.

"""
Your own algorithm, from a function to a trained model
======================================================

An idea for a collective proves little until its sums are right, it is compared with others, and a model trains
with it. This page takes one all-reduce that far: a function of about 20 lines, which is checked with real bytes,
compared on 1,000 simulated ranks, and then used by DDP over sockets. Plan half an hour for an algorithm of your
own, of which the compiler takes about two minutes.

The idea
--------

In a ring of ``n`` ranks, an all-reduce takes ``2 (n - 1)`` steps, each with a latency. Let the ranks stand in a
grid of ``r`` rows and ``c`` columns instead, with a small ring in each row and in each column:

.. diagram:: algorithms/your_own_algorithm/diagram

First, each row adds up its tensors, of which each rank keeps one share. Then each column adds up this share of all
rows, and finally each row collects the shares. A rank sends as many bytes as in the ring, but takes only ``2 (c - 1)
+ 2 (r - 1)`` steps: with 1,000 ranks in 25 rows and 40 columns, 126 in place of 1,998. In 2018, Mikami and others
trained with such a grid, and called it *2D-torus all-reduce*.

A function, and a line that registers it
----------------------------------------

Because rows and columns are rings, the function is made of three algorithms that exist. It uses these names; the
interface is explained in :doc:`collectives-from-messages`:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``Part``
     - some of the ranks, which count themselves from 0
   * - ``reduce_scatter::ring``, ``all_reduce::ring``, ``all_gather::ring``
     - rings, which run on the ranks of a ``Part``
   * - ``on_sums``
     - the same operation on numbers that ``AVG`` has already divided

.. listing:: gallery/algorithms/your_own_algorithm/grid.hpp
   :part: grid

If the number of ranks is prime, there is one row, so the function is a ring. The header includes
``frame/algorithms/algorithms.hpp``, and one more line registers the function under a name:

.. listing:: gallery/algorithms/your_own_algorithm/grid.hpp
   :part: added

Check with real bytes
---------------------

The sums must be right before their time matters. On a command line, ``python -m c10d_frame.simulate grid.hpp
algorithm=grid check=yes`` does what this cell does:
"""

from c10d_frame.simulate import simulate

header = "your_own_algorithm/grid.hpp"
print(simulate("algorithm=grid", "check=yes", headers=[header]))

# %%
# The check runs groups of 1 to 17 ranks and of 33, with five sizes, and 1 to 4 ranks on a host. Half of the runs have
# a reduction in which the order counts, so they also prove that all ranks get the same bits.
#
# Such a check is worth something only if it fails when the function is wrong. The most likely bug is a plain copy of
# ``op`` in place of ``on_sums``. A reduction with this copy divides for ``AVG`` a second time. The next cell makes that
# change:

import tempfile
from pathlib import Path

right = "const Operation sum = all_reduce::on_sums(op, share, share);"
wrong = "Operation sum = op; sum.in = sum.out = share;"
with tempfile.TemporaryDirectory() as folder:
    changed = Path(folder, "changed.hpp")
    changed.write_text(Path(header).read_text().replace(right, wrong))
    try:
        simulate("algorithm=grid", "check=yes", headers=[changed])
    except RuntimeError as error:
        print(error)

# %%
# The check fails in its first run with data, which has a single rank, and the error names the wrong element.
#
# Training with DDP would not find this bug, because DDP requests ``SUM`` and divides itself. A program that
# requests ``AVG`` would get wrong averages, and no error.
#
# Compare on many ranks
# ---------------------
#
# The grid competes with three algorithms of the table in ``algorithms.hpp``. They reduce 16 MiB on 64 and on 1,000
# ranks:

ALGORITHMS = "algorithm=ring,halving_near,two_level_shares,grid"
print(simulate(ALGORITHMS, "ranks=64,1000", "bytes=16777216", headers=[header]))

# sphinx_gallery_start_ignore
lines = [x.split() for x in simulate(ALGORITHMS, "ranks=64,1000", "bytes=16777216", headers=[header]).splitlines()]
times = {(x[0], x[1]): float(x[4]) for x in lines[1:]}
assert max(times, key=lambda x: (x[1] == "64") * times[x]) == ("grid", "64")
assert min(times, key=lambda x: (x[1] == "64") * 1e9 + times[x]) == ("grid", "1000")
# sphinx_gallery_end_ignore

# %%
# On 64 ranks, the grid is the slowest. On 1,000 ranks it is the fastest: the ring has too many steps, and
# ``halving_near`` has two more steps with whole tensors, because 1,000 is no power of two. This is the usual result,
# because each algorithm wins only for some sizes and groups, and the simulator shows which. :doc:`simulated-ranks`
# says what its times leave out.
#
# Build it into a backend
# -----------------------
#
# ``tcp`` is a backend over sockets whose collectives are the algorithms of the table, and those that a header
# adds. The zip file at the end of this page has its sources and your header. In an environment with PyTorch and
# ``c10d-frame``, type this in its folder ``gallery/algorithms``:
#
# .. code-block:: sh
#
#     CPPFLAGS="-include $PWD/your_own_algorithm/grid.hpp" \
#         pip install --no-build-isolation ../../extension/tcp_collectives
#
# ``-include`` lets the compiler read the header before the source, so you change no file of ``tcp``. To release a
# backend with your algorithm, copy the folder ``tcp_collectives``, give the package and the backend a name of your
# own, and include the header in ``src/registration.cpp``.
#
# Reduce and train
# ----------------
#
# The option ``algorithms`` names an algorithm for each collective that you do not want to leave to the backend,
# and all ranks of a group must name the same ones. Because each group has its own options, one program can compare
# two algorithms of ``tcp`` with gloo:
#
# .. listing:: gallery/algorithms/your_own_algorithm/train.py
#    :part: groups
#
# The first tensors prove that the groups use different algorithms. Their exact sum is 2, but a ``float32`` near
# ``1e8`` cannot hold a 1 more, so the result shows the order of the additions:
#
# .. listing:: gallery/algorithms/your_own_algorithm/train.py
#    :part: reduce
#
# Then each group trains the same small model with DDP, in 10 steps. ``ddp`` prepares it, as in
# :doc:`/right/training`:
#
# .. listing:: gallery/algorithms/your_own_algorithm/train.py
#    :part: train
#
# Rank 0 of four ranks reports:

# sphinx_gallery_start_ignore
# time limit: 600
import os
import re
import shutil
import subprocess
import sys

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name, "gallery", "algorithms")
shutil.copytree("your_own_algorithm", folder / "your_own_algorithm")
shutil.copytree(
    "../../extension/tcp_collectives",
    Path(temporary.name, "extension", "tcp_collectives"),
    ignore=shutil.ignore_patterns("build", "*.egg-info", "*.so"),
)
text = re.search(r"code-block:: sh\n#\n((?:#     .+\n)+)", Path("your_own_algorithm.py").read_text())
command = re.sub("^#", "", text[1], flags=re.M).replace("pip", f"{sys.executable} -m pip")
# Into a folder of its own, which the ranks find before the build's own copy.
site = Path(temporary.name, "site")
options = {"PIP_TARGET": str(site), "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
options["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
pipe, stdout = subprocess.PIPE, subprocess.STDOUT
done = subprocess.run(
    command, shell=True, cwd=folder, text=True, stdout=pipe, stderr=stdout, env=os.environ | options
)
assert done.returncode == 0, done.stdout
path = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
os.environ["PYTHONPATH"] = os.pathsep.join(path)
# sphinx_gallery_end_ignore
import json

from launcher import launch
from result_table import show_table

output = launch("your_own_algorithm/train.py", ranks=4, show=False)
sums, losses = json.loads(output[0])
rows = [
    [name, str(sums[name]), f"{losses[name][0]:.4f}", f"{losses[name][-1]:.4f}"]
    for name in ["ring", "grid", "gloo"]
]
show_table(["algorithm", "1e8 + 1 - 1e8 + 1", "first loss", "last loss"], rows)

# sphinx_gallery_start_ignore
temporary.cleanup()
for name in ["ring", "grid"]:
    pairs = zip(losses[name], losses["gloo"], strict=True)
    assert all(abs(one - other) < 1e-6 for one, other in pairs)
# sphinx_gallery_end_ignore

# %%
# The ring adds one rank after another: ``1e8 + 1`` is rounded to ``1e8``, and then ``-1e8`` and 1 give 1. The grid
# adds up both rows first, which gives ``1e8`` and ``-1e8``, so it loses both ones. Neither is a bug. For the same
# reason, the losses are equal in the digits of this table, but may differ from gloo's in the last bits. With two
# ranks, the order of a sum does not matter, so compare there bit by bit.
#
# To test the backend as a whole with your algorithm, run the suite of :doc:`/communicate/test-your-backend`.
#
# .. admonition:: For reference: servers that are no ranks
#    :collapsible: closed
#
#    Some algorithms, such as the Reduction Server of Google, let servers add up the gradients. In a ring, each rank
#    sends its tensor almost twice. With servers, it sends the tensor once and receives the sum once.
#
#    Such a server cannot be a rank of a c10d group, because every rank passes a tensor to every all-reduce. A rank with
#    zeros as its tensor would have to make each call of the training program, and ``AVG`` would divide by too many
#    ranks.
#
#    So the transport of each rank must connect to processes that are no ranks. Derive it from ``MessageTransport``. Its
#    ``collective`` sends each all-reduce to the servers, and leaves all else to its base.
#
# Exercise
# --------
#
# With 8 bytes on 1,000 ranks, the grid takes about nine times as long as ``doubling``, but the option names one
# algorithm for all sizes. Write an all-reduce that leaves small tensors to ``doubling``, and large ones to the grid.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    An algorithm may call another one, if all ranks decide alike. They can decide by ``op.note.bytes``, the size of the
#    tensor, because all ranks have the same value.
#
#    .. listing:: gallery/algorithms/your_own_algorithm/small_ones_otherwise.hpp
#       :part: solution
#
# The solution in the simulator:

header = "your_own_algorithm/small_ones_otherwise.hpp"
names = "algorithm=doubling,grid,grid_if_large"
print(simulate(names, "ranks=1000", "bytes=8,16777216", headers=[header]))

# %%
# For either size, ``grid_if_large`` takes exactly as long as the faster of the other two.
#
# .. admonition:: After this page you have decided
#
#    - which of the existing algorithms yours must beat, and with how many ranks and bytes;
#    - whether it may add in any order that is the same on all ranks;
#    - which sizes it leaves to others.
#
# Not run here: ``tcp`` with more than four ranks, and servers outside a group.

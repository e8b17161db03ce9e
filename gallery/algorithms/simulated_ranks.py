"""
Thousands of ranks in one process
=================================

An algorithm that is fast on four ranks can be slow on 4,096, and few authors can reserve so many to find out. The
simulator of the package ``c10d-frame`` runs the same functions as a backend, on thousands of ranks in one process,
and computes when each message would arrive. This page describes its model, because a predicted time is only as
good as what the model knows.

Run the simulator
-----------------

With the package installed, this command compares two algorithms. It needs a C++20 compiler and no PyTorch:

.. code-block:: sh

    python -m c10d_frame.simulate algorithm=ring,halving_near ranks=64,512 bytes=1048576

The first call compiles the simulator, which takes some seconds, and keeps the program in ``~/.cache/c10d_frame``.
In Python, ``simulate`` returns the same text:
"""

from c10d_frame.simulate import simulate

print(simulate("algorithm=ring,halving_near", "ranks=64,512", "bytes=1048576"))

# sphinx_gallery_start_ignore
# time limit: 300
import re
import shlex
import subprocess
import sys
from pathlib import Path

# What the page tells readers to type.
[command] = re.findall(r"code-block:: sh\n\n    (.+)\n", Path("simulated_ranks.py").read_text())
typed = shlex.split(command.replace("python", sys.executable, 1))
done = subprocess.run(typed, capture_output=True, text=True, check=True)
assert done.stdout == simulate("algorithm=ring,halving_near", "ranks=64,512", "bytes=1048576")
# sphinx_gallery_end_ignore

# %%
# The time is that of the slowest rank, and the counts are those of all ranks together; ``between hosts`` has the
# bytes that leave a host. For both numbers of ranks, ``halving_near`` is faster, because it sends the same bytes in
# far fewer messages. ``choice`` says whether a backend on messages would choose this algorithm.
#
# .. admonition:: For reference: the options of the simulator
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - option
#         - meaning
#       * - ``operation``
#         - a collective; ``all_reduce`` by default
#       * - ``algorithm``
#         - one or several names, or ``all``
#       * - ``ranks``, ``bytes``
#         - one or several numbers; the bytes are those of the whole tensor, with the pieces of all ranks
#       * - ``hosts``
#         - the number of hosts; by default, each has 8 ranks
#       * - ``latency``
#         - between two hosts, in microseconds; 5 by default
#       * - ``rate``
#         - of the network card of a host, in Gbit/s; 400 by default
#       * - ``overhead``
#         - of a processor for each send and each receive, in microseconds; 0.2 by default
#       * - ``check=yes``
#         - no table; the algorithms run with real bytes, and their results are checked
#       * - a path
#         - a header with algorithms of your own
#
# A message is three events
# -------------------------
#
# All that the model knows of your machines is in one structure. The defaults are round numbers in the order of a
# cluster for training:
#
# .. listing:: extension/frame/c10d_frame/simulator/simulation.hpp
#    :part: machine
#
# Because messages wait for a busy card, the model follows each one through three events. The message *enters* the
# card of the sender, which is then busy until the last byte has left. One latency after the first byte has left, it
# *crosses* to the card of the receiver, which is busy until the last byte has come. Then the message *arrives*. The
# processors of the two ranks also take some time for each message:
#
# .. diagram:: algorithms/simulated_ranks/diagram
#
# .. admonition:: The three events in code
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - name
#         - what it is
#       * - ``Rank``
#         - one rank, with a clock of its own; it implements the interface ``Messages``
#       * - ``Flight``
#         - a message, from its first event to its last
#
#    .. listing:: extension/frame/c10d_frame/simulator/simulation.hpp
#       :part: happen
#
# So you can check a prediction by hand. With its latency and the time of the two processors, a message takes
# 0.2 + 5 + 0.2 microseconds, and for 1 MiB 20.97 more. A broadcast to one other host is exactly one message:

broadcast = "operation=broadcast", "algorithm=binomial"
print(simulate(*broadcast, "ranks=2", "hosts=2", "bytes=8,1048576"))

# %%
# The column ``time (us)`` confirms the sums: 5.4 for 8 bytes, and for 1 MiB 5.4 + 20.97, rounded to 26.4.
#
# Within a host, a message uses no card, so it is only two events. It has a lower latency and, by default, also a lower
# rate, because the sender copies memory.
#
# A card that several messages need
# ---------------------------------
#
# With many ranks, a time that surprises you is often that of a queue. In a gather, eight hosts send 1 MiB each to
# rank 0 at the same time. Their latencies overlap, but the card of rank 0 takes one message after another:

print(simulate("operation=gather", "ranks=9", "hosts=9", "bytes=9437184"))

# %%
# A gather counts as a single step, but its bytes take 8 times 20.97 microseconds here. Only the 5.4 microseconds for
# the latency and the processors are spent once. In the same way, eight ranks of one host that send to other hosts
# wait for their common card, so the time depends on how ranks are placed on hosts, as :doc:`near-and-far` shows.
#
# Virtual time
# ------------
#
# A rank that waits is just a suspended coroutine, so 4,096 ranks need one thread and little memory. The simulator
# always takes the earliest event, sets the time to it, and lets the ranks go on that waited for it. No other thread
# and no real clock takes part:
#
# .. listing:: extension/frame/c10d_frame/simulator/simulation.hpp
#    :part: run
#
# While a rank runs, only what the model charges moves its clock: a message, a copy, and bytes that are added up.
#
# Deadlocks
# ---------
#
# Real ranks that wait for each other look like slow ranks, until a timeout. In the simulator, a deadlock is certain
# as soon as no event is left, and the error lists which rank waits for which. In this barrier, each rank waits for
# the previous one:
#
# .. listing:: gallery/algorithms/simulated_ranks/token.hpp
#    :part: token

barrier = "operation=barrier", "algorithm=token", "ranks=4", "bytes=0"
try:
    simulate(*barrier, headers=["simulated_ranks/token.hpp"])
except RuntimeError as error:
    print(error)

# %%
# Follow the ranks: 0 waits for 3, which waits for 2, and so on, back to rank 0. If you come to a rank that is not
# in the list instead, that rank has returned and never sent. Each rank counts its transfers from 1, so their
# number tells you the step of your loop.
#
# Bytes that do not exist
# -----------------------
#
# 4,096 tensors of 1 GiB do not fit in a computer. For a table, the simulator therefore allocates none: their
# addresses are ones that no processor accepts, and an algorithm only passes them on. An algorithm that reads or writes
# bytes itself crashes the process, so let it call ``net.copy``, ``op.reduce`` and ``op.combine``, for which the model
# charges time.
#
# Without bytes, a wrong result goes unnoticed. So ``check=yes`` runs the same functions with real bytes on few
# ranks, where every send waits for its receive, as :doc:`collectives-from-messages` explains.
#
# 4,096 ranks
# -----------
#
# Is the simulator fast enough for more ranks than you can reserve? A ring with 4,096 ranks takes 8,190 steps, in which
# more than thirty million messages arrive. The simulator needs only seconds for them:

print(simulate("algorithm=ring,halving_near", "ranks=4096", "bytes=1048576"))

# sphinx_gallery_start_ignore
assert 2 * 4096 * 4095 == 33546240
assert " 20.4 " in simulate("algorithm=doubling", "ranks=64", "bytes=8")
# sphinx_gallery_end_ignore

# %%
# The number of messages decides how long you wait for a table, and the bytes do not.
#
# What the model leaves out
# -------------------------
#
# The model is simple, so times differ where one of these limits the real network:
#
# .. list-table::
#    :header-rows: 1
#
#    * - not in the model
#      - how reality differs
#    * - switches between the hosts, and the routes of messages
#      - links in the middle are shared, too
#    * - packets that are lost, and congestion control
#      - many senders to one receiver are slower than one message after another
#    * - several cards in a host, or special links between accelerators
#      - each rank may have a card of its own
#    * - memory that the ranks of a host share
#      - copies of many ranks at the same time slow each other down
#    * - more ranks than processors, threads that sleep and wake up
#      - small messages take longer, and differ from run to run
#    * - ranks that come late
#      - a collective waits for the last rank to call it
#
# So rely on the counts, on the deadlocks, and on the order of algorithms whose times differ clearly. Before you
# rely on a time, set ``latency``, ``rate`` and ``overhead`` to what you measure between two of your hosts, and
# compare one case with a real run, as :doc:`predictions` does.
#
# Exercise
# --------
#
# Predict the time of ``doubling`` for 8 bytes on 64 ranks, 8 on each host. Then ask the simulator.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    64 ranks take 6 steps. In the first three, the partner is on the same host: 0.2 + 1 + 0.2 microseconds. In the
#    other three, it is on another host: 0.2 + 5 + 0.2. Together that is 20.4 microseconds, because 8 bytes take
#    almost no time.
#
# .. admonition:: After this page you have decided
#
#    - which latency, which rate and how many ranks on a host stand for your machines;
#    - what of the table you trust, and what you must measure.
#
# Not run here: real networks, which the model only imitates.

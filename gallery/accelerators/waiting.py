"""
Waiting on the host and in a stream
===================================

On the CPU, ``wait`` returns when the result is there. On a device, it usually returns at once, and a stream waits in
place of the host. If a stream waits where the host should, or the other way round, a program reads numbers that are
not there yet, or the device runs out of work. This page shows which calls make the host wait and which a stream, and
why, so that you can choose for each method of your backend.

.. diagram:: accelerators/waiting/diagram

To find out who waits, a worker holds the communication with a gate, and makes each call in another thread. It checks
whether the call returns, and whether the stream of that thread then goes on. The option ``blocking_wait`` of
``simccl`` is explained under timeouts:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/accelerators/waiting/who_waits.py
      :part: program

   .. listing:: gallery/accelerators/waiting/who_waits.py
      :part: calls
"""

import json

from launcher import launch
from result_table import show_table

outputs = launch("waiting/who_waits.py", ranks=2, show=False)
show_table(["call", "who waits"], [[call, who] for call, who in json.loads(outputs[0]).items()])
# sphinx_gallery_start_ignore
assert outputs[0] == outputs[1]
# sphinx_gallery_end_ignore

# %%
# The first two rows are the usual waits, in which only a stream waits. ``is_completed`` only asks. The host waits in
# four cases: in a barrier, in a ``wait`` with a timeout, with ``blocking_wait``, and where the program reads a
# number or synchronizes.
#
# While the host waits, it cannot launch the next kernels. So the general rule is that the host waits only for a
# result that it uses itself. The next four sections apply the rule to results, completion, barriers and timeouts.
#
# Results: a stream waits
# -----------------------
#
# The result of a collective is used by the next kernels of the program, and not by the host. Hence the rule:
# **wait() makes the caller's stream wait for the communication.** Only the stream that is current at the time of
# ``wait`` waits, and the host goes on. The comment on ``wait`` in ``Work.hpp`` describes only a host that waits, so
# follow the documentation of ``torch.distributed``, which promises for CUDA what the rule says.
#
# In ``simccl``, ``wait`` first makes the host wait if it must. Then it calls ``synchronize``, which makes the
# current stream wait. The code uses these members of a work:
#
# .. list-table::
#    :header-rows: 1
#
#    * - name
#      - what it is
#    * - ``launch``
#      - what the stream and the watchdog know of the call: its events ``begin`` and ``end``, title, timeout and error
#    * - ``launch->waiting``
#      - the program's stream that waits for the call, so that the group knows when it can reuse the call's stream
#    * - ``blocks_host``
#      - true for a barrier, a receive from any rank, and with the option ``blocking_wait``
#
# .. listing:: extension/frame/c10d_frame/include/streams/work.hpp
#    :part: wait
#
# The next worker multiplies the sum by ten while the all-reduce is held by the gate that ``hold_communication``
# returns. As in :doc:`streams`, ``show`` calls the function with a group that keeps the rule, and with one that
# breaks it, whose ``wait`` makes no stream wait:
#
# .. listing:: gallery/accelerators/waiting/output.py
#    :part: program

launch("waiting/output.py", ranks=2)

# %%
# The sum is 3, so the right result is 30. With the rule broken, ``mul`` runs before the all-reduce, and the
# result is ten times the rank's own number.
#
# Completion: every stream may read
# ---------------------------------
#
# A program may call ``is_completed`` in a loop instead of ``wait``, and then use the result on any stream. No stream
# has been made to wait by then, so it is not enough that the call was launched. **A work is completed when the
# stream has finished the call**:
#
# .. listing:: extension/frame/c10d_frame/include/streams/work.hpp
#    :start-at: // The stream has ended the call
#    :end-before: bool isSuccess()
#
# In the worker, another stream reads the tensor as soon as the work says that it is completed. As long as the work is
# not completed, the loop opens the gate, so that the all-reduce can run:
#
# .. listing:: gallery/accelerators/waiting/completion.py
#    :part: program

launch("waiting/completion.py", ranks=2)

# %%
# With the rule broken, ``is_completed`` is true at once, and the other stream multiplies a number to which nothing
# has been added.
#
# Here, PyTorch contradicts itself. ``ProcessGroupNCCL.hpp`` says that ``isCompleted`` checks whether the
# operation has completed on the GPU. According to the documentation, it is enough that a CUDA operation has
# been enqueued and that its output can be used on the default stream. Follow the header: when the operation
# has completed, its output can be used on every stream, the default one included.
#
# Barriers: the host waits
# ------------------------
#
# A barrier has no tensor that a stream could use. Programs call it before the host does something outside of the
# device, such as reading a file that another rank has written. Therefore **a barrier makes the host wait**, as the
# documentation of ``torch.distributed.barrier`` says: it blocks processes until the whole group has entered.
#
# In the worker, rank 0 writes a file before its barrier, and rank 1 looks for the file after its own. The argument
# ``device_ids`` names the device, because without it PyTorch may call a backend for the CPU:
#
# .. listing:: gallery/accelerators/waiting/barrier.py
#    :part: program
#    :end-before: looked = threading.Event()
#
# .. admonition:: Rank 1
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/waiting/barrier.py
#       :start-at: looked = threading.Event()
#       :end-before: show("barrier"

launch("waiting/barrier.py", ranks=2)

# %%
# If the barrier orders only streams, rank 1 looks for the file before rank 0 has entered the barrier.
#
# For the same reason, ``wait`` of a receive from any rank makes the host wait in ``simccl``: the number of
# the sender is a result for the host.
#
# Timeouts: the host waits
# ------------------------
#
# A stream cannot raise an exception, so a timeout makes sense only for a host that waits. With a timeout as its
# argument, ``wait`` of ``simccl`` therefore polls the event on the host, and raises an error when the timeout has
# expired.
#
# The operation goes on after that error, because the timeout of a ``wait`` is the caller's own. The timeout of the
# group belongs to the watchdog, which fails the call and ends the group, as :doc:`order-and-abort` shows.
#
# An error in the stream, too, is sure to reach ``wait`` only if the host waits. So ``simccl`` has the option
# ``blocking_wait``, with which the host waits in each ``wait``. That is slow, but ``wait`` then raises every error of
# its call, which helps when you look for a bug.
#
# .. admonition:: NCCL's backend
#    :collapsible: closed
#
#    ``ProcessGroupNCCL.hpp``, the header of ``nccl-legacy``, has the same distinctions. ``wait`` without a timeout is
#    ``synchronize``. With a timeout, ``wait`` blocks the CPU thread until the work is completed, or throws when the
#    timeout has expired. The environment variable ``TORCH_NCCL_BLOCKING_WAIT`` controls whether ``wait`` blocks.
#
# Exercise
# --------
#
# A program calls ``all_reduce(loss)`` and prints ``loss.item()``. Which of its calls make the host wait, and
# is the printed number right?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Only ``item`` makes the host wait. The synchronous ``all_reduce`` calls ``wait``, which orders the
#    current stream behind the communication. ``item`` copies the number in that stream, so the copy comes
#    after the sum, and the printed number is right. The last row but one of the table is such a program.
#
# .. admonition:: After this page you have decided
#
#    - for each kind of call, whether ``wait`` makes the host wait or the current stream;
#    - what ``is_completed`` promises to another stream;
#    - whether a timeout of ``wait`` ends only the wait or also the call;
#    - whether users get an option with which the host always waits, to find bugs.
#
# Not run here: NCCL's backend, about which this page repeats its header and the documentation.

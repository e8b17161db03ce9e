"""
What your backend has to implement
==================================

No feature of PyTorch needs all of c10d. Which operations does the one need that you
care about? This page asks the features themselves.

.. diagram:: backend/features

Ask the features
----------------

PyTorch's profiler sees each call that reaches a process group: it is an event whose
name begins with ``c10d::``. So it is enough to run a feature under the profiler and to
collect the names.

.. literalinclude:: /../gallery/tutorial/workers/calls_of_features.py
   :language: python
   :caption: gallery/tutorial/workers/calls_of_features.py
   :start-after: # [record]
   :end-before: # [/record]

The worker runs each feature once, as small as possible, on two ranks with gloo:
"""

import json
import os
import tempfile

from launcher import PROFILER, launch

with tempfile.TemporaryDirectory() as folder:
    os.environ["SHARED_FOLDER"] = folder
    reports = launch(
        "workers/calls_of_features.py",
        ranks=2,
        expected_stderr=PROFILER,
        show=False,
    )

# %%
# Each row is a method of ``c10d::Backend`` to override, each column a feature that called
# it in this run, on any rank. *DCP* is a distributed checkpoint, *objects* are the
# collectives on Python objects.

from result_table import show_table

by_rank = [json.loads(report) for report in reports]
calls = {x: set().union(*(calls[x] for calls in by_rank)) for x in by_rank[0]}
methods = sorted(set().union(*calls.values()), key=lambda name: name.strip("_"))
show_table(
    ["method", *calls],
    [[method, *("✓" if method in calls[x] else "–" for x in calls)] for method in methods],
)

# sphinx_gallery_start_ignore
assert len(methods) >= 9
# sphinx_gallery_end_ignore

# %%
# Read this as a list of what a program must be able to call, not of all that a feature
# can ever use: other options of the same feature may call more. Clipping gradients under FSDP2 calls
# ``allreduce``, for example, and a ``recv`` that names no source calls
# ``recvAnysource``.
#
# Beyond the list:
#
# * ``getBackendName``, because every error message contains it.
# * ``Work::wait`` and ``Work::getFuture``. The table does not show them, because
#   the profiler records no methods of ``Work``. It also does not show which
#   other methods these features call.
# * Tensors of ``int64`` and ``uint8``: the object collectives pickle into them.
# * ``shutdown``: ``destroy_process_group`` calls it.

# %%
# What zeros do
# -------------
#
# The dummy has all-reduce and all-gather, and that is enough for some features to
# begin. What they make of its zeros shows what they use the collectives for.
#
# .. literalinclude:: /../gallery/tutorial/workers/what_zeros_do.py
#    :language: python
#    :caption: gallery/tutorial/workers/what_zeros_do.py

launch("workers/what_zeros_do.py", ranks=2)

# %%
# DistributedDataParallel all-gathers the number of parameters first, to make sure that
# all ranks hold the same model as rank 0. It reads zero, on rank 0 as well, and raises an
# error, because it checks what it receives.
#
# Since PyTorch 2.15, ``all_gather_object`` calls ``all_gather_single``, which the dummy
# does not have. Before, it called ``allgather``, received zeros as the sizes of the
# objects, and raised ``EOFError``, because there is nothing to unpickle in zero bytes.
#
# The third case checks nothing. The gradients are zero, the program ends without an error,
# and a model that is trained like this never learns. A backend that is wrong may look just like this: test the values,
# not only that the program ends.

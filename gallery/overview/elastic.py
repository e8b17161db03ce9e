"""
Survive a failed rank: elastic launching
========================================

With ``DistributedDataParallel`` (DDP) no rank can go on alone, because every step
contains an all-reduce in which all ranks take part. The more devices a job has and the
longer it runs, the more likely it is that one of them fails. This page shows what
happens then, and how the training goes on.

A group cannot lose a member
----------------------------

In this program rank 1 ends before step 2. Rank 0 catches the error and tries to go on:

.. literalinclude:: /../gallery/overview/workers/lost_rank.py
   :language: python
   :caption: gallery/overview/workers/lost_rank.py
   :start-after: # [steps]
   :end-before: # [/steps]
"""

from launcher import launch

survivor, lost = launch("workers/lost_rank.py", ranks=2)

# sphinx_gallery_start_ignore
assert survivor.splitlines()[2:] == ["step 2: RuntimeError", "step 3: RuntimeError"]
assert lost.splitlines()[-1] == "ends"
# every rank starts an interpreter of its own
# sphinx_gallery_end_ignore

# %%
# Rank 0 gets an error, because its connection to rank 1 was closed. ``except`` does not
# repair that: the group still has two members, one of them is gone, and the next step
# fails, too.
#
# This is the better case. If rank 1 did not end but hang, rank 0 would wait until the
# timeout of the group.
#
# Start again, all together
# -------------------------
#
# So all ranks have to begin again, as new processes in a new group. With
# ``--max-restarts=1`` ``torchrun`` does that once: when a rank ends with an error, it
# stops the others and starts all of them again. Each start is called an *attempt*. In
# the first program rank 1 ended with exit status 0, which is no error to ``torchrun``.
#
# .. diagram:: overview/elastic
#
# What the processes had in memory is lost. The program has to save a *checkpoint* from
# time to time, a file with all that the training needs to go on:
#
# .. literalinclude:: /../gallery/overview/workers/elastic_training.py
#    :language: python
#    :caption: gallery/overview/workers/elastic_training.py
#    :start-after: # [checkpoint]
#    :end-before: # [/checkpoint]
#
# ``os.replace`` matters: a rank may be stopped while it writes, and then the previous
# checkpoint is still there. With GPUs, pass ``map_location`` to ``torch.load``, so that
# each rank loads to its own device and not to that of rank 0.
#
# Every attempt loads the last checkpoint and trains from there. Rank 0 saves one after
# every second step. In the first attempt rank 1 dies:
#
# .. literalinclude:: /../gallery/overview/workers/elastic_training.py
#    :language: python
#    :caption: gallery/overview/workers/elastic_training.py
#    :start-after: # [train]
#    :end-before: # [/train]
#
# In the end the result is compared with a run in one process that nothing interrupted:
#
# .. literalinclude:: /../gallery/overview/workers/elastic_training.py
#    :language: python
#    :caption: gallery/overview/workers/elastic_training.py
#    :start-after: # [compare]
#    :end-before: # [/compare]

import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    os.environ["SHARED_FOLDER"] = folder
    outputs = launch("workers/elastic_training.py", ranks=2, max_restarts=1)

# sphinx_gallery_start_ignore
for output in outputs:
    lines = output.splitlines()
    assert lines[0] == "attempt 0: starts at step 0"
    assert lines[-3] == "attempt 1: starts at step 4"
    loss = lines[-1].split()[-1]
    assert f"loss {loss} after" in lines[-2]
# sphinx_gallery_end_ignore

# %%
# Rank 0 did nothing wrong, and was started again as well. Step 4 was complete when rank
# 1 died, but it was not in a checkpoint yet: it was lost, and attempt 1 took it again.
# The losses agree, because the batch depends on the step only, and because the
# checkpoint contains the momentum of the optimizer, too.
#
# A new group
# -----------
#
# An attempt reads its rank and the world size anew:
#
# .. literalinclude:: /../gallery/overview/workers/elastic_training.py
#    :language: python
#    :caption: gallery/overview/workers/elastic_training.py
#    :start-after: # [join]
#    :end-before: # [/join]
#
# The prefix is needed because all attempts share one store, which the launcher serves.
# ``init_process_group("gloo")`` alone uses the same keys in each attempt. A rank that is
# early in attempt 1 may then read the address of a process of attempt 0, and fails to
# connect to it.
#
# With several nodes the prefix is not enough, because each launcher counts its own
# restarts. Start ``torchrun`` with ``TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`` in its
# environment instead. Then each attempt has a store of its own, and
# ``init_process_group("gloo")`` is all that the program needs.
#
# Nodes that come and go
# ----------------------
#
# With ``--nnodes=2:4`` the job runs on two nodes, three or four, as many as there are.
#
# * When a node joins, all ranks are stopped and started again, with a larger world
#   size. This does not count as a restart.
# * When a node is lost, the ranks of the other nodes fail and are started again, with a
#   smaller world size. This counts as one.
#
# So neither the rank nor the world size may be fixed in the program or in the
# checkpoint. Here each rank computes its part of the batch from both:
#
# .. literalinclude:: /../gallery/overview/workers/elastic_training.py
#    :language: python
#    :caption: gallery/overview/workers/elastic_training.py
#    :start-after: # [part]
#    :end-before: # [/part]
#
# The checkpoint then has to be in a place that all nodes can read.

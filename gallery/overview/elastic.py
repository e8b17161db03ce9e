"""
Elastic launching: surviving a dead rank
========================================

The more devices a job has and the longer it runs, the more likely one of them fails. With
``DistributedDataParallel`` (DDP), no other rank can continue alone after a failure, because every step contains an
all-reduce of all ranks. This page shows how ``torchrun`` restarts the ranks, on one node and on several, and how
the program continues from a checkpoint.

A group with a dead rank
------------------------

To show that a group does not survive the death of a rank, ``lose_rank_1`` ends rank 1 of this program before step 2.
Rank 0 catches the error and tries to continue:

.. listing:: gallery/overview/elastic/lost_rank.py
   :part: steps
"""

from launcher import launch

survivor, lost = launch("elastic/lost_rank.py", ranks=2)

# sphinx_gallery_start_ignore
# every rank starts an interpreter of its own
# sphinx_gallery_end_ignore

# %%
# Rank 0 gets an error, because its connection to rank 1 was closed. ``except`` does not repair the
# group: the group still has two members, one of which is dead, so the next step fails too.
#
# A rank that exits is the better case, because with gloo the others notice at once. If rank 1 had hung instead, rank
# 0 would have waited until the timeout of the group: by default 30 minutes, or 10 if ``backend`` is ``"nccl"``.
#
# Whether the rank exits or hangs, the group is lost.
#
# Restart of all ranks
# --------------------
#
# After a failure, all ranks must begin again, as new processes in a new group. By default, ``torchrun`` never does
# this. With ``--max-restarts=1`` it does so once: when a rank ends with an error, ``torchrun`` stops the other ranks
# and starts all of them again. Each start is called an *attempt*.
#
# .. diagram:: overview/elastic/diagram
#
# What the old processes had in memory is lost: the parameters, the state of the optimizer, and the number of the
# step. So the program must regularly save all three in a file, a *checkpoint*, from which the training can continue:
#
# .. listing:: gallery/overview/elastic/elastic_training.py
#    :part: checkpoint
#
# The launcher may stop a rank while it writes. ``os.replace`` makes this harmless, because the previous checkpoint
# then remains.
#
# Every attempt loads the last checkpoint and trains from there. Rank 0 saves a checkpoint after every second step. In
# the first attempt, which has the number 0, rank 1 fails. A rank finds this number in its environment:
#
# .. listing:: gallery/overview/elastic/elastic_training.py
#    :part: attempt
#
# .. listing:: gallery/overview/elastic/elastic_training.py
#    :part: train
#    :no-caption:
#
# At the end, the program compares the result with an uninterrupted run in one process:
#
# .. listing:: gallery/overview/elastic/elastic_training.py
#    :part: compare

import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    os.environ["SHARED_FOLDER"] = folder
    outputs = launch("elastic/elastic_training.py", ranks=2, max_restarts=1)

# %%
# Rank 0 did not fail, but the launcher restarted it as well. Step 4 was complete when rank 1 ended, but
# no checkpoint contained it yet, so attempt 1 repeated the step. The loss equals that of the run without an
# interruption for two reasons: the batch depends only on the number of the step, and the checkpoint
# contains the momentum of the optimizer.
#
# .. admonition:: Options for real jobs
#    :collapsible: closed
#
#    With GPUs, pass ``map_location`` to ``torch.load``, so that each rank loads to its own device, and not to the
#    device of rank 0.
#
#    ``torchrun`` keeps nothing of what the ranks print. To read afterwards why a rank failed, add
#    ``--log-dir=logs --tee=3``. The ranks then also write stdout and stderr to files, such as
#    ``attempt_0/1/stderr.log`` for local rank 1, below a folder for each job.
#
# A new group for each attempt
# ----------------------------
#
# The ranks of a new attempt find each other through a store. Because the launcher serves this store, it outlives the
# ranks: what attempt 0 wrote is still there when attempt 1 starts. To keep the attempts apart, the program puts the
# number of the attempt before the keys of its group. It also reads the rank and the world size again, because both may
# have changed:
#
# .. listing:: gallery/overview/elastic/elastic_training.py
#    :part: join
#
# Without the prefix, ``init_process_group("gloo")`` would use the same keys in each attempt. An early rank of attempt
# 1 could then read the address of a process of attempt 0, and would fail to connect to that process. ``nccl`` needs
# the prefix, too, because its ranks exchange the id of their connection through the same store.
#
# With several nodes the prefix is not enough: each launcher counts its own restarts, so ranks of the same attempt
# could have different prefixes. Set ``TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`` in the environment of ``torchrun``
# instead. Each attempt then has its own store, and ``init_process_group("gloo")`` is enough.
#
# Restarts on several nodes
# -------------------------
#
# To allow three restarts on two nodes with eight GPUs each, run this on both nodes. :doc:`several-nodes`
# explains its other arguments:
#
# .. not-executed::
#
#    The build of this site has one computer without a GPU.
#
#    .. code-block:: console
#
#       $ export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
#       $ torchrun --nnodes=2 --nproc-per-node=8 --max-restarts=3 \
#           --rdzv-backend=c10d --rdzv-endpoint=$HOST:$PORT --rdzv-id=job-1 train.py
#
# When a rank fails, its launcher stops the other ranks of its node, and waits at the rendezvous for the launcher of
# the other node. That launcher arrives there in one of two ways:
#
# * If its ranks fail as well, for example because gloo has lost a connection, it counts a restart.
# * If its ranks only wait for the failed rank, as is usual with NCCL, it restarts them without counting. It learns of
#   the failure because it asks the rendezvous about once a second whether a node waits there.
#
# If a whole node is lost, its launcher is lost with it, and does not wait at the rendezvous. So nothing tells the
# other node to restart. Its ranks run until they fail themselves, and with NCCL that takes the timeout of the group.
# What their launcher then does depends on the lost node:
#
# * If the lost node is not that of ``$HOST``, the launcher waits ten minutes (``--rdzv-conf=join_timeout=600``) for a
#   replacement that runs the same command, then fails.
# * If the lost node is that of ``$HOST``, which serves the rendezvous, the launcher fails: at once if the connection
#   is closed, otherwise when the system gives up the connection, on Linux after about 15 minutes by default.
#
# Nodes that come and go
# ----------------------
#
# A job can also go on without a replacement. With ``--nnodes=2:4``, it uses as many nodes as there are, from two
# to four:
#
# * When a node joins, all ranks are stopped and started again, with a larger world size. This does not
#   count as a restart.
# * When a node fails, the ranks of the other nodes fail too, and are started again with a smaller world
#   size. This counts as one restart, so it needs ``--max-restarts``.
#
# So neither the program nor the checkpoint may contain a fixed rank or world size. In the program above, ``train``
# selects a rank's part of the batch, ``own``, by the rank and the world size:
#
# .. listing:: gallery/overview/elastic/elastic_training.py
#    :part: part
#
# Only rank 0 saves the checkpoint, but every rank loads it, on whichever node it runs. So keep the checkpoint in a
# folder that all nodes share.
#
# .. admonition:: Checkpoints of a sharded model
#    :collapsible: closed
#
#    If the model is sharded, as with FSDP2, no rank has all of it. So all ranks call ``save`` of
#    ``torch.distributed.checkpoint`` (DCP), which takes these steps:
#
#    1. Rank 0 gathers from each rank what it has, decides which rank writes what, and scatters these plans.
#    2. Each rank writes its own file.
#    3. Rank 0 gathers reports, writes the file ``.metadata``, which says where each part is, and tells all ranks
#       that the checkpoint is complete.
#
#    No shard travels between the ranks; only the plans and the reports do, as pickled objects
#    (:doc:`/operations/asynchronous-and-objects`).
#
#    ``load`` works in the same way: all ranks read the metadata, get their plans from rank 0, and read their parts. A
#    part can be in the file of any rank, so all ranks must reach all files. :doc:`/right/training` continues from
#    such a checkpoint.
#
# If a program continues from its last checkpoint with any rank and world size, a failure costs the time until the
# ranks have started again, and the steps since that checkpoint.
#
# Not run here: several nodes and GPUs, because the build of this site has one computer without a GPU.

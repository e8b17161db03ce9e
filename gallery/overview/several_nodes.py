"""
Training on several nodes
=========================

When the devices of one node are not enough, a job spreads its ranks over several *nodes*, the computers of a cluster.
The program stays the same, because ``DistributedDataParallel`` (DDP) works alike wherever a rank runs. Only the start
is different: a launcher must start the processes on each node, and the processes must find each other. This page
starts a job on two simulated nodes, and then says what real nodes need. It ends with a way to send less between the
nodes with FSDP2.

One launcher on each node
-------------------------

``torchrun`` starts the ranks of its own node and watches them, so each node runs one ``torchrun``. The
command is the same on all nodes. It gives the number of nodes, the number of ranks on each node, and the
address and port of one node at which the launchers find each other. Their meeting there is called the
*rendezvous*. When all launchers have arrived, the rendezvous numbers the nodes, and each launcher passes
the numbers to its ranks in environment variables:

.. listing:: gallery/overview/several_nodes/several_nodes.py
   :part: place

``GROUP_RANK`` is the number of the node, and ``LOCAL_RANK`` is the number of the rank on that node, which
has ``LOCAL_WORLD_SIZE`` ranks. Because each node counts its own GPUs, the device of a rank is
``torch.device("cuda", local_rank)``.

.. diagram:: overview/several_nodes/diagram

The rest is DDP as on one node. To show that the all-reduce includes both nodes, the model has a single
weight, which is zero at the start, and each rank has one value, called ``sample``. Alone, a rank would
set the weight to its value in one step:

.. listing:: gallery/overview/several_nodes/several_nodes.py
   :part: step

Two nodes on one computer
-------------------------

Here two launchers on one computer act as two nodes. Their rendezvous uses the address of the loopback interface and a
free port, for which ``$HOST`` and ``$PORT`` stand in the command:
"""

from launcher import launch

outputs = launch("several_nodes/several_nodes.py", ranks=4, nodes=2)

# sphinx_gallery_start_ignore
# every rank starts an interpreter of its own
# sphinx_gallery_end_ignore

# %%
# After the step, all ranks have the weight 2.5, which is the mean of 1, 2, 3 and 4, so the all-reduce
# included both nodes. Rank 2 is the third of all ranks, but the first on its node. A program that chose
# the device by ``RANK`` would request a third GPU there, although the node may have only two.
#
# What real nodes need
# --------------------
#
# On each of two nodes with eight GPUs, the command is:
#
# .. not-executed::
#
#    The build of this site has one computer.
#
#    .. code-block:: console
#
#       $ torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$HOST:$PORT --rdzv-id=job-1 train.py
#
# All arguments except ``--nproc-per-node`` and the path of the program must be the same on both nodes. Five things
# depend on your cluster:
#
# The address
#     ``$HOST`` is the name of one of the nodes, by which the others reach it. ``$PORT`` is any free port of
#     that node. The node must stay until the end of the job.
# The ports
#     The rendezvous needs one port. The launchers and the ranks open more ports, whose numbers the system
#     chooses, so the nodes of a job must be able to reach each other at all ports.
# The network interface
#     A node often has several interfaces. Gloo looks up the address of the node's own name and uses the interface
#     with that address. If the other nodes cannot reach it, set ``GLOO_SOCKET_IFNAME`` on each node to the name of an
#     interface, for example ``eth0``.
#
#     NCCL takes the interfaces whose names begin with ``ib``, or else all whose names do not begin with ``docker``,
#     ``lo`` or ``virbr``. To choose others, set ``NCCL_SOCKET_IFNAME``, and for InfiniBand adapters ``NCCL_IB_HCA``.
#     ``NCCL_DEBUG=INFO`` logs what NCCL has chosen.
# The job
#     Give each job its own id, such as ``--rdzv-id=$SLURM_JOB_ID`` or ``--rdzv-id=job-1``, and the same on
#     all of its nodes. Launchers with different ids do not join the same job, even at the same address.
# The ranks
#     ``--nproc-per-node=gpu`` starts one rank for each GPU of the node.
#
# ``torchrun`` sets ``MASTER_ADDR`` and ``MASTER_PORT`` for its ranks, from which ``init_process_group`` learns where to
# meet, so do not set them yourself. :doc:`/operations/process-groups` explains these variables.
#
# .. admonition:: Nodes that you number yourself
#    :collapsible: closed
#
#    ``torchrun`` can also start without this kind of rendezvous. You then number the nodes yourself with
#    ``--node-rank``, and give the address of node 0 with ``--master-addr`` and ``--master-port``. The
#    command then differs from node to node, and the number of nodes is fixed.
#
# Schedulers
# ----------
#
# On a cluster, a scheduler such as Slurm assigns nodes to a job and starts a program on each of them.
# Let it start one ``torchrun`` for each node, not one process for each rank. Because the scheduler knows
# the number of nodes and the name of the first one, the script of the job can pass them to ``--nnodes``
# and ``--rdzv-endpoint``.
#
# Less between the nodes: hybrid sharding
# ---------------------------------------
#
# FSDP2 (:doc:`sharded-training`) divides the parameters among all ranks, and collects those of a layer with an
# all-gather before the layer runs. These all-gathers cross the network between the nodes, which is usually slower than
# the connections within a node. With *hybrid sharding* (HSDP), each node has all parameters, and divides them among its
# own ranks. To get this, give ``fully_shard`` a *device mesh*, a table of ranks, with a row for each node. This one is
# for two nodes with eight GPUs each:
#
# .. not-executed::
#
#    The build of this site has one computer without a GPU.
#
#    .. code-block:: python
#
#       mesh = init_device_mesh("cuda", (2, 8), mesh_dim_names=("nodes", "gpus"))
#       for layer in model.layers:
#           fully_shard(layer, mesh=mesh)
#       fully_shard(model, mesh=mesh)
#
# FSDP2 shards along the second dimension and keeps copies along the first. Because ``torchrun`` numbers the ranks of
# a node one after the other, the mesh has two kinds of groups:
#
# .. list-table::
#    :header-rows: 1
#
#    * - groups
#      - ranks of a group
#      - calls for each layer
#    * - two groups of eight ranks
#      - all ranks of a node
#      - all-gather of the parameters before the forward and the backward pass, reduce-scatter of the gradients
#    * - eight groups of two ranks
#      - those with the same local rank, and so with the same shard
#      - all-reduce of the shard of the gradients, after the reduce-scatter
#
# So only gradients travel between the nodes, and each rank sends only its shard, an eighth of them. The price is
# memory: a rank holds an eighth of the parameters, their gradients and the optimizer state instead of a sixteenth.
#
# .. admonition:: Gradient accumulation with hybrid sharding
#    :collapsible: closed
#
#    If you accumulate gradients over several backward passes, the gradients need to cross the network between the
#    nodes only once. So call ``model.set_requires_all_reduce(False)`` at the start of a step, and call it with ``True``
#    before the last backward pass. The passes before it then reduce within the node only, and a rank still keeps no
#    more than its shard of the gradients.
#
# Not run here: several real nodes, NCCL, a scheduler and hybrid sharding, because the build of this site has one
# computer without a GPU.

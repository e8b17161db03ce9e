"""
Train on several nodes
======================

After this page you can start one training job on several nodes. A *node* is one computer
of a cluster. When the devices of one node are not enough, the ranks are spread over several
nodes. The program stays the same, because ``DistributedDataParallel`` (DDP) works alike
wherever a rank runs. Only the start is different: a launcher must start the processes on
each node, and the processes must find each other.

One launcher on each node
-------------------------

``torchrun`` starts the ranks of its own node and watches them. Each node runs one
``torchrun``, and the command is the same on all nodes. It gives the number of nodes, the
number of ranks on each node, and a port of one node where the launchers meet. This meeting
is called *rendezvous*. When all launchers have arrived, the nodes are numbered, and each
launcher passes the numbers to its ranks in environment variables:

.. listing:: gallery/overview/several_nodes/several_nodes.py
   :part: place

``GROUP_RANK`` is the number of the node, and ``LOCAL_RANK`` is the number of the rank on
that node. On a GPU, the device of a rank is ``torch.device("cuda", local_rank)``.

.. diagram:: overview/several_nodes/diagram

The rest is DDP as on one node. The model has a single weight, which is zero at the start.
Each rank has one value, called ``sample``. Alone, a rank would set the weight to its value
in one step:

.. listing:: gallery/overview/several_nodes/several_nodes.py
   :part: step

The run
-------

Here two launchers on one computer act as two nodes. They meet over the loopback interface,
at a free port. In the command, ``$HOST`` and ``$PORT`` mean this address and port:
"""

from launcher import launch

outputs = launch("several_nodes/several_nodes.py", ranks=4, nodes=2)

# sphinx_gallery_start_ignore
# every rank starts an interpreter of its own
# sphinx_gallery_end_ignore

# %%
# Rank 2 is the third of all ranks, but the first on its node. A program that chose the
# device by ``RANK`` would request a third GPU there, and the node may have only two. After
# the step, all ranks have the weight 2.5, the mean of 1, 2, 3 and 4. So the all-reduce
# included both nodes.
#
# Real nodes
# ----------
#
# The build of this site has only one computer, so the advice from here on was not run.
#
# The address
#     ``$HOST`` is the name of one of the nodes, by which the others reach it. ``$PORT`` is any
#     free port of that node. The node must stay until the end of the job.
# The ports
#     The rendezvous needs one port. The launchers and the ranks open more ports, with
#     numbers that the system chooses. So the nodes of a job must be able to reach each
#     other at all ports.
# The network interface
#     A node often has several. Gloo looks up the address of the node's own name and uses the
#     interface with that address. If the other nodes cannot reach it, set
#     ``GLOO_SOCKET_IFNAME`` on each node to the name of an interface, for example
#     ``eth0``. The variable for NCCL is ``NCCL_SOCKET_IFNAME``.
# The job
#     Give each job its own ``--rdzv-id``. Launchers with different ids do not join the same
#     job, even at the same address.
# The ranks
#     ``--nproc-per-node=gpu`` starts one rank for each GPU of the node.
#
# ``torchrun`` can also start without this kind of rendezvous. You then number the nodes
# yourself with ``--node-rank``, and give the address of node 0 with ``--master-addr`` and
# ``--master-port``. The command differs from node to node, and the number of nodes is
# fixed.
#
# Schedulers
# ----------
#
# On a cluster, a scheduler such as Slurm assigns nodes to a job and starts a program on
# each of them. Let it start one ``torchrun`` for each node, not one process for each
# rank. The scheduler knows the number of nodes and the name of the first one. The script
# of the job passes them to ``--nnodes`` and ``--rdzv-endpoint``.

"""
Train on several nodes
======================

A *node* is one machine of a cluster. When the devices of one node are not enough, the
ranks are spread over several nodes. The program stays the same:
``DistributedDataParallel`` (DDP) does not ask where a rank runs. Only the start is
different. Something has to start the processes on each node, and they have to find each
other.

One launcher on each node
-------------------------

``torchrun`` starts the ranks of its own node and watches them. With several nodes, each
node runs one ``torchrun``, and all are given the same command. It says how many nodes
there are, how many ranks each of them runs, and where the launchers meet: at a port of
one of the nodes. This meeting is called *rendezvous*. When all launchers have arrived,
the nodes are numbered, and each launcher tells its ranks who they are:

.. literalinclude:: /../gallery/overview/workers/several_nodes.py
   :language: python
   :caption: gallery/overview/workers/several_nodes.py
   :start-after: # [place]
   :end-before: # [/place]

``GROUP_RANK`` is the number of the node, and ``LOCAL_RANK`` the number of the rank on
that node. On a GPU, the device of a rank is ``torch.device("cuda", local_rank)``.

.. diagram:: overview/several-nodes

The rest is DDP as on one node. The model has a single weight, which is zero in the
beginning. Each rank has one sample, and the step of a rank alone would make the weight
equal to its sample:

.. literalinclude:: /../gallery/overview/workers/several_nodes.py
   :language: python
   :caption: gallery/overview/workers/several_nodes.py
   :start-after: # [step]
   :end-before: # [/step]

The run
-------

Here two launchers on one machine play two nodes. They meet over the loopback interface,
at a port that was free. In the command ``$HOST`` and ``$PORT`` stand for it:
"""

from launcher import launch

outputs = launch("workers/several_nodes.py", ranks=4, nodes=2)

# sphinx_gallery_start_ignore
assert "GROUP_RANK=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 RANK=2 " in outputs[2]
for rank, output in enumerate(outputs):
    assert f"sample {rank + 1}, weight after the step 2.5" in output
# every rank starts an interpreter of its own
# sphinx_gallery_end_ignore

# %%
# Rank 2 is the third of all ranks, but the first on its node. A program that chose the
# device by ``RANK`` would ask for a third GPU there, and the node may have only two.
# After the step all ranks have the weight 2.5, the mean of the samples 1, 2, 3 and 4:
# the all-reduce went over both nodes.
#
# On real nodes
# -------------
#
# The address
#     ``$HOST`` is the name of one node, as the others can reach it. ``$PORT`` is any
#     free port on it. That node has to stay until the end.
# The ports
#     The meeting needs one port. The launchers and the ranks open more of them, at
#     numbers that the system chooses. So the nodes of one job have to reach each other
#     at all ports.
# The network interface
#     A node often has several. Gloo looks up the address of the node's own name, and
#     uses the interface with that address. If the other nodes cannot reach it, set
#     ``GLOO_SOCKET_IFNAME`` on each node to the name of an interface, for example
#     ``eth0``. The variable for NCCL is ``NCCL_SOCKET_IFNAME``.
# The job
#     Give each job its own ``--rdzv-id``. Launchers with different ids do not join each
#     other, even at the same address.
# The ranks
#     ``--nproc-per-node=gpu`` starts one rank for each GPU of the node.
#
# ``torchrun`` can also start without a rendezvous of this kind. Then you number the
# nodes yourself with ``--node-rank``, and say with ``--master-addr`` and
# ``--master-port`` where node 0 waits. The command differs from node to node, and the
# number of nodes is fixed.
#
# Schedulers
# ----------
#
# On a cluster a scheduler such as Slurm assigns nodes to a job and starts a program on
# each of them. Let it start one ``torchrun`` for each node, and not one process for
# each rank. The scheduler knows the number of nodes and the name of the first one. The
# script of the job passes them to ``--nnodes`` and ``--rdzv-endpoint``.

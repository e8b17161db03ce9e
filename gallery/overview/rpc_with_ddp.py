"""
Combine RPC with DDP
====================

After this page you can train a model of two parts: a large table on a server, and layers
of which each trainer holds a copy. Recommendation models are often built like this, because
their tables do not fit into the memory of a trainer. *Remote procedure calls* (RPC) connect
the trainers with the table, and ``DistributedDataParallel`` (DDP) keeps the copies of the
layers equal.

.. diagram:: overview/rpc_with_ddp/diagram

The table
---------

The server holds an *embedding*, a table with a row of parameters for each item. Trainers
look up rows, and later the server updates the table. The gradients of each trainer are in
its own context of distributed autograd. ``find_table`` returns the one table of the server:

.. listing:: gallery/overview/rpc_with_ddp/rpc_with_ddp.py
   :part: table

Two kinds of groups
-------------------

All three ranks join RPC. The two trainers also form a process group, in which DDP
all-reduces:

.. listing:: gallery/overview/rpc_with_ddp/rpc_with_ddp.py
   :part: groups
   :no-caption:

The training
------------

The server only serves. This code runs on both trainers:

.. listing:: gallery/overview/rpc_with_ddp/rpc_with_ddp.py
   :part: train
   :no-caption:

``dist_autograd.backward`` computes the gradients of the layer on the trainer, and follows
the call of ``look_up`` to the server. Inside a context, DDP averages the gradients of the layer
as usual. The result is in the context and not in ``.grad``. The program makes the
updates by hand; ``DistributedOptimizer`` can do this too.

The comparison
--------------

One process trains on the examples of both trainers. Its loss is the mean over all examples,
so the gradients of the table are half as large as on the server, where each row gets the
gradient of one trainer. The learning rate of the table is twice as large to make up for
this:

.. listing:: gallery/overview/rpc_with_ddp/rpc_with_ddp.py
   :part: compare
   :no-caption:

The run
-------

The server prints nothing:
"""

from launcher import launch

outputs = launch("rpc_with_ddp/rpc_with_ddp.py", ranks=3)

# %%
# The trainers have different losses, because they look up different rows. If both used the
# same row, the order of their updates would matter. The previous page solves this by
# answering several calls at once.

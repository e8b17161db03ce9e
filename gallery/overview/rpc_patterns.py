"""
RPC patterns, and RPC with DDP
==============================

This page shows four programs in which ranks have different roles: a parameter server, a server that
answers calls in batches, an agent with observers, and a table on a server beside layers that DDP trains.
Only the DDP of the last program can use your backend; *remote procedure calls* (RPC) never call it.

Collectives suit programs in which all ranks do the same. RPC suits those in which it is not known
beforehand when one rank needs another. :doc:`rpc` explains the calls and the *remote references* (RRefs)
of this page.

Parameter server
----------------

A *parameter server* holds parameters, and trainers fetch and update them. This pays off when a trainer
needs only a few of many parameters at a time, as with a table that has one row for each user and does
not fit into the memory of a trainer. The trainer pulls the rows that its examples use, and pushes the
gradients of these rows:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: server

.. diagram:: overview/rpc_patterns/diagram

Because both trainers must work at the same time, the server starts them with asynchronous calls. It
passes them an RRef to the object with the parameters:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: run
   :no-caption:

.. admonition:: The comparison with one process
   :collapsible: closed

   Threads of the server answer the calls of both trainers in any order. The result is still always the
   same, because each trainer updates different rows. To prove it, one process runs the trainers one after
   the other, and must compute the same table, bit for bit:

   .. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
      :part: table
      :no-caption:

Batches of calls
----------------

When both trainers update the same weights, the order of their updates matters. One solution is to
collect a gradient from each trainer, make a single update, and then answer all calls. A function that
waited for the other calls would occupy a thread of the server meanwhile. With
``@rpc.functions.async_execution`` it returns a future instead, which frees the thread, and the server
sends the answer when the future gets its result:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: batching
   :no-caption:

The method needs the lock because the calls run in different threads. Both calls of a batch get the same
future, so one ``set_result`` answers both. The weights must equal those of one process that has the
examples of both trainers:

.. admonition:: The trainers, and the comparison with one process
   :collapsible: closed

   .. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
      :part: trainers
      :no-caption:

   .. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
      :part: weights
      :no-caption:

The all-reduce of DDP gives all ranks the mean of the gradients without a server. Batches of calls remain
useful where one large operation is faster than many small ones.

Agent and observers
-------------------

In *reinforcement learning*, an *agent* learns from rewards which action is good in which situation. The
rule by which it chooses is its *policy*. *Observers* on other ranks simulate the situations. Collectives
do not fit here, because an observer does not know in advance how many actions its simulation will take.

In this sample, an observer walks through a corridor of five cells and calls the agent to choose each move.
A move costs one point, and the straight way takes four, so -4 is the best possible reward:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: observer
   :no-caption:

.. admonition:: The agent and its training
   :collapsible: closed

   The agent chooses at random, with the probabilities of the policy. After a walk it looks at what the rest
   of the walk cost after each choice: the more it cost, the less likely the agent makes that choice again.
   Each observer has its own random numbers, so the order of the calls does not change the result:

   .. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
      :part: agent
      :no-caption:

   Both observers walk at the same time, and then the agent learns from both walks:

   .. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
      :part: rounds
      :no-caption:

One program contains these three patterns, and runs on a server and two clients:
"""

from launcher import launch

launch("rpc_patterns/rpc_patterns.py", ranks=3)

# %%
# All losses fall. Each of the 20 batches answered one call of each trainer. The mean reward of the last
# walks is close to -4, so they are nearly straight.
#
# RPC with DDP
# ------------
#
# A recommendation model often has a table that does not fit into the memory of a trainer, and layers
# that do. RPC then connects the trainers with the table on a server, and ``DistributedDataParallel``
# (DDP) keeps the trainers' copies of the layers equal:
#
# .. diagram:: overview/rpc_patterns/rpc-with-ddp
#
# The table is an *embedding*, with a row of parameters for each item. Trainers look up rows, and later
# let the server update them. Because the gradients of each trainer are in its own context of distributed
# autograd, ``update`` needs the context:
#
# .. listing:: gallery/overview/rpc_patterns/rpc_with_ddp.py
#    :part: table
#
# All three ranks join RPC, but only the two trainers form the process group in which DDP all-reduces:
#
# .. listing:: gallery/overview/rpc_patterns/rpc_with_ddp.py
#    :part: groups
#    :no-caption:
#
# The server only serves. Both trainers run this loop:
#
# .. listing:: gallery/overview/rpc_patterns/rpc_with_ddp.py
#    :part: train
#    :no-caption:
#
# ``dist_autograd.backward`` computes the gradients of the layer on the trainer, and follows the call of
# ``look_up`` to the server. Inside a context DDP averages the gradients of the layer as usual, but the
# result is in the context and not in ``.grad``. Therefore the program makes the updates by hand;
# ``DistributedOptimizer`` can do this too.
#
# .. admonition:: The comparison with one process
#    :collapsible: closed
#
#    For comparison, one process trains on the examples of both trainers. Its loss is the mean over all
#    examples, so its gradients of the table are half as large as on the server, where each row gets the
#    gradient of one trainer. The learning rate of the table is twice as large to make up for this:
#
#    .. listing:: gallery/overview/rpc_patterns/rpc_with_ddp.py
#       :part: compare
#       :no-caption:
#
# The server is rank 0, and prints nothing:

outputs = launch("rpc_patterns/rpc_with_ddp.py", ranks=3)

# %%
# The layer, which DDP keeps equal, and the table have the values that one process computes. The trainers have different
# losses, because they look up different rows.

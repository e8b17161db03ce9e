"""
What RPC is used for
====================

Collectives suit programs in which all ranks do the same. RPC suits programs in which
the ranks have different parts, and in which nobody knows beforehand when one rank is
going to need another. This page shows three of them. They run on a server and two
clients.

Parameter server
----------------

A *parameter server* holds parameters, and trainers come to fetch and to improve them.
It pays when a trainer needs only a few of many parameters at a time. An example is a
table with a row for each user, which is too large for the memory of a trainer. The
trainer pulls the rows that its examples are about, and pushes the gradients of these
rows:

.. literalinclude:: /../gallery/overview/workers/rpc_patterns.py
   :language: python
   :start-after: # [server]
   :end-before: # [/server]

.. diagram:: overview/parameter-server

The server makes both clients train at the same time, and hands them an RRef to what it
holds:

.. literalinclude:: /../gallery/overview/workers/rpc_patterns.py
   :language: python
   :start-after: # [run]
   :end-before: # [/run]

Threads of the server answer the calls of both trainers, in any order. The result is the
same every time, because each trainer has rows of its own. One process that lets the
trainers work one after the other must find the same table, bit by bit:

.. literalinclude:: /../gallery/overview/workers/rpc_patterns.py
   :language: python
   :start-after: # [table]
   :end-before: # [/table]

Answer several calls at once
----------------------------

When both trainers improve the same weights, the order matters. One cure is to collect a
gradient from each trainer, to take a single step, and to answer all the calls then. A
function that waited for the other calls would occupy a thread of the server. With
``@rpc.functions.async_execution`` the function returns a future instead and leaves its
thread. The answer goes out when the future gets its result:

.. literalinclude:: /../gallery/overview/workers/rpc_patterns.py
   :language: python
   :start-after: # [batching]
   :end-before: # [/batching]

The lock is needed because the calls come in different threads. Both calls of a batch
get the same future, and so one ``set_result`` answers both. The weights have to become
those of one process that has the examples of both trainers:

.. literalinclude:: /../gallery/overview/workers/rpc_patterns.py
   :language: python
   :start-after: # [weights]
   :end-before: # [/weights]

For this kind of training DistributedDataParallel needs no server: its all-reduce gives
all ranks the mean of the gradients. Batches of calls remain useful where one large
operation is faster than many small ones.

Agent and observers
-------------------

In *reinforcement learning* an *agent* learns from rewards which action is good in which
situation. The rule by which it chooses is its *policy*. Situations have to be
simulated, and *observers* on other ranks do that. An observer does not know how many
actions its simulation is going to take. That is why collectives do not fit here.

The simulation of this page is a corridor of five cells. Each move costs one point, and
the straight way has the best reward, which is -4:

.. literalinclude:: /../gallery/overview/workers/rpc_patterns.py
   :language: python
   :start-after: # [observer]
   :end-before: # [/observer]

The agent chooses at random, with the probabilities that the policy gives. Afterwards it
makes a choice the less likely, the more the rest of the walk cost. Each observer has
random numbers of its own, so that the order of the calls changes nothing:

.. literalinclude:: /../gallery/overview/workers/rpc_patterns.py
   :language: python
   :start-after: # [agent]
   :end-before: # [/agent]

Both observers walk at the same time, and then the agent learns:

.. literalinclude:: /../gallery/overview/workers/rpc_patterns.py
   :language: python
   :start-after: # [rounds]
   :end-before: # [/rounds]

The run
-------
"""

from launcher import launch

launch("workers/rpc_patterns.py", ranks=3)

# %%
# All losses fall, each batch answers two calls, and the last walks are nearly straight.
#
# Pipelines, in which each rank has one part of a model, were once built with RPC, too.
# ``torch.distributed.pipelining`` has taken their place.

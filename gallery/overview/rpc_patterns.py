"""
Patterns of RPC
===============

After this page you can write three kinds of programs with *remote procedure calls* (RPC): a
parameter server, calls that are answered together, and an agent with observers. Collectives suit programs in which all
ranks do the same. RPC suits programs in which the ranks have different roles, and in which
it is not known beforehand when one rank needs another. The programs of this page run on a
server and two clients.

Parameter server
----------------

A *parameter server* holds parameters, and trainers fetch and update them. This pays off when
a trainer needs only a few of many parameters at a time. An example is a table with one row
for each user, too large for the memory of a trainer. The trainer pulls the rows that its
examples use, and pushes the gradients of these rows:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: server

.. diagram:: overview/rpc_patterns/diagram

The server starts the training on both clients at the same time, and passes them an RRef to
the object that holds the parameters:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: run
   :no-caption:

Threads of the server answer the calls of both trainers, in any order. The result is always
the same, because each trainer updates different rows. One process that runs the trainers
one after the other must compute the same table, bit for bit:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: table
   :no-caption:

Several calls, one answer
-------------------------

When both trainers update the same weights, the order matters. One solution is to collect a
gradient from each trainer, make a single update, and then answer all calls. A function that
waited for the other calls would occupy a thread of the server. With
``@rpc.functions.async_execution``, the function returns a future instead and frees its
thread. The server sends the answer when the future gets its result:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: batching
   :no-caption:

The lock is needed because the calls arrive in different threads. Both calls of a batch get
the same future, so one ``set_result`` answers both. The weights must equal those of one
process that has the examples of both trainers:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: weights
   :no-caption:

``DistributedDataParallel`` needs no server for this kind of training: its all-reduce gives
all ranks the mean of the gradients. Batches of calls remain useful where one large operation
is faster than many small ones.

Agent and observers
-------------------

In *reinforcement learning*, an *agent* learns from rewards which action is good in which
situation. The rule by which it chooses is its *policy*. *Observers* on other ranks simulate
the situations. An observer does not know in advance how many actions its simulation will
take. So collectives do not fit here.

The simulation of this page is a corridor of five cells. Each move costs one point. The
straight way takes four moves, so its reward is -4, the best possible one:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: observer
   :no-caption:

The agent chooses at random, with the probabilities of the policy. After a walk, the agent
looks at what the rest of the walk cost after each choice. The more it cost, the less likely
the agent makes that choice again. Each observer has its own random numbers, so the order of
the calls does not change the result:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: agent
   :no-caption:

Both observers walk at the same time, and then the agent learns from both walks:

.. listing:: gallery/overview/rpc_patterns/rpc_patterns.py
   :part: rounds
   :no-caption:

The run
-------

The server and the two clients are three ranks:
"""

from launcher import launch

launch("rpc_patterns/rpc_patterns.py", ranks=3)

# %%
# All losses fall, each batch answers two calls, and the last walks are nearly straight.
#
# Pipelines, in which each rank has one part of a model, were once built with RPC too. Use
# ``torch.distributed.pipelining`` for them now.

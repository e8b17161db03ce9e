"""
RPC: remote calls and parameter servers
=======================================

Collectives suit programs in which all ranks do the same. They do not suit a program in which one rank needs another
at an unforeseen moment, because a collective takes place only when all ranks call it. A *remote procedure call* (RPC)
runs a function on another rank and returns its result, while the other rank only serves.

This page begins with single calls, and builds on them: objects that stay on their rank, a model whose layers are on
several ranks, and a server that shares parameters. It ends with how to choose between RPC and collectives. The calls
travel through *TensorPipe*, a library for messages between two processes and RPC's only backend, so your backend of
c10d has no part in them.

Calls by name
-------------

Every rank joins RPC under its own name, by which the others call it. In this program, the three ranks have the
names driver, left and right:

.. listing:: gallery/overview/rpc/rpc.py
   :part: start

The ranks left and right only serve. While they wait in ``shutdown``, threads of PyTorch answer the calls. The rest of
the program runs on the driver, except for the functions that it calls on the other ranks.

The driver can call a function in two ways. ``rpc_sync`` waits for the result. ``rpc_async`` returns a future at once,
so several calls can run at the same time. Here the driver adds on left, and asks both ranks for their names:

.. listing:: gallery/overview/rpc/rpc.py
   :part: name
   :no-caption:

.. listing:: gallery/overview/rpc/rpc.py
   :part: call
   :no-caption:

Only the name of a Python function travels, and the other rank looks it up in its own copy of the program.

The arguments are pickled, so anyone who can reach the port of a rank can run any code there. Use RPC only in a
network that you trust. The environment variable ``TP_SOCKET_IFNAME`` names the network interface on which TensorPipe
listens.

References to objects
---------------------

If an object is too large to send, or changes, it should stay where it is. ``remote`` leaves the result
of a call on the rank that created it, and returns a *remote reference* (RRef) to it. The rank with the
object is its *owner*. A call can pass an RRef to further ranks as an argument.

.. diagram:: overview/rpc/diagram

The owner keeps the object as long as any rank holds an RRef to it. To show this, the driver creates a table on left
and shares it with right. Left counts its tables while both ranks have an RRef, while only right has one, and when no
rank has one.

.. admonition:: The life of an object, counted on its owner
   :collapsible: closed

   Left counts its tables through weak references, which do not keep objects alive:

   .. listing:: gallery/overview/rpc/rpc.py
      :part: table
      :no-caption:

   The driver creates a table on left, shares it with right, and counts three times:

   .. listing:: gallery/overview/rpc/rpc.py
      :part: lifetime
      :no-caption:

   ``remote`` returns before the table exists, but a call through the RRef, such as ``place``, waits for it.
   The end of the table also takes time, because a rank releases an RRef by a separate message, which left
   may receive after ``forget`` has returned. So the driver waits before the last count. The `notes on RRef
   <https://docs.pytorch.org/docs/2.15/rpc/rref.html>`__ describe how owners count references even when
   messages are delayed.

The driver, which is rank 0, prints the results of the calls by name, and then the three counts:
"""

from launcher import launch

launch("rpc/rpc.py", ranks=3)

# %%
# The table still exists after the driver has released its RRef, and disappears with the last RRef.
#
# A model whose layers are on several ranks
# -----------------------------------------
#
# The object behind an RRef can also be a layer. In this recurrent network, left owns the embedding, right owns the
# decoder, and the layer between them, an LSTM, is on the driver. ``rpc_sync()`` of an RRef calls a method of the object
# behind it:
#
# .. listing:: gallery/overview/rpc/model.py
#    :part: model
#
# To train this model, the backward pass must follow the calls from rank to rank. PyTorch therefore records each call
# whose tensors require gradients inside a ``dist_autograd.context``, and ``backward`` follows these calls from the
# loss.
#
# Several ranks may train through the same layer at once, and in ``.grad`` their gradients would mix. So ``backward``
# does not add them there: the owner of the layer keeps the gradients of each context under the number of this context.
#
# Each parameter must be updated where it is. ``DistributedOptimizer`` therefore takes RRefs to parameters,
# and creates an optimizer on each of their owners. With ``step``, all these optimizers use the gradients
# of one context:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/overview/rpc/model.py
#       :part: parameters
#       :no-caption:
#
#    .. listing:: gallery/overview/rpc/model.py
#       :part: optimizer
#       :no-caption:
#
# The model learns to predict the next token of a sequence. For comparison, the program also copies the layers into one
# process and trains them there:
#
# .. admonition:: The sequences and the loss
#    :collapsible: closed
#
#    .. listing:: gallery/overview/rpc/model.py
#       :part: loss
#       :no-caption:

# DistributedOptimizer uses TorchScript, which is deprecated, and prints a warning.
deprecated = "TorchScript|_(Script|Functional)LocalOptimizer"
launch("rpc/model.py", ranks=3, expected_stderr=deprecated)

# %%
# The gradient and the loss are those of one process, so ``backward`` has found the calls to both other ranks.
#
# A parameter server without waiting
# ----------------------------------
#
# A *parameter server* holds parameters, and trainers on other ranks fetch and update them. A server pays off when a
# trainer needs only a few of many parameters at a time, as with a table that has one row for each user and does
# not fit into the memory of a trainer.
#
# A trainer *pulls* the rows that its examples use, and *pushes* the gradients of these rows. No trainer waits for
# another, and the server applies each push at once, without a lock. Training in this way is called `Hogwild
# <https://arxiv.org/abs/1106.5730>`__. In this program, the names of the two trainers are in ``CLIENTS``:
#
# .. listing:: gallery/overview/rpc/patterns.py
#    :part: server
#
# .. diagram:: overview/rpc/parameter-server
#
# Because both trainers must work at the same time, the server starts them with asynchronous calls. Each call passes
# an RRef to the object with the parameters:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/overview/rpc/patterns.py
#       :part: run
#       :no-caption:
#
#    .. listing:: gallery/overview/rpc/patterns.py
#       :part: table
#       :no-caption:
#
# A gradient may belong to weights that another trainer has changed since, and two pushes to one row at the same time
# may lose one of them. Training still converges, because each push changes few rows, and the gradient of a later step
# corrects what an earlier one spoiled. Here the best table contains only ones, so the program can print the result
# although the order of the pushes differs from run to run.
#
# A server that answers calls in batches
# --------------------------------------
#
# If the result must not depend on the order of the updates, the server can collect a gradient from each trainer, make a
# single update, and then answer all calls. A function that waited for the other calls would occupy a thread of the
# server meanwhile. With ``@rpc.functions.async_execution``, the function returns a future instead. This frees the
# thread, and the server sends the answer when the future gets its result:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/overview/rpc/patterns.py
#       :part: batching
#       :no-caption:
#
# The calls run in different threads, so a lock protects the collected gradients. Both calls of a batch get the same
# future, so one result answers both.
#
# Servers of parameters are not the only use of RPC. It also suits *reinforcement learning*, in which an *agent* learns
# from rewards which action is good. *Observers* on other ranks simulate the situations and ask the agent for each
# action. A collective does not fit, because an observer does not know in advance how many actions its simulation will
# take. In this program, two observers walk through a corridor, in which a move costs one point and the straight way
# takes four moves.
#
# One program contains the asynchronous server, the server with batches, and the agent. It runs on a server and two
# clients, which are the trainers and then the observers:

launch("rpc/patterns.py", ranks=3)

# %%
# The table of the asynchronous server contains only ones, as it should. Each of the 20 batches answered one call of
# each trainer. The best possible reward is -4, and the mean reward of the last walks is close to it, so the agent has
# learned a nearly straight way.
#
# RPC with DDP
# ------------
#
# A recommendation model often has a table that does not fit into the memory of a trainer, and layers
# that do. RPC then connects the trainers with the table on a server, and ``DistributedDataParallel``
# (DDP) keeps the trainers' copies of the layers equal. Only this DDP can use your backend:
#
# .. diagram:: overview/rpc/rpc-with-ddp
#
# All three ranks join RPC, but only the two trainers are members of the process group in which DDP all-reduces. The
# server calls ``new_group``, too, because every rank of the world must:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/overview/rpc/with_ddp.py
#       :part: groups
#       :no-caption:
#
# .. admonition:: The loop of a trainer
#    :collapsible: closed
#
#    ``dist_autograd.backward`` computes the gradients of the layer on the trainer, and follows the call of ``look_up``
#    to the server:
#
#    .. listing:: gallery/overview/rpc/with_ddp.py
#       :part: train
#
#    Inside a context DDP averages the gradients of the layer as usual, but the result is in the context and not in
#    ``.grad``. Therefore the program makes the updates by hand; ``DistributedOptimizer`` can do this too.
#
# The server is rank 0, and prints nothing:

launch("rpc/with_ddp.py", ranks=3)

# %%
# The layer, which DDP keeps equal, and the table have the values that one process computes. The trainers have
# different losses, because they look up different rows.
#
# RPC or collectives
# ------------------
#
# ``torch.distributed.rpc`` is in maintenance: `its documentation
# <https://docs.pytorch.org/docs/2.15/rpc.html>`__ calls the API stable, and no new features are expected.
# For new programs, therefore, first consider c10d, which means the collectives, ``send`` and ``recv``, and
# PyTorch's features that use them.
#
# RRefs, distributed autograd and the distributed optimizer do not support CUDA tensors. Plain calls
# support them when ``device_maps`` in ``TensorPipeRpcBackendOptions`` maps the devices of one rank to
# those of the other.
#
# For work that all ranks do alike, collectives are enough: the all-reduce of DDP gives all ranks the mean of the
# gradients without a server. Choose RPC where only one rank knows when it needs another rank.
#
# Not run here: RPC with CUDA tensors.

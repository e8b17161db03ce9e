"""
Call functions on other ranks: RPC
==================================

A *remote procedure call* (RPC) runs a function on another rank and brings back its
result. A collective takes place when all ranks call it. An RPC takes place when one
rank calls, and the other rank only has to serve.

``torch.distributed.rpc`` is in maintenance: its documentation calls it stable, and new
features are not to be expected. For new work look at c10d first: at the collectives, at
``send`` and ``recv``, and at what PyTorch builds on them.

Names and calls
---------------

Every rank joins with a name of its own. The calls travel through *TensorPipe*, a
library for messages between two processes. It is the only backend that RPC has, and
PyTorch's CPU wheel contains it.

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [start]
   :end-before: # [/start]

Left and right only serve: while they wait in ``shutdown``, threads of PyTorch answer
the calls. What follows runs on the driver, except for the functions that it calls on
the others. ``rpc_sync`` waits for the result, and ``rpc_async`` returns a future at
once:

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [name]
   :end-before: # [/name]

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [call]
   :end-before: # [/call]

A Python function is sent as its name, and the other rank looks the name up in its own
copy of the program. The arguments are pickled. Whoever reaches the port of a rank can
run any code there, so use RPC only in a network that you trust. The environment
variable ``TP_SOCKET_IFNAME`` names the network interface on which TensorPipe listens.
For this page it is the loopback interface.

References to objects
---------------------

``remote`` leaves the result where it was made, and returns a *remote reference* (RRef)
to it. The rank that has the object is its *owner*. An RRef may be an argument of a
call, so that further ranks hold one, too. The owner keeps the object as long as any
rank holds an RRef to it. Left shows this by counting its tables through weak
references, which keep nothing alive:

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [table]
   :end-before: # [/table]

.. diagram:: overview/rpc

The driver makes a table on left, shares it with right, and counts three times:

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [lifetime]
   :end-before: # [/lifetime]

Two things take their time. ``remote`` returns before the table exists, but a call
through the RRef, such as ``place``, waits for it. And an RRef is released by a message
of its own, which left may get after ``forget`` has returned. That is why the driver
waits before the last count.

Gradients across ranks
----------------------

Now left and right own one layer each of a model. ``left.rpc_sync()`` calls a method of
the object behind the RRef. ``to_here`` returns a copy of the object, and the copies
make up the same model in one process, for comparison:

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [model]
   :end-before: # [/model]

Inside a ``dist_autograd.context`` PyTorch records the calls that carry tensors which
require gradients. ``backward`` starts at the loss and follows the calls from rank to
rank. The gradients do not go to ``.grad``, where those of several drivers would mix.
Each rank keeps them under the number of the context, so that the owner has to look them
up:

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [gradients]
   :end-before: # [/gradients]

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [backward]
   :end-before: # [/backward]

Training across ranks
---------------------

``DistributedOptimizer`` takes RRefs to parameters and makes an optimizer on each of
their owners. ``step`` makes all of them use the gradients of one context:

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [parameters]
   :end-before: # [/parameters]

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [optimizer]
   :end-before: # [/optimizer]

The driver trains the copy by itself. Both models have to end with the same parameters:

.. literalinclude:: /../gallery/overview/workers/rpc.py
   :language: python
   :start-after: # [alone]
   :end-before: # [/alone]

RRefs, distributed autograd and the distributed optimizer do not support CUDA tensors.
Plain calls do, once ``device_maps`` in ``TensorPipeRpcBackendOptions`` says which
device of one rank corresponds to which device of the other.

The run
-------
"""

from launcher import launch

launch(
    "workers/rpc.py",
    ranks=3,
    # DistributedOptimizer uses TorchScript, which is deprecated, and warns of it.
    expected_stderr="TorchScript|_(Script|Functional)LocalOptimizer",
)

# %%
# The table outlives the driver's RRef, and is gone with the last one. The gradient and
# the loss are those of one process.

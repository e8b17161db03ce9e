"""
Call functions on other ranks: RPC
==================================

After this page you can run functions on other ranks, keep objects there, and train a model
whose layers are on several ranks. A *remote procedure call* (RPC) runs a function on
another rank and returns its result. A collective takes place when all ranks call it. An RPC
takes place when one rank calls it, and the other rank only serves.

``torch.distributed.rpc`` is in maintenance. `Its documentation
<https://docs.pytorch.org/docs/2.15/rpc.html>`__ calls the API stable, and no new features
are expected. For new programs, consider c10d first: the collectives, ``send`` and ``recv``,
and PyTorch's features that use them.

Names and calls
---------------

Every rank joins with its own name. The calls travel through *TensorPipe*, a library for
messages between two processes. It is the only backend of RPC. The program needs no process
group:

.. listing:: gallery/overview/rpc/rpc.py
   :part: start

The ranks left and right only serve. While they wait in ``shutdown``, threads of PyTorch
answer the calls. The rest of the program runs on the driver, except for the functions that
the driver calls on the other ranks. ``rpc_sync`` waits for the result, and ``rpc_async``
returns a future at once:

.. listing:: gallery/overview/rpc/rpc.py
   :part: name
   :no-caption:

.. listing:: gallery/overview/rpc/rpc.py
   :part: call
   :no-caption:

A Python function is sent by name, and the other rank looks up the name in its own copy of
the program. The arguments are pickled. Anyone who can reach the port of a rank can run any
code there, so use RPC only in a network that you trust. The environment variable
``TP_SOCKET_IFNAME`` names the network interface on which TensorPipe listens. For this page,
the launcher sets it to the loopback interface.

References to objects
---------------------

``remote`` leaves the result on the rank that created it, and returns a *remote reference*
(RRef) to it. The rank with the object is its *owner*. A call can pass an RRef to further
ranks as an argument. The owner keeps the object as long as any rank holds an RRef to it.
To show this, left counts its tables through weak references, which do not keep objects
alive:

.. listing:: gallery/overview/rpc/rpc.py
   :part: table
   :no-caption:

.. diagram:: overview/rpc/diagram

The driver creates a table on left, shares it with right, and counts three times:

.. listing:: gallery/overview/rpc/rpc.py
   :part: lifetime
   :no-caption:

Two things take time. ``remote`` returns before the table exists, but a call through the
RRef, such as ``place``, waits for the table. A rank also releases an RRef by a separate
message, which left may receive after ``forget`` has returned. So the driver waits before
the last count. The `notes on RRef <https://docs.pytorch.org/docs/2.15/rpc/rref.html>`__
describe the design: how owners count references even when messages are delayed.

Gradients across ranks
----------------------

Now left and right each own one layer of a model. ``left.rpc_sync()`` calls a method of the
object behind the RRef. ``to_here`` returns a copy of the object. For comparison, the copies
form the same model in one process:

.. listing:: gallery/overview/rpc/rpc.py
   :part: model
   :no-caption:

Inside a ``dist_autograd.context``, PyTorch records each call whose tensors require
gradients. ``backward`` starts at the loss and follows the calls from rank to rank. The
gradients are not added to ``.grad``, where those of several drivers would mix. Each rank
keeps them under the number of the context, and the owner must look them up:

.. listing:: gallery/overview/rpc/rpc.py
   :part: gradients
   :no-caption:

.. listing:: gallery/overview/rpc/rpc.py
   :part: backward
   :no-caption:

The `notes on distributed autograd
<https://docs.pytorch.org/docs/2.15/rpc/distributed_autograd.html>`__ describe the design:
how the backward pass knows which calls to wait for.

Training across ranks
---------------------

``DistributedOptimizer`` takes RRefs to parameters and creates an optimizer on each of their
owners. With ``step``, all these optimizers use the gradients of one context:

.. listing:: gallery/overview/rpc/rpc.py
   :part: parameters
   :no-caption:

.. listing:: gallery/overview/rpc/rpc.py
   :part: optimizer
   :no-caption:

The driver trains the copy alone. Both models must end with the same parameters:

.. listing:: gallery/overview/rpc/rpc.py
   :part: alone
   :no-caption:

A recurrent network can be trained in the same way. Its loop over time then calls the remote
layer once for each time step, and distributed autograd records each call.

RRefs, distributed autograd and the distributed optimizer do not support CUDA tensors. Plain
calls support them when ``device_maps`` in ``TensorPipeRpcBackendOptions`` maps the devices
of one rank to those of the other. The build of this site has no GPU, so it ran no RPC with CUDA tensors.

The run
-------

The program runs on three ranks, and the driver prints the results:
"""

from launcher import launch

launch(
    "rpc/rpc.py",
    ranks=3,
    # DistributedOptimizer uses TorchScript, which is deprecated, and prints a warning.
    expected_stderr="TorchScript|_(Script|Functional)LocalOptimizer",
)

# %%
# The table still exists after the driver has released its RRef, and disappears with the
# last RRef. The gradient and the loss are those of one process.

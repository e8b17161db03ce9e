"""
RPC: remote calls and references
================================

A *remote procedure call* (RPC) runs a function on another rank and returns its result. This page shows
how to call functions on other ranks, keep objects there, and train a model whose layers are on several
ranks. The calls travel through *TensorPipe*, a library for messages between two processes and RPC's only
backend. They never call a backend of c10d, so yours has no part in them.

A collective takes place when all ranks call it. An RPC takes place when one rank calls it, and the other
rank only serves.

``torch.distributed.rpc`` is in maintenance: `its documentation
<https://docs.pytorch.org/docs/2.15/rpc.html>`__ calls the API stable, and no new features are expected.
For new programs, therefore, first consider c10d, which means the collectives, ``send`` and ``recv``, and
PyTorch's features that use them.

Names and calls
---------------

Every rank joins RPC under its own name, by which the others call it. The program creates no process group.
Only ``init_rpc`` creates one for itself, always with gloo, in which the ranks exchange their names and
devices before the first call:

.. listing:: gallery/overview/rpc/rpc.py
   :part: start

The ranks left and right only serve. While they wait in ``shutdown``, threads of PyTorch answer the
calls. The rest of the program runs on the driver, except for the functions that it calls on the other
ranks. ``rpc_sync`` waits for the result. ``rpc_async`` returns a future at once, so the driver can have
calls on several ranks under way:

.. listing:: gallery/overview/rpc/rpc.py
   :part: name
   :no-caption:

.. listing:: gallery/overview/rpc/rpc.py
   :part: call
   :no-caption:

A Python function is sent by name, and the other rank looks up the name in its own copy of the program.
The arguments are pickled, so anyone who can reach the port of a rank can run any code there. Use RPC
only in a network that you trust. The environment variable ``TP_SOCKET_IFNAME`` names the network
interface on which TensorPipe listens. For this page, the launcher sets it to the loopback interface.

References to objects
---------------------

If an object is too large to send, or changes, it should stay where it is. ``remote`` leaves the result
of a call on the rank that created it, and returns a *remote reference* (RRef) to it. The rank with the
object is its *owner*. A call can pass an RRef to further ranks as an argument.

.. diagram:: overview/rpc/diagram

The owner keeps the object as long as any rank holds an RRef to it. To show this, left counts its tables
through weak references, which do not keep objects alive:

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

Gradients across ranks
----------------------

Now left and right each own one layer of a model. ``left.rpc_sync()`` calls a method of the object behind
the RRef, whereas ``to_here`` returns a copy of the object. For comparison, the copies form the same
model in one process:

.. listing:: gallery/overview/rpc/rpc.py
   :part: model
   :no-caption:

Inside a ``dist_autograd.context``, PyTorch records each call whose tensors require gradients, so
``backward`` can start at the loss and follow the calls from rank to rank. It does not add the gradients
to ``.grad``, where those of several drivers would mix. Instead, each rank keeps them under the number of
the context, and the owner must look them up:

.. listing:: gallery/overview/rpc/rpc.py
   :part: gradients
   :no-caption:

.. listing:: gallery/overview/rpc/rpc.py
   :part: backward
   :no-caption:

The `notes on distributed autograd <https://docs.pytorch.org/docs/2.15/rpc/distributed_autograd.html>`__
describe how the backward pass knows which calls to wait for.

Training across ranks
---------------------

Each parameter must be updated where it is. ``DistributedOptimizer`` therefore takes RRefs to parameters,
and creates an optimizer on each of their owners. With ``step``, all these optimizers use the gradients
of one context:

.. listing:: gallery/overview/rpc/rpc.py
   :part: parameters
   :no-caption:

.. listing:: gallery/overview/rpc/rpc.py
   :part: optimizer
   :no-caption:

The driver trains the copy alone, and both models must end with the same parameters:

.. listing:: gallery/overview/rpc/rpc.py
   :part: alone
   :no-caption:

A recurrent network can be trained in the same way. Its loop over time then calls the remote layer once
for each time step, and distributed autograd records each call.

The run
-------

The program runs on three ranks, and the driver, which is rank 0, prints the results:
"""

from launcher import launch

launch(
    "rpc/rpc.py",
    ranks=3,
    # DistributedOptimizer uses TorchScript, which is deprecated, and prints a warning.
    expected_stderr="TorchScript|_(Script|Functional)LocalOptimizer",
)

# %%
# The table still exists after the driver has released its RRef, and disappears with the last RRef. The
# gradient and the loss are those of one process. :doc:`rpc-patterns` builds programs from these calls.
#
# RRefs, distributed autograd and the distributed optimizer do not support CUDA tensors. Plain calls
# support them when ``device_maps`` in ``TensorPipeRpcBackendOptions`` maps the devices of one rank to
# those of the other.
#
# Not run here: RPC with CUDA tensors.

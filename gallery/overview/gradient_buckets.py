"""
DDP's gradient buckets
======================

``DistributedDataParallel`` (DDP) hides the time of its all-reduces behind the backward pass. This page
shows when it communicates, and how to average gradients or parameters without it. One program does all
of that, and compares the order of events and the results.

Buckets
-------

The backward pass computes gradients from the last layer to the first, so those of the last layer are
ready long before those of the first. DDP does not wait for the end. It collects gradients in *buckets*,
and starts the all-reduce of a bucket as soon as all of its gradients are ready, so that communication
and computation overlap:

.. diagram:: overview/gradient_buckets/diagram

The paper `PyTorch Distributed: Experiences on Accelerating Data Parallel Training
<https://www.vldb.org/pvldb/vol13/p3005-li.pdf>`__ by S. Li et al., VLDB 2020, describes this design.

Two hooks make the overlap visible. PyTorch calls the first when the gradient of a layer's weight is
ready. The other one is a *communication hook*, which DDP calls instead of its own all-reduce. Ours
records the call, and then does what DDP would have done:

.. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
   :part: record

The default limit of a bucket, 25 MiB, is more than the whole model of this program has. Its four layers
have about 1 MiB each, so with ``bucket_cap_mb=1`` each layer fills one bucket:

.. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
   :part: ddp
   :no-caption:

Averages by hand
----------------

Without DDP, the program all-reduces each gradient after the backward pass and divides it by the world
size:

.. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
   :part: by-hand
   :no-caption:

You then control which gradients are averaged, when, how often, and with which operation. In return you
lose the overlap, because each of these calls waits for the network, and the rank computes nothing
meanwhile.

Averages of parameters
----------------------

In some programs, each rank makes its own update, and the ranks average the parameters afterwards. To
save communication, they often do so only every few steps:

.. listing:: gallery/overview/gradient_buckets/gradient_buckets.py
   :part: parameters
   :no-caption:

Whether the result is the same depends on the optimizer. The update of SGD is linear in the gradient, so
the average of the updates is the update with the average gradient. Adam divides by a measure of the
gradients, which differs from rank to rank, so its result is another one.

The run
-------

The program runs on two ranks, and rank 0 prints the results:
"""

from launcher import launch

[output, _] = launch("gradient_buckets/gradient_buckets.py", ranks=2)

# %%
# With DDP, the all-reduce of bucket 0 starts while three of the four gradients are still missing. By
# hand, the all-reduces start only when all gradients are ready. Because the values are the same, use DDP
# unless you need something that it does not offer.

"""
Average gradients: DDP's buckets, and by hand
=============================================

DDP averages gradients, and so can you, with a few lines around ``all_reduce``. This page
does both and compares them: the order of events, and the result.

DDP: buckets
------------

The backward pass computes the gradients from the last layer to the first. Those of
the last layer are ready long before those of the first. DDP does not wait for the end:
it collects gradients in *buckets*, and starts the all-reduce of a bucket as soon as all
of its gradients are ready. Communication and computation overlap.

.. diagram:: overview/buckets

The design is described in S. Li et al., *PyTorch Distributed: Experiences on
Accelerating Data Parallel Training*, VLDB 2020.

Two hooks make it visible. One is called when the gradient of a layer's weight is
ready. The other is a *communication hook*, which DDP calls in place of its own
all-reduce; this one takes a note and does what DDP would have done.

.. literalinclude:: /../gallery/overview/workers/gradient_buckets.py
   :language: python
   :caption: gallery/overview/workers/gradient_buckets.py
   :start-after: # [record]
   :end-before: # [/record]

The model has four layers of about 1 MiB. With ``bucket_cap_mb=1`` each of them fills a
bucket; the default is 25 MiB.

.. literalinclude:: /../gallery/overview/workers/gradient_buckets.py
   :language: python
   :start-after: # [ddp]
   :end-before: # [/ddp]

By hand
-------

Without DDP, the program all-reduces each gradient after the backward pass and divides
by the world size:

.. literalinclude:: /../gallery/overview/workers/gradient_buckets.py
   :language: python
   :start-after: # [by-hand]
   :end-before: # [/by-hand]

This gives full control: which gradients, when, how often, and with which operation.
What it gives away is the overlap. Each of these calls waits for the network while
nothing is computed.

Average parameters instead
--------------------------

Some programs let each rank take its own step and average the parameters afterwards,
often only every few steps to save communication:

.. literalinclude:: /../gallery/overview/workers/gradient_buckets.py
   :language: python
   :start-after: # [parameters]
   :end-before: # [/parameters]

Is that the same? It depends on the optimizer. A step of SGD is linear in the gradient,
so the average of the steps is the step of the average. Adam divides by a measure of
the gradients that differs from rank to rank.

The run
-------

Two ranks; rank 0 prints.
"""

from launcher import launch

[output, _] = launch("workers/gradient_buckets.py", ranks=2)

# sphinx_gallery_start_ignore
assert "same gradients: True" in output
assert "SGD: averaged parameters as with DDP: True" in output
assert "Adam: averaged parameters as with DDP: False" in output
# sphinx_gallery_end_ignore

# %%
# With DDP, the all-reduce of bucket 0 starts when three of four gradients are still to
# come. By hand, all gradients come first. The values are the same.
#
# Use DDP, unless you need what it does not offer.

"""
Train with it
=============

After this page you can show that a backend trains correctly: with the same losses as gloo, bit
for bit. You can also list what a step of training calls, and notice a backend that ignores
``ReduceOp``.

A backend is correct when each of its operations is correct. The tests of the operations show
that, but they test what their author thought of. A training run also shows what PyTorch really
calls:

.. diagram:: communicate/train_with_it/diagram

The same losses as gloo
-----------------------

The next worker trains a small model in four ways. The functions ``ddp``, ``fsdp2``,
``tensor_parallel`` and ``pipeline`` prepare it as on the pages :doc:`/overview/data-parallel`,
:doc:`/overview/sharded-training` and :doc:`/overview/tensor-and-pipeline-parallel`. Each gets a
group, and begins with the same seed. Two groups of one program can have different backends:

.. listing:: gallery/communicate/train_with_it/train_with_shm.py
   :part: compare

``==`` compares all ten losses without a tolerance. The table shows rank 1, because only the last
rank of a pipeline has a loss:
"""

import json

from launcher import PROFILER, launch
from result_table import show_table

outputs = launch("train_with_it/train_with_shm.py", ranks=2, expected_stderr=PROFILER, show=False)
results = [json.loads(text) for text in outputs]

rows = []
for feature, (begin, end, equal) in results[1]["losses"].items():
    rows.append([feature, f"{begin:.4f}", f"{end:.4f}", str(equal)])
show_table(["feature", "first loss", "last loss", "equal to gloo's"], rows)

# sphinx_gallery_start_ignore
# The table is of rank 1.
assert all(equal for *_, equal in results[0]["losses"].values())
# sphinx_gallery_end_ignore

# %%
# All losses are equal bit for bit, and so are the parameters, as the worker asserts. There are two
# reasons. The sum of two floating-point numbers does not depend on their order. The division by
# two is exact, except for subnormal numbers, so a rank can divide before or after the sum. With
# three ranks, neither holds. The exercise shows the difference.
#
# Such a comparison must prove that it compares two backends. ``DeviceMesh`` ignores the group
# when it compares meshes:

print("meshes of two groups are equal:", [result["meshes"] for result in results])

# %%
# ``DTensor`` caches by mesh. It can therefore use the group of another, equal mesh, and ``shm``
# would be compared with itself. The worker gives the meshes different names in
# ``mesh_dim_names``. It also asserts with the profiler that each training run uses its own backend.
#
# Continue from a checkpoint
# --------------------------
#
# A checkpoint is correct if the model continues as if nothing had happened. ``state_of`` returns
# the state of the model and of the optimizer:
#
# .. listing:: gallery/communicate/train_with_it/train_with_shm.py
#    :part: checkpoint

print("continues equally:", [result["continued"] for result in results])
print("save uses", *results[0]["save"])

# %%
# On both ranks, the resumed training has the same losses as one without an interruption. ``save``
# uses four collectives, because the ranks agree on who writes what. No step below needs ``gather``,
# so only a checkpoint would notice that it is missing. Tensor parallelism also calls ``scatter``:
# it distributes the parameters before the first step.
#
# What a step asks of the backend
# -------------------------------
#
# A backend in Python can record the calls. A subclass of ``ProcessGroup`` overrides methods, notes
# each call, and forwards it to a group of ``shm``. ``RecordedWork`` does the same for ``wait``
# and ``get_future`` of a work:
#
# .. listing:: gallery/communicate/train_with_it/forwarding.py
#    :part: record
#
# The worker trains with this group, and records the third step. ``fsdp2_by_4`` is FSDP2 after
# ``set_gradient_divide_factor(4)``:

rows = []
for feature, calls in results[0]["calls"].items():
    for (method, reduce, *work), count in sorted(calls):
        rows.append([feature, f"{count} ``{method}``", reduce, " ".join(work)])
show_table(["feature", "calls", "ReduceOp", "method of the work"], rows)

# %%
# DDP requests a sum, because it divides the gradients itself. It takes the future of the work.
# FSDP2 calls synchronously, so it gets no work. For ``float32`` and ``bfloat16``, it requests
# ``AVG``, so the backend must divide. With a divide factor other than the number of ranks, it
# requests ``PREMUL_SUM``: each rank multiplies its numbers before the sum. For other dtypes, it
# requests ``SUM`` and divides itself. This page runs ``float32`` only. The factor comes with the
# ``ReduceOp``:
#
# .. listing:: extension/frame/reductions.hpp
#    :part: premul-sum
#
# The class is not only for NCCL: ``Types.hpp`` of PyTorch 2.15 calls it ``PreMulSumSupplement``,
# and keeps the name with ``NCCL`` for older code.
#
# A mistake: a backend that ignores ReduceOp
# ------------------------------------------
#
# The backend below always adds. It passes every test with ``SUM``:
#
# .. listing:: gallery/communicate/train_with_it/forwarding.py
#    :part: mistake
#
# The worker trains with it and with ``shm``. These are the losses of rank 0:

rows = []
for training, both in results[0]["ignored"].items():
    for backend, losses in zip(["shm", "IgnoresOp"], both, strict=True):
        shown = [f"{losses[step - 1]:.4f}" for step in (1, 2, 5, 10)]
        rows.append([training, backend, *shown])
show_table(["training", "backend", "step 1", "step 2", "step 5", "step 10"], rows)

# sphinx_gallery_start_ignore
adam, other_adam = results[0]["ignored"]["fsdp2, Adam"]
assert adam != other_adam
# sphinx_gallery_end_ignore

# %%
# Nothing fails. DDP is right, because it requests only sums. With FSDP2 and SGD, the gradients are
# twice as large, as if the learning rate were twice as high. Here the loss even falls faster, so
# a test that looks for a falling loss passes. Adam hides the mistake, because it divides by the
# size of the gradients. The losses then differ only in later digits.
#
# The cure is to implement the operations of ``ReduceOp``, and to refuse those that are missing.
# :doc:`tensors-of-every-kind` shows the table of ``shm``. At the very least, add a check to each
# method that reduces. This is the one for FSDP2:
#
# .. listing:: gallery/communicate/train_with_it/forwarding.py
#    :part: cure
#
# The first step of FSDP2 then fails. FSDP2 can also train with a backend that only adds:
#
# .. listing:: gallery/communicate/train_with_it/train_with_shm.py
#    :part: refuse

print("the first step fails:", results[0]["refused"])
print("with sums only, equal to shm:", results[0]["forced"])

# %%
# Exercise
# --------
#
# Let three ranks reduce 100,000 random fractions, with ``shm`` and with gloo. Predict whether the
# sums are equal bit for bit. Find numbers for which they are equal in any order. Also show that
# all ranks get the same bits, because DDP relies on it.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Each addition is rounded, so ``(a + b) + c`` can differ from ``a + (b + c)``. The backends
#    add in different orders. Sums of small integers need no rounding.
#
#    .. listing:: gallery/communicate/train_with_it/order_of_sums.py
#       :part: solution
#
#    In ``shm``, all ranks add small tensors in the order of the ranks. Of a large tensor, each rank
#    adds a share, and the others copy the result. So their bits are equal.
#
# Three ranks run the solution:

output = launch("train_with_it/order_of_sums.py", ranks=3)

# %%
# With more than two ranks, compare losses with a tolerance, and the bits of the ranks without one.
#
# Now the backend trains correctly. :doc:`measure` shows how fast it is.

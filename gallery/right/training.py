"""
Training, compared with gloo
============================

Tests of single operations check what their author thought of. A backend that always adds, for example, passes each
test with ``SUM``, and then trains FSDP2 with wrong gradients, while the loss falls as if all were well. So this page
trains a model on two ranks, compares the losses with gloo's bit for bit, and shows why equal losses need every
``ReduceOp`` that a step requests.

.. diagram:: right/training/diagram

Four ways to train
------------------

Each way to train calls only some of the collectives, so the next worker trains a small model in four ways. Two groups
of one program can have different backends, so the worker trains each way with ``store`` and with gloo. The functions
``ddp``, ``fsdp2``, ``tensor_parallel`` and ``pipeline`` prepare the model as on the pages
:doc:`/overview/data-parallel`, :doc:`/overview/sharded-training` and :doc:`/overview/tensor-and-pipeline-parallel`.
Each function gets a group, and starts with the same seed. ``step`` trains one step, and returns the loss of this rank:

.. listing:: gallery/right/training/train.py
   :part: compare

``==`` compares all ten losses without a tolerance. The table shows rank 1, because only the last
rank of a pipeline has a loss:
"""

import json

from launcher import PROFILER, launch
from result_table import show_table

outputs = launch("training/train.py", ranks=2, expected_stderr=PROFILER, show=False)
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
# All losses are equal bit for bit, and so are the parameters, as the worker asserts. This works with two ranks,
# because the sum of two numbers does not depend on their order, and because the division by two is exact, except for
# subnormal numbers. With three ranks, the order of a sum matters, as the exercise shows.
#
# Such a comparison must prove that it compares two backends. It is easy to compare one with itself, because two
# ``DeviceMesh`` objects are equal even if their groups have different backends:

print("meshes of two groups are equal:", [result["meshes"] for result in results])

# %%
# ``DTensor``, the class that represents sharded parameters, has caches whose key is the mesh, and can therefore use the
# group of another, equal mesh. So the worker gives the meshes different names in ``mesh_dim_names``, and asserts with
# the profiler that each training uses its own backend.
#
# What a step asks of the backend
# -------------------------------
#
# The losses are equal only if the backend has each method and each ``ReduceOp`` that a step requests. To see which
# these are, record the calls: a subclass of ``ProcessGroup`` in Python overrides methods, notes each call, and forwards
# it to ``inner``, a group of ``store``. ``RecordedWork`` does the same for ``wait`` and ``get_future`` of a work:
#
# .. listing:: gallery/right/training/forwarding.py
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
# The features differ in the methods of the work, and in the ``ReduceOp``. DDP takes the future of the work, whereas
# tensor parallelism and pipelines call ``wait``, so your works need both methods. FSDP2 calls synchronously, so it gets
# no work.
#
# DDP requests a sum, because it divides the gradients itself. For ``float32`` and ``bfloat16``, FSDP2 requests ``AVG``,
# so the backend must divide; for other dtypes, FSDP2 requests ``SUM`` and divides itself.
#
# With a divide factor other than the number of ranks, ``PREMUL_SUM`` takes the place of ``AVG``: each rank multiplies
# its numbers before the sum.
#
# .. admonition:: Where ``PREMUL_SUM`` has its factor
#    :collapsible: closed
#
#    The factor is the number or the tensor in the ``supplement_`` of the ``ReduceOp``:
#
#    .. listing:: extension/frame/c10d_frame/include/frame/reductions.hpp
#       :part: premul-sum
#
# .. admonition:: For reference: a ``ProcessGroup`` from your create function
#    :collapsible: closed
#
#    Your create function, too, may return a ``ProcessGroup`` such as ``RecordingGroup`` in place of a ``Backend``, for
#    which two rules differ.
#
#    If such a group is the default group, ``new_group`` of PyTorch 2.15 looks for a method ``new_group`` in the
#    group's class. If there is one, PyTorch calls the method on each rank, whatever ``backend`` the program names,
#    and the method returns ``None`` on a rank outside the new group; otherwise, PyTorch calls the create function
#    again.
#
#    A ``ProcessGroup`` keeps its name in its backends. A group without any therefore fails with ``ProcessGroup name
#    not set``, for example in a device mesh, so ``ForwardingGroup`` registers one.
#
# Bug: a backend that ignores ReduceOp
# ------------------------------------
#
# A backend that knows only the sum may ignore the ``ReduceOp`` of a call. The group below does so: it forwards each
# reduction to ``store``, but always with ``SUM``:
#
# .. listing:: gallery/right/training/forwarding.py
#    :part: mistake
#
# The worker trains with it and with ``store``. These are the losses of rank 0:

rows = []
for training, both in results[0]["ignored"].items():
    for backend, losses in zip(["store", "IgnoresOp"], both, strict=True):
        shown = [f"{losses[step - 1]:.4f}" for step in (1, 2, 5, 10)]
        rows.append([training, backend, *shown])
show_table(["training", "backend", "step 1", "step 2", "step 5", "step 10"], rows)

# sphinx_gallery_start_ignore
adam, other_adam = results[0]["ignored"]["fsdp2, Adam"]
assert adam != other_adam
# sphinx_gallery_end_ignore

# %%
# Nothing fails. DDP is right, because it requests only sums. With FSDP2 and SGD, the gradients are twice as
# large, as if the learning rate were twice as high. Here the loss even falls faster, so a test that looks
# for a falling loss passes. Adam hides the bug, because it divides by the size of the gradients, and the
# losses differ only in later digits.
#
# The fix is to implement the operations of ``ReduceOp``, and to refuse those that are missing, as the table
# of :doc:`/tutorial/options-and-reductions` shows. At the very least, add a check to each method that reduces. This
# is the check for FSDP2:
#
# .. listing:: gallery/right/training/forwarding.py
#    :part: cure
#
# The first step of FSDP2 then fails. FSDP2 can also train with a backend that only adds, if each layer is
# told to request sums:
#
# .. listing:: gallery/right/training/train.py
#    :part: refuse

print("the first step fails:", results[0]["refused"])
print("with sums only, equal to store:", results[0]["forced"])

# %%
# Continue from a checkpoint
# --------------------------
#
# Steps are not all that a training calls: the ranks also communicate when they save a checkpoint. A checkpoint is
# correct if training continues as if nothing had happened. All ranks run this code, with the same ``folder``:
#
# .. listing:: gallery/right/training/train.py
#    :part: checkpoint

print("continues equally:", [result["continued"] for result in results])
print("save uses", *results[0]["save"])

# %%
# The resumed training has the same losses as one without an interruption. In ``save``, the ranks agree on which of
# them writes what, with four kinds of collectives. A test that only trains steps would not find that ``gather`` is
# missing, because none of the recorded steps needs it. So test checkpoints, too, and how training begins: tensor
# parallelism calls ``scatter`` before the first step, to distribute the parameters.
#
# Exercise
# --------
#
# Let three ranks reduce 10,000 random fractions, with ``store`` and with gloo. Predict whether the sums are
# equal bit for bit. Find numbers for which they are equal in any order. Also show that all ranks get the same
# bits, because DDP relies on it.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Each addition is rounded, so ``(a + b) + c`` can differ from ``a + (b + c)``, and the backends add in
#    different orders. Sums of small integers need no rounding, so any order gives the same bits.
#
#    .. listing:: gallery/right/training/order_of_sums.py
#       :part: solution
#
#    On each rank, the frame adds in the order of the ranks, so all ranks get the same bits. In a faster
#    transport, each rank may add a share, which the others copy.
#
# Three ranks run the solution:

output = launch("training/order_of_sums.py", ranks=3)

# %%
# The two backends add the fractions in different orders, so their sums are close but not equal. Those of the integers
# have the same bits, because no addition rounds.
#
# So with more than two ranks, compare the losses of two backends with a tolerance. The ranks of one backend must still
# agree bit for bit on the result of an all-reduce.
#
# .. admonition:: After this page you have decided
#
#    - with which backend you compare losses, with how many ranks bit for bit, and when with a tolerance;
#    - how the comparison proves that each training has used its own backend;
#    - which reductions your backend has, and with which error it refuses the others.
#
# Not run here: dtypes other than ``float32``, and more than three ranks. The backend is now right, but slow;
# :doc:`/communicate/a-backend-that-communicates` studies one that is fast.

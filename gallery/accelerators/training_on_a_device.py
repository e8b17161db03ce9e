"""
Training on the accelerator
===========================

Programs that train call the device and the backend in ways that no test of single operations covers. For example,
all collectives may be right while DDP trains wrongly, because futures do not know their device. This page trains in
the usual ways, compares the losses with gloo's on the CPU, and shows what each way asks of a device beyond
collectives, so that you can decide what to implement first.

.. diagram:: accelerators/training_on_a_device/diagram

Losses as on the CPU
--------------------

The worker trains in several ways, such as DDP and FSDP2, and in each of them twice: on the accelerator and on the CPU.
A way is a function whose first argument is the device. PyTorch chooses the backend by that device, so the same code
runs on both:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/accelerators/training_on_a_device/train.py
      :part: ways

   .. listing:: gallery/accelerators/training_on_a_device/train.py
      :part: checkpoint

To prove that the accelerator did the work, the worker also takes from the trace which calls ``simccl`` has
put into a stream:

.. listing:: gallery/accelerators/training_on_a_device/train.py
   :part: compare

All losses are compared without a tolerance. The table shows rank 1, because only the last rank of a pipeline
has a loss. The losses of ``pipeline`` are those of the micro-batches in one step, and the others those of one
step after another:
"""

import json

from launcher import launch
from result_table import show_table

outputs = launch(
    "training_on_a_device/train.py",
    ranks=2,
    timeout=110,
    expected_stderr="Time stats are currently only|Profiler record function",
    show=False,
)
results = [json.loads(text) for text in outputs]

rows = []
for way, (ours, theirs, calls) in results[1].items():
    equal = all(result[way][0] == result[way][1] for result in results)
    rows.append([way, f"{ours[0]:.4f}", f"{ours[-1]:.4f}", str(equal), ", ".join(f"``{x}``" for x in calls)])
show_table(["way", "first loss", "last loss", "equal to gloo's", "calls of simccl"], rows)

# sphinx_gallery_start_ignore
# DDP and FSDP2 are two ways to the same losses, and autocast rounds.
assert results[1]["ddp"][0] == results[1]["fsdp2"][0] != results[1]["ddp_with_autocast"][0]
# sphinx_gallery_end_ignore

# %%
# Each row says ``True``, so all losses have the same bits as on the CPU. Bits are equal here for three reasons:
# kernels of the CPU compute for the simulated device, gloo moves the data of both backends, and a sum of two ranks
# has only one order. On hardware, kernels add in another order, so compare with a tolerance there, and compare the
# bits of the ranks with each other.
#
# ``continued`` saves a checkpoint from the accelerator, and loads it there and on the CPU, so a model can move
# between both.
#
# What each way asks of a device
# ------------------------------
#
# Implement first what the programs of your users need besides collectives:
#
# .. list-table::
#    :header-rows: 1
#
#    * - way
#      - also needs
#    * - DDP
#      - Futures that know their device, because DDP waits for those of its all-reduces, and by default not
#        for the works. With ``find_unused_parameters`` also pinned memory.
#    * - FSDP2
#      - Streams and events from the module of the device, ``torch.sim.Stream`` here, ``ReduceOp.AVG``, and
#        storages that can be resized, because it frees the parameters that it has gathered.
#    * - HSDP
#      - A group for each dimension of a mesh, because HSDP is FSDP2 on a mesh of two dimensions. The two ranks here
#        have two copies of one shard, so nothing is gathered.
#    * - tensor parallelism
#      - Random numbers with a state of 16 bytes, a seed and an offset, if DTensor draws them.
#    * - pipeline
#      - Single messages, and several as one call, ``coalesced`` above. Since PyTorch 2.15 also ``ReduceOp.MIN``,
#        with which the ranks first agree whether all shapes are static.
#    * - autocast
#      - Rules that say in which type each operation runs.
#    * - checkpoint
#      - Copies to the host, and object collectives, for which the group has gloo.
#
# Test futures, ``ReduceOp.AVG`` and autocast, because PyTorch reports no error if they are wrong: DDP reads gradients
# too early (:doc:`futures`), gradients are sums instead of averages, or autocast casts nothing.
#
# Autocast
# --------
#
# Autocast, the last of these three, needs the most code. PyTorch looks up how to cast the inputs of an operation under
# a dispatch key of the device, here ``AutocastPrivateUse1``. If nothing is registered for this key, each operation
# fails under autocast. If only a fallthrough is registered, which passes the call on unchanged, programs run, but
# nothing is cast.
#
# So register a rule for each operation that needs one. PyTorch has lists of the operations for each rule, which CUDA
# uses, too, and a macro to register them for ``PrivateUse1``. Each of the first four macros below names a rule: cast
# the inputs to the lower type, cast them to float32, ask for a result of float32, or cast the inputs to the widest of
# their types:
#
# .. listing:: extension/simulated_accelerator/src/module.cpp
#    :part: autocast
#
# In the first table, the losses of ``ddp_with_autocast`` differ from those of ``ddp``, which shows that autocast
# casts.
#
# torch.compile without generated kernels
# ---------------------------------------
#
# The row ``compiled_ddp`` needed no code for the device, because the compiler has two parts. The first records the
# program as a graph; the compiler's backend ``aot_eager`` then runs the graph with the device's own kernels. Only the
# second part, *inductor*, generates kernels, so it needs a code generator for the device, which a module registers
# with ``register_backend_for_device``.
#
# A Work that a program may never wait for
# ----------------------------------------
#
# Compiled programs call *functional collectives*, and so does ``DTensor``. Such a call returns a tensor at once,
# and ``wait_tensor`` waits for it later. Meanwhile PyTorch keeps your ``Work`` in a registry, whose key is the storage
# of the result. This asks three things of a ``Work`` in C++:
#
# - Each call returns a ``Work``, whose ``wait()`` makes the current stream wait, on any thread, and without an
#   argument.
# - The ``Work`` lives as long as the registry needs it. ``wait_tensor`` of the result, or of a view of it, removes
#   the ``Work``.
# - If the program never calls ``wait_tensor``, the ``Work`` stays until the process ends, with all that it holds. So
#   let go of tensors and events when the operation ends, not in the destructor.
#
# Graphs and captured calls
# -------------------------
#
# To save the time of launches, a program can capture what it puts into a stream as a graph, as ``torch.cuda.graph``
# does, and replay it later.
# During a capture nothing runs, so no event that is recorded in it may be queried. In CUDA's default mode, a query of
# *any* event by another thread ends the capture with an error. Your watchdog is such a thread, because it queries
# events to notice timeouts, so it must not disturb a capture:
#
# - Ask ``isStreamCapturing`` of the guard in each call, and keep a captured call from the watchdog. It has no timeout
#   then.
# - Before the watchdog queries the events of earlier calls, set its thread to a mode that ignores the captures of other
#   threads (``cudaThreadExchangeStreamCaptureMode``).
# - Keep the memory of captured calls as long as the graph, which uses the same addresses in each replay.
#
# Errors for what does not work
# -----------------------------
#
# What your device or backend lacks must end in an error, and not in a wrong loss. The next worker calls four features
# that need more than this device and this backend have:
#
# .. listing:: gallery/accelerators/training_on_a_device/limits.py
#    :part: features

launch("training_on_a_device/limits.py", ranks=2, timeout=110)

# %%
# In PyTorch 2.14, the first error is only a ``KeyError`` of the compiler. To tell users what to do instead,
# ``torch.sim`` raises an error in its function ``_inductor_backend_init``, which the compiler calls first since
# PyTorch 2.15.
#
# In the order of the output, each feature needs this:
#
# - For generated kernels, write a backend of inductor, or let users take ``aot_eager``.
# - ``SyncBatchNorm`` has operators without kernels for the CPU, so a fallback finds nothing there. A device
#   needs kernels of its own for ``batch_norm_stats`` and the operators beside it.
# - Symmetric memory gives the ranks access to each other's memory, and PyTorch wants an allocator for it,
#   registered in C++ for the type of device.
# - ``shrink_group`` needs a backend that overrides ``supportsShrinking`` and ``shrink``.
#
# So let the programs of your users decide what you implement first, and let the rest fail with an error. After each
# feature that you add, compare the losses with those of the CPU, because a wrong future or a missing average raises
# no error.
#
# .. admonition:: After this page you have decided
#
#    - which ways to train your device and your backend support first;
#    - when your ``Work`` lets go of tensors and events, if a compiled program never waits;
#    - how the watchdog learns of captured calls;
#    - which unsupported features raise an error that says what to do instead;
#    - with which tolerance you compare losses, and how you see that all ranks still have equal bits.
#
# Not run here: hardware, graphs, more than two ranks, and offload to the CPU.

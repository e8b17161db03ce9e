"""
Reductions and options
======================

Look up here which reductions PyTorch requests, which dtypes two backends reduce with them, and what each option
of a call or a group means for a backend.

The reductions
--------------

A reduction arrives as a ``ReduceOp`` in the member ``reduceOp`` of the options. First implement the reductions that
your programs request; the last column names the features that pass each:

.. list-table::
   :header-rows: 1

   * - ``ReduceOp``
     - result
     - who passes it in PyTorch
   * - ``SUM``
     - the sum; the default of every function
     - DDP, tensor parallelism, FSDP2 for gradients of ``float16`` and ``float64``, and for all gradients on one rank,
       on the accelerator MTIA, and after ``set_force_sum_reduction_for_comms(True)``
   * - ``AVG``
     - the sum of the inputs, each divided first by the number of ranks, as the docstring of ``ReduceOp`` says; gloo
       divides the sum
     - FSDP2, for gradients of ``float32`` and ``bfloat16``, also between the nodes of hybrid sharding; ``mean`` of
       a DTensor
   * - ``PREMUL_SUM``
     - the sum of the inputs, each multiplied first by the factor in ``supplement_`` of the ``ReduceOp``
     - FSDP2, for ``float32`` and ``bfloat16`` after ``set_gradient_divide_factor``; between the nodes it then
       requests ``SUM``
   * - ``MIN``
     - the smallest element; which result a NaN gives is not defined
     - pipelining (since PyTorch 2.15), whose ranks agree whether all shapes are static; ``min`` and ``torch.equal``
       of DTensors
   * - ``MAX``
     - the largest element; as for ``MIN``
     - loss parallelism; ``max`` of a DTensor; FSDP1, for the infinity norm of gradients; DDP, with uneven inputs
   * - ``PRODUCT``
     - the product
     - ``prod`` of a DTensor
   * - ``BAND``, ``BOR``, ``BXOR``
     - the bits, combined with and, or, exclusive or
     - nothing in PyTorch, only programs

Not every dtype has every reduction. Two ranks try each reduction with each dtype, once with gloo and once with
``store``, the backend of :doc:`/right/smallest-backend`. Each cell names the backends that gave the right result; the
others raised an error:
"""

import json

from launcher import launch
from result_table import show_table

output, _ = launch("options_and_reductions/reductions.py", ranks=2, show=False)
show_table(*json.loads(output))

# sphinx_gallery_start_ignore
import re
from pathlib import Path

from torch._C._distributed_c10d import Backend
from torch.distributed import distributed_c10d

# The tables of options have all fields that Python knows.
rows = re.findall(r"^#    \* - (``.+``)$", Path("options_and_reductions.py").read_text(), re.M)
described = {*re.findall(r"``(\w+)``", " ".join(rows))}
structures = [x for name, x in vars(distributed_c10d).items() if name.endswith("Options")]
structures = [x for x in structures if x.__name__ != "ReconfigureOptions"] + [Backend.Options]
fields = {x for structure in structures for x in vars(structure) if not x.startswith("_")}
assert "rootRank" in fields and "group_name" in fields
assert fields <= described, fields - described
# sphinx_gallery_end_ignore

# %%
# Read the column of the reduction that your program needs. The column ``PREMUL_SUM``, for example, never names
# gloo, so a program that requests this reduction gets an error from gloo.
#
# Let your backend, too, raise an error for what it lacks, because a wrong result goes unnoticed.
# :doc:`/right/tensors-of-every-kind` shows how ``store`` reduces each dtype.
#
# If your programs reduce complex tensors, test ``dist.reduce`` as well, which passes the complex tensor itself.
# ``dist.all_reduce`` passes it as a view of real numbers. Because that is right only for ``SUM``, ``AVG`` and
# ``PREMUL_SUM``, ``dist.all_reduce`` refuses the other reductions before it calls the backend.
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/options_and_reductions/reductions.py
#       :part: reductions
#
# Options of a call
# -----------------
#
# Besides its tensors, a collective receives a structure of options, such as ``AllreduceOptions``, which ``Types.hpp``
# defines. ``send`` and ``recv`` have none. :doc:`every-operation` lists the fields of each structure, which have these
# meanings:
#
# .. list-table::
#    :header-rows: 1
#
#    * - field
#      - meaning, and who sets it
#    * - ``timeout``
#      - the limit for this call; ``kUnsetTimeout`` means that the timeout of the group holds. Of the
#        collectives of ``torch.distributed``, only ``barrier`` and ``monitored_barrier`` set it
#    * - ``asyncOp``
#      - whether the program asked for the work with ``async_op=True``; true if C++ made the options
#    * - ``reduceOp``
#      - the reduction, ``SUM`` by default
#    * - ``rootRank``
#      - the rank in the group from which tensors come or to which they go; Python translates the global rank
#    * - ``rootTensor``
#      - the position of the root's tensor in the list; always 0, because lists have one tensor
#    * - ``sparseIndices``
#      - the indices of a sparse tensor whose values are reduced; ``allreduce_sparse`` only
#    * - ``device_ids``
#      - where ``barrier`` may allocate a tensor, if it runs a collective on one; empty unless the program
#        passes it
#    * - ``device``
#      - the device whose backend runs a ``barrier``. ``dist.barrier`` sets it; PyTorch uses it to choose the
#        backend, which does not receive it
#
# Options of a group
# ------------------
#
# A program passes these arguments to ``init_process_group``. ``new_group`` also takes ``backend``, ``timeout``,
# ``pg_options`` and ``device_id``, and has ``group_desc``, a description for logs:
#
# .. list-table::
#    :header-rows: 1
#
#    * - argument
#      - meaning
#    * - ``backend``
#      - the name of a backend, or one name for each device: ``"cpu:gloo,cuda:nccl"``. Without it, the group
#        gets only the default backend of the device in ``device_id``, or else of the accelerator, or else of the
#        CPU; ``new_group`` takes the backend of the default group instead
#    * - ``timeout``
#      - the limit for each operation of the group, whose default is below this table;
#        :doc:`/right/timeouts-and-dead-ranks` shows which timeout applies when several are set
#    * - ``pg_options``
#      - an object of a class that the backend derives from ``Backend::Options``, for settings that only it has
#    * - ``device_id``
#      - the device of this rank, such as ``torch.device("cuda", local_rank)``, on which ``barrier`` then runs; the
#        text below this table says what else PyTorch does with it
#    * - ``init_method``, ``store``
#      - where the ranks meet: an address, such as the default ``env://``, or a store
#    * - ``rank``, ``world_size``
#      - the rank of this process, and the number of ranks; ``torchrun`` sets both for ``env://``
#    * - ``group_name``
#      - ignored
#    * - ``enable_reconfigure``
#      - whether the group waits for ``reconfigure`` before it connects; since PyTorch 2.14
#
# If a program passes ``device_id``, and ``supportsSplitting`` of the backend is true, PyTorch calls
# ``eagerConnectSingleDevice`` of the backend, so that it connects at once. If ``new_group`` then makes a group with
# the same backend, PyTorch passes the backend of the default group in ``split_from``, so that the new one can be
# split from it.
#
# The default timeout
# -------------------
#
# If a program passes no ``timeout``, the name of the backend decides which timeout the
# group gets. ``new_group`` and ``split_group`` follow the
# same rule, even if the name comes from the parent, and do not take the timeout of the parent:
#
# * 10 minutes if ``backend`` is ``"nccl"`` (since PyTorch 2.15, also ``"nccl-legacy"`` and NCCL's other backends), or
#   if ``backend`` is left out and ``device_id`` is a CUDA device;
# * 30 minutes otherwise, even for NCCL in ``"cpu:gloo,cuda:nccl"``.
#
# To change the timeout of an existing group, for example before a long checkpoint, call
# ``dist.set_timeout(timedelta(hours=1), group)`` on every rank of the group. The new timeout holds for later calls of
# each backend that overrides ``setTimeout``, as those of gloo and NCCL do; others log a warning. The function is new in
# PyTorch 2.14.
#
# What the create function receives
# ---------------------------------
#
# Some of the arguments above reach a backend through its *create function*, which you register under its name. To
# receive ``pg_options``, register it with ``extended_api=True``, because PyTorch otherwise drops them silently:
#
# .. diagram:: tutorial/options_and_reductions/diagram
#
# With ``extended_api=True``, the function gets two arguments. The second is the program's ``pg_options`` or ``None``,
# and the first a ``DistributedBackendOptions`` with these fields:
#
# .. list-table::
#    :header-rows: 1
#
#    * - field
#      - meaning
#    * - ``store``
#      - a store whose keys no other backend of the group sees
#    * - ``group_rank``, ``group_size``
#      - the rank in the group, and the number of its ranks
#    * - ``timeout``
#      - ``timeout`` of ``init_process_group`` or ``new_group``, or the default above; in C++ a ``float`` of seconds
#    * - ``group_id``
#      - the name of the group, which is equal on all of its ranks
#    * - ``global_ranks_in_group``
#      - the global rank of each rank; empty for the default group
#    * - ``process_group``
#      - the group that will own the backend; since PyTorch 2.14
#    * - ``split_from``
#      - the backend of the default group, if the new one can be split from it, which :doc:`releases` explains; since
#        PyTorch 2.14
#    * - ``enable_reconfigure``
#      - whether the backend waits for ``reconfigure`` before it connects; since PyTorch 2.14
#
# The options of a backend
# ------------------------
#
# The backend keeps its options, an object of ``Backend::Options`` or of a derived class, and returns them from
# ``getBackendOptions``. PyTorch passes ``pg_options`` on unchanged, so the create function must fill in the timeout,
# the name and the ranks of the group. ``Backend::Options`` has these fields:
#
# .. list-table::
#    :header-rows: 1
#
#    * - field
#      - meaning
#    * - ``backend``
#      - the name of the backend, which cannot be changed
#    * - ``timeout``
#      - the timeout of the group; in Python it is called ``_timeout``
#    * - ``group_name``, ``group_desc``
#      - the name of the group, and a description for logs
#    * - ``global_ranks_in_group``
#      - as in ``DistributedBackendOptions``
#    * - ``use_pg_for_symm_mem_rendezvous``
#      - whether symmetric memory exchanges its handles through the backend instead of the store
#    * - ``enable_reconfigure``
#      - as in ``DistributedBackendOptions``; since PyTorch 2.14
#
# Since PyTorch 2.14, ``split_group`` without ``pg_options`` gives the new group a copy of its parent's options, which
# ``clone`` of your class makes: :ref:`copied-options`.
#
# Not run here: NCCL, and the features in the first table.

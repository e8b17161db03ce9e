"""
A device for PyTorch
====================

Before a backend can launch anything in a stream, PyTorch must know the device, its streams and its memory. A
missing part shows up late: on a device that cannot resize a storage, for example, FSDP fails when it first frees
parameters.
This page follows the code of the simulated device, about :count:`lines-of-device` lines of C++, in the order in
which PyTorch needs it. If your accelerator already runs ``torch.ones``, use the table to check which parts a
communication backend relies on; otherwise, use it as a plan for the first weeks.

PyTorch reserves the device type ``PrivateUse1`` for devices that are not part of its own code:

.. list-table::
   :header-rows: 1

   * - part
     - registered with
     - what needs it
   * - name, Python module
     - ``rename_privateuse1_backend``, ``_register_device_module``
     - ``torch.device("sim")``, ``torch.sim``
   * - guard
     - ``C10_REGISTER_GUARD_IMPL``
     - current device and stream, events; futures; the backend
   * - allocator
     - ``c10::SetAllocator``
     - every tensor; ``record_stream``
   * - hooks
     - ``RegisterPrivateUse1HooksInterface``
     - pinned memory, random numbers, FSDP
   * - kernels
     - ``TORCH_LIBRARY_IMPL(aten, PrivateUse1, …)``
     - every operation

Not all five parts matter equally to a backend. It needs the guard, because streams and events go through it, and the
allocator, for its outputs and for ``record_stream``. It also needs one kernel, a copy that runs in the stream. The
hooks and other kernels serve programs on the device. If your device already works, read the sections about the guard
and the allocator first.

.. diagram:: accelerators/device/diagram

Name and module
---------------

Importing the Python package registers the name and the module:

.. listing:: extension/simulated_accelerator/simulated_accelerator/__init__.py
   :part: registration

From then on, programs can use ``torch.accelerator`` and need not name the device, because PyTorch calls
``device_count`` and ``is_available`` of the module. Other parts of PyTorch look up further functions by name;
``torch.autocast``, for example, calls ``get_amp_supported_dtype``:

.. admonition:: Functions of the module
   :collapsible: closed

   .. listing:: extension/simulated_accelerator/simulated_accelerator/__init__.py
      :part: module

A program then uses the device as it uses any accelerator:

.. listing:: gallery/accelerators/device/module.py
   :part: module
"""

from launcher import run_program

run_program("device/module.py")

# %%
# Loading before the first backward pass
# --------------------------------------
#
# When the first backward pass runs, autograd starts one thread for each device that is registered by then, and none
# later. A device that is imported after that cannot run a backward pass, so ``sim`` refuses to load:
#
# .. listing:: gallery/accelerators/device/late.py
#    :part: late

run_program("device/late.py")

# %%
# Import the device at the top of the program, or let an entry point of the group ``torch.backends`` do it,
# which ``import torch`` loads unless ``TORCH_DEVICE_BACKEND_AUTOLOAD=0``:
#
# .. listing:: extension/simulated_accelerator/pyproject.toml
#    :part: entry-point
#
# Streams and events: the guard
# -----------------------------
#
# A backend orders streams with ``c10::Stream``, ``c10::Event`` and the futures of c10d, and all three reach the
# device through one class, ``DeviceGuardImplInterface``. To a backend, this class is therefore the most important
# part. Its name comes from its other use: a *guard* makes a device or a stream current, and restores the one before.
#
# Each thread has its own current stream on each device. At first that is the stream with number 0, about which
# ``c10/core/Stream.h`` guarantees that it is always valid:
#
# .. listing:: extension/simulated_accelerator/src/guard.hpp
#    :start-at: Stream getStream(Device device) const override {
#    :end-before: Stream getDefaultStream(
#
# A backend calls ``record`` and ``block`` on the thread of the program, so your guard must keep the promise of
# ``DeviceGuardImplInterface.h`` that both only put a command into the queue of the stream. An event that was never
# recorded counts as reached. If an event is recorded again, a stream that already waits keeps waiting for the earlier
# version.
#
# In the code, ``driver`` is what lies below PyTorch, ``queue`` finds the driver's stream of a ``c10::Stream``, and a
# *mark* is a place in such a stream: the number of tasks that the stream must have finished:
#
# .. listing:: extension/simulated_accelerator/src/guard.hpp
#    :start-at: void record(void** event
#    :end-before: void destroyEvent(
#
# Programs do not name the guard. The next program makes first a device current and then a stream, records two events
# in that stream, and waits for the second event. Each line of the output depends on the guard:
#
# .. listing:: gallery/accelerators/device/guard.py
#    :part: guard

run_program("device/guard.py")

# %%
# Memory: the allocator
# ---------------------
#
# The allocator gives each block to the stream that is current. When the tensor is deleted, that stream can
# get the block again at once, because its order protects the old owner's kernels:
#
# .. listing:: gallery/accelerators/device/memory.py
#    :part: memory

run_program("device/memory.py")

# %%
# This reuse is the reason why a backend must keep the memory of a call, as :doc:`memory-lifetime` shows.
#
# Pinned memory and random numbers: the hooks
# -------------------------------------------
#
# The hooks are the methods of ``PrivateUse1HooksInterface``, through which PyTorch asks a device for three more
# things: pinned memory of the host, from which a stream can copy; a storage that changes its size, because FSDP frees
# parameters by making their storage empty; and a generator of random numbers:
#
# .. admonition:: The hooks
#    :collapsible: closed
#
#    .. listing:: extension/simulated_accelerator/src/hooks.hpp
#       :part: hooks
#
# The next program uses all three. Like FSDP, it makes a storage empty, so the second line of its output goes from 16
# bytes to 0 and back:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/device/hooks.py
#       :part: hooks

run_program("device/hooks.py")

# %%
# Kernels and one fallback
# ------------------------
#
# PyTorch 2.15 has more than 3,000 operators, counting overloads, so no device begins with all of them. The simulated
# one implements about twenty. A device must have the copy, and the operators that create tensors or views or change a
# storage, because nothing can take their place.
#
# For everything else, PyTorch's ``cpu_fallback`` copies the arguments to the host, runs the kernel of the CPU, and
# copies the results back.
#
# The fallback makes the host wait, so it would hide the bugs that the pages on accelerators are about. Therefore
# ``fill_``, ``zero_`` and, for floating-point tensors, four arithmetic operators run in the stream:
#
# .. admonition:: The registrations, the fallback, the kernels and the copy
#    :collapsible: closed
#
#    ``torch.add(a, b)``, ``a + b`` and ``a.add_(b)`` all arrive at ``add.out``, so one kernel serves all three:
#
#    .. listing:: extension/simulated_accelerator/src/kernels.hpp
#       :start-at: TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
#       :end-before: // A copy resolves lazy
#
#    An operator that draws random numbers takes the fallback, which passes it the generator of the device:
#
#    .. listing:: extension/simulated_accelerator/src/kernels.hpp
#       :start-at: inline void fallback(
#       :end-before: // Runs an operation
#
#    .. listing:: extension/simulated_accelerator/src/kernels.hpp
#       :start-at: // Kernels that run in the stream
#       :end-before: // All that has no kernel here
#
#    .. listing:: extension/simulated_accelerator/src/kernels.hpp
#       :start-at: // Runs an operation
#       :end-before: // [/kernels]
#
#    .. listing:: extension/simulated_accelerator/src/kernels.hpp
#       :part: copy
#
# The next program prints what two operators launch: ``add``, which has a kernel, and ``cumsum``, which takes the
# fallback:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/device/kernels.py
#       :part: program

run_program("device/kernels.py")

# %%
# The driver: forks and late errors
# ---------------------------------
#
# Below all five parts is a driver, which runs the streams. Two of its properties reach your users: what happens after
# a fork, and when an error appears. The driver of the simulation knows nothing of PyTorch: a stream is a queue that
# threads serve, and one mutex guards all streams, so that a trace has one order:
#
# .. admonition:: ``launch``, events, and the threads that serve streams
#    :collapsible: closed
#
#    .. listing:: extension/simulated_accelerator/src/driver.hpp
#       :part: launch
#
#    .. listing:: extension/simulated_accelerator/src/driver.hpp
#       :part: events
#
#    .. listing:: extension/simulated_accelerator/src/driver.hpp
#       :part: serve
#
# A fork copies the memory of the process, but only the thread that calls it. The threads that serve streams are
# missing in the child, so its streams would stand still forever. The driver starts threads only with the first
# launch, so a fork before that is harmless. In the next program, ``in_a_fork`` forks before the first use of the
# device and after it. Each child calls ``torch.ones`` and prints the result or the error:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/device/forks.py
#       :part: forks

run_program("device/forks.py")

# %%
# The host checks arguments before the launch, because an error in the stream is raised far from its cause. If a
# kernel fails all the same, every later call that makes the host wait raises the error. The next program names a
# device that does not exist. Then it launches a ``torch.add`` that fails, and calls ``synchronize`` twice:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/accelerators/device/errors.py
#       :part: errors

run_program("device/errors.py")

# %%
# Both calls of ``synchronize`` raise the error of ``torch.add``, which had returned before. So the tasks that your
# backend launches must catch their exceptions.
#
# With the guard, the allocator and a copy in the stream, the device has all that a communication backend relies on.
# :doc:`five-steps` builds one on it.
#
# .. admonition:: After this page you have decided
#
#    - which parts of the table your device already has;
#    - how a program loads the device, and what happens after a backward pass;
#    - which operators run in the stream from the beginning, and which may take the fallback;
#    - when the driver starts threads, and which error a forked child gets;
#    - which calls raise the error of a kernel that has failed.
#
# Not run here: devices other than ``sim``, such as OpenReg, the example in PyTorch's repository.

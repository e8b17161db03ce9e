"""
Port to a real accelerator
==========================

Use this page when you have a communication library for an accelerator, such as an NPU. If you begin with an empty file,
the cause of a wrong first sum can lie in your device, your library or your backend. So the page begins with a project
that passes its checks before you write a line, because a simulated device takes the place of yours. Then it lists what
to replace, in which order, and what a simulation cannot show you.

.. diagram:: accelerators/to_hardware/diagram

From a zip file to passing checks
---------------------------------

Download :doc:`the project with the name acme <acme-accelerator.zip>`. It has the layout of
:doc:`/tutorial/next-steps` and the backend of this part, ``simccl``, under the name ``acme``.
It serves devices that are new to PyTorch, and also those that PyTorch knows, such as CUDA.

The project needs Linux, a C++20 compiler, and an environment with PyTorch. Its ``README.md`` begins with three
commands, which install the tools, compile the simulated device and the backend, and run the checks. On two busy cores,
the compilation took 3 to 8 minutes, and the checks 4. Apart from the tools, nothing is downloaded.

Most of the project stays as it is. The table says what you change:

.. list-table::
   :header-rows: 1

   * - part of the project
     - what it is
     - you
   * - ``cuda/``
     - the headers of a device and a library: CUDA and NCCL
     - copy it, and replace what it calls
   * - ``sim/``
     - the same for the simulation
     - keep it, to tell a bug of your library from one of the backend
   * - ``src/registration.cpp``
     - the name of the backend, and its options
     - add those of your library
   * - ``streams/`` of the package ``c10d-frame``
     - the steps of a call: order, memory, events, works, futures, timeouts
     - keep it
   * - ``frame/`` of the package ``c10d-frame``
     - the operations of c10d, checks of arguments, rendezvous
     - keep it
   * - ``simulated_accelerator/``
     - the device ``sim``
     - keep it for tests without hardware

What to replace: the device and the library
-------------------------------------------

Two headers know the hardware: ``device.hpp`` names the runtime, and ``library.hpp`` calls the library. Both are in
one folder, such as ``sim/`` or ``cuda/``. The build takes the folder that the environment variable ``BUILD_FOR`` or its
default in ``setup.py`` names.

PyTorch must know your device before a backend can use it. If your device is new to PyTorch, compare your runtime with
this table, which names for each purpose what PyTorch asks for, and what ``sim`` and CUDA have:

.. admonition:: The device, function by function
   :collapsible: closed

   .. list-table::
      :header-rows: 1

      * - purpose
        - simulated device
        - CUDA
        - PyTorch asks your device for
      * - a stream
        - ``Queue``, served by threads
        - ``cudaStream_t``
        - ``getStream``, ``exchangeStream``, ``getNewStream``, ``getStreamFromGlobalPool``,
          ``getStreamNativeHandle``
      * - record an event
        - ``driver.launch`` of a task that notes the time
        - ``cudaEventRecord``
        - ``record``, ``destroyEvent``
      * - make a stream wait
        - ``driver.wait(queue, mark)``
        - ``cudaStreamWaitEvent``
        - ``block``
      * - ask an event
        - ``driver.reached(mark)``
        - ``cudaEventQuery``
        - ``queryEvent``, ``queryStream``
      * - make the host wait
        - ``driver.wait(mark)``
        - ``cudaEventSynchronize``
        - ``synchronizeEvent``, ``synchronizeStream``, ``synchronizeDevice``
      * - run a kernel
        - ``Stream::launch``
        - ``kernel<<<..., stream>>>``
        - operators for ``PrivateUse1``, and a fallback for the others
      * - memory that is used again
        - ``Pool``
        - ``CUDACachingAllocator``
        - a ``c10::DeviceAllocator``
      * - memory that other streams use
        - ``Pool::record``
        - ``recordStream`` of the allocator
        - ``recordDataPtrOnStream`` and the operator ``record_stream``
      * - memory of the host for copies
        - ``PinnedAllocator``
        - ``cudaHostAlloc``
        - ``isPinnedPtr`` and ``getPinnedMemoryAllocator``
      * - change a storage's size
        - ``resizePrivateUse1Bytes``
        - has code of its own
        - ``resizePrivateUse1Bytes``
      * - rows of ``torch.profiler``
        - ``driver.profile``
        - CUPTI, through Kineto
        - a ``libkineto::IActivityProfiler``, and ``REGISTER_PRIVATEUSE1_PROFILER``

   Methods named without a class are those of ``DeviceGuardImplInterface``; pinned memory and storages belong to
   ``PrivateUse1HooksInterface``. :doc:`device` shows them in the order in which PyTorch needs them.

   The last row is optional. With it, ``profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])``
   shows each kernel and each collective on its stream, and which operation launched it. Some of the headers lie in
   ``torch/include/kineto``, which ``CppExtension`` does not search, and ``privateuse1_profiler.h`` is empty unless
   you define ``USE_KINETO``.

PyTorch's classes for events and streams work with every registered device, and so do those for *guards*, which make a
device or a stream current for a block. So your ``device.hpp`` differs from that of the simulation only in the type,
the name and the native stream:

.. listing:: extension/stream_collectives/src/sim/device.hpp
   :part: device
   :end-before: inline NativeStream native

For CUDA, this part of ``device.hpp`` is as follows:

.. not-executed::

   The tests compile this header. It has not run, because there was no GPU.

   .. listing:: starter_accelerator/cuda/device.hpp
      :part: device

Because your library does not know PyTorch's streams, ``native`` in ``device.hpp`` takes the handle of a stream from
``getStreamNativeHandle``, and casts it to the type that the library takes.

The second header, ``library.hpp``, implements the *communicator*, an interface in the shape of NCCL. Rank 0 creates
an id for all ranks, and a call enqueues on a stream and returns. Another thread, the *watchdog*, asks the
communicator for errors and calls its ``abort``. If your library has functions like NCCL's, as RCCL has, most of the
work is to rename them in the implementation for NCCL:

.. admonition:: The communicator, and its implementation for NCCL
   :collapsible: closed

   .. listing:: extension/frame/c10d_frame/include/streams/communicator.hpp
      :part: communicator

   ``streams/calls.hpp`` makes what the interface lacks: an all-to-all, a gather and a scatter are messages in one
   group. By default, a barrier is a sum of one byte; override ``barrier`` if your library has its own. The NCCL that
   comes with PyTorch 2.15 has functions for the first three, so add them to the interface if yours has them, too.

   .. not-executed::

      The tests compile it and link it with the NCCL that pip installs beside PyTorch. It has not run, because there
      was no GPU.

      .. listing:: starter_accelerator/cuda/library.hpp

Before you write the methods of the communicator, find out what your library offers for each purpose, and what it
expects:

.. admonition:: The library, function by function
   :collapsible: closed

   .. list-table::
      :header-rows: 1

      * - purpose
        - ``simccl``
        - NCCL
        - find out about your library
      * - connect the ranks
        - gloo, through the store
        - ``ncclGetUniqueId``, which one rank shares through the store, and ``ncclCommInitRankConfig``
        - a deadline, so that a missing rank is an error
      * - run a collective in a stream
        - two tasks in the stream
        - ``ncclAllReduce(..., comm, stream)``
        - a call that returns at once, with a stream as its argument
      * - run several calls as one
        - ``group_end``: begin all, then wait for each
        - ``ncclGroupStart``, ``ncclGroupEnd``
        - messages that make progress side by side
      * - split a group
        - another gloo
        - ``ncclCommSplit``, on all ranks of the parent
        - which ranks must call it
      * - average, premultiplied sum
        - a division or a product before the sum
        - ``ncclAvg``, ``ncclRedOpCreatePreMulSum``
        - reductions, or kernels around them: :doc:`/library/types-and-reductions`
      * - operations that the library lacks
        - gloo has them
        - a barrier is an all-reduce of one number; an all-to-all of unequal parts is sends and receives in one call
        - which it has, and whether it takes lists
      * - notice an error
        - the exception of gloo's work
        - ``ncclCommGetAsyncError``
        - a call that does not wait
      * - end calls that hang
        - gloo's deadline
        - ``ncclCommAbort``
        - an abort that another thread may call
      * - keep memory alive
        - ``Stash``
        - ``InputTensorShelf`` of PyTorch's ``nccl``, ``TensorShelf`` of ``nccl-legacy``
        - how to learn that the library has read the input

The order of work
-----------------

Now that you know what to replace, write ``library.hpp`` one function at a time, so that a bug lies in the function that
you wrote last. The whole order is:

1. Let the checks of the project pass with ``sim``, and commit that.
2. Copy ``cuda/`` to a folder with the name of your device, name it in ``setup.py``, and make it compile. Methods that
   you have not written yet can throw, because an error of the library ends the group and names the call.
3. Write ``unique_id``, which creates the id on rank 0, and ``connect``, which starts the communicator. ``connect`` gets
   a deadline and must keep it, because a missing rank must lead to an error. You write no code to share the id: the
   frame's rendezvous does that. :doc:`groups-and-meshes` says from where a communicator gets its device.
4. Write ``all_reduce``, and run the program of the section "Checks for the first week" below. Its first five
   lines show whether the order of streams is right. The check of the lifetime of memory and those after it also need
   ``all_gather`` and ``broadcast``.
5. Write ``async_error`` and ``abort``, and kill a rank to test them. The watchdog asks for errors every 50 ms; if
   there is one, it fails all open calls and aborts. Because the watchdog has a thread of its own, a mutex must guard
   the communicator, as in the implementation for NCCL.
6. Write the other methods, and run the suite with your device: ``-k all_reduce``, then ``-k streams``, then all.
7. Train: :doc:`training-on-a-device`.

If your library differs from NCCL, you may have to do more:

- If its calls have another shape, change ``streams/``. Copy that folder from the package into the project, where the
  compiler looks first.
- If it gives up by itself, pass it the timeout of each call, which ``group_start`` gets. This timeout is a second
  longer than the watchdog's, because the error of the watchdog says more.
- If it has no average, divide in a kernel before the sum, as :doc:`/library/types-and-reductions` shows, or let
  ``can_reduce`` refuse it.

Checks for the first week
-------------------------

A backend can be right only if its device is. So check the device alone first, in items 1 and 2, and then the backend,
one property at a time:

1. A program with two streams and an event computes the right result, and so does a backward pass.
2. Freed memory is used again only when the streams that were recorded for it have reached the point at which it was
   freed.
3. A sum of two ranks is right when the input is late, and when another stream than the default one calls
   ``wait`` and then reads the result.
4. Inputs may be dropped at once after an asynchronous call.
5. Callbacks of futures see the result, and DDP has the same gradients on all ranks.
6. ``is_completed`` is true only when every stream may read.
7. A rank that never calls leads to an error on the others within the timeout, and all processes can end.
8. Groups, splits and batches of messages work in every order that your backend allows.

The next program checks the first six items, some of them in two lines. Only two names in it belong to the simulation,
those of the module and the backend. Replace them with yours. Hardware has no gates, so the program makes a stream late
with other work:

.. listing:: gallery/accelerators/to_hardware/first_checks.py
   :part: names

.. listing:: gallery/accelerators/to_hardware/first_checks.py
   :start-at: def late_numbers():
   :end-before: def events_order_streams():

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/accelerators/to_hardware/first_checks.py
      :start-at: def events_order_streams():
      :end-before: # [/checks]
"""

from launcher import launch

launch("to_hardware/first_checks.py", ranks=2)

# %%
# Every line says ``right``, so each check has seen the late numbers. A check with another result prints ``WRONG``
# instead. By hand, the program was also run with five rules of this part broken, one at a time, such as the wait
# for the input, and failed each time.
#
# Without gates, a check finds a bug only if the stream is late enough. Measure how long ``late_numbers``
# takes on your device. If the host needs longer to launch the rest of a check, let ``late_numbers`` add more often.
# Then run the suite of :doc:`/communicate/test-your-backend` with ``--device``, which also covers items 7 and 8 of
# the list, and train as :doc:`training-on-a-device` does.
#
# What a simulation cannot show
# -----------------------------
#
# Hardware has properties that the simulated device lacks, so no check on it finds a bug in how you handle them:
#
# - **Order of memory.** All streams here share one mutex, so a task sees all that ended before it. On
#   hardware, a kernel that shares memory with the host or with another device needs fences.
# - **Concurrent kernels.** Each task here that can run gets a thread. On a device, communication takes compute units
#   from the computation, and a kernel that waits for a peer does not give them back. If two such kernels cannot run at
#   the same time, groups wait for each other although their streams do not, so the deadlock of :doc:`order-and-abort`
#   would come back.
# - **Registered memory.** A network card reads memory only after its registration, which takes time. NCCL
#   has ``ncclCommRegister`` and ``ncclMemAlloc`` for it, and PyTorch's backend can register what the
#   allocator gets. Freed memory must then be deregistered before the device takes it back.
# - **Graphs.** What a program captures from a stream runs only in a replay, so a watchdog must not query the events of
#   captured calls: :doc:`training-on-a-device`.
# - **Broken devices.** A kernel that throws here ends up as an error of the calls that wait later. On
#   hardware, one wrong kernel can make all later calls of the process fail, also those that would clean up.
# - **Time.** A time line of this part shows an order. Only a measurement on the device tells whether overlap
#   gains anything.
#
# .. admonition:: After this page you have decided
#
#    - whether your library fits the communicator, or ``streams/`` must change;
#    - from where a communicator gets its device;
#    - which reductions your library has, and which a kernel adds or ``can_reduce`` refuses;
#    - which call of your library ends a collective that hangs, and which thread may make it;
#    - how long ``late_numbers`` must take on your device, so that the checks find a bug.
#
# Not run here: CUDA, NCCL and any hardware. The project's code for NCCL is compiled and linked only. The suite's checks
# of streams last ran on a GPU by hand: in November 2026 on an NVIDIA H200, with gloo and PyTorch 2.11.

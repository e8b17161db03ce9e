"""
Port to a real accelerator
==========================

Use this page when you port a backend to an accelerator of your own, such as an NPU. Its tables say what takes the
place of each part of the simulation, and its lists say what a simulation could not show you and what to check first.

.. diagram:: accelerators/to_hardware/diagram

The device
----------

.. list-table::
   :header-rows: 1

   * - purpose
     - simulated device
     - CUDA
     - PyTorch asks your device for
   * - a stream
     - ``Queue``, served by a thread
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

Methods named without a class are those of ``DeviceGuardImplInterface``; pinned memory and storages
belong to ``PrivateUse1HooksInterface``. :doc:`device` shows them in the order in which PyTorch needs them.

The last row is optional. With it,
``profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])``
shows each kernel and each collective on its stream, and which operation launched it. Some of the headers lie in
``torch/include/kineto``, which ``CppExtension`` does not search, and ``privateuse1_profiler.h`` is empty
unless you define ``USE_KINETO``.

The backend
-----------

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
     - a task on the stream's thread
     - ``ncclAllReduce(..., comm, stream)``
     - a call that returns at once, with a stream as its argument
   * - run several calls as one
     - ``coalesced``: begin all, then wait for each
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

Both halves meet in the handle of a stream: the backend gets it from ``getStreamNativeHandle``, and casts it
to the type that the library takes. :doc:`five-steps` shows that line.

To begin, take the folders ``extension/frame`` and ``extension/stream_collectives`` from the zip file at the
end of :doc:`five-steps`, and replace the names ``simccl`` and ``sim``. Write anew the three places below, which hold
most of what relies on gloo or on the simulation. Then adapt what names these, such as the type of ``library_`` in
``group.hpp``, and remove ``connect`` from ``__init__.py``.

- **The calls**, in ``library.hpp``. ``begin`` calls gloo as a ``c10d::Backend`` that Python has made, because
  PyTorch's packages lack gloo's headers. Your library has headers of its own, so let ``begin`` call it with the
  communicator, the stream, and the addresses and sizes that ``LibraryCall`` keeps. Let ``can_reduce`` refuse what your
  library cannot reduce.

  On the host, ``begin`` divides the inputs of an average, and ``end`` copies results out of
  the call's own memory. On your device, launch a kernel for each in the same stream.
- **The start**, in ``registration.cpp``. If your ranks share a unique id, they can hang when a rank is missing, or read
  the id of an earlier group. The frame's ``Rendezvous`` prevents both. So keep ``connect``, share the id as the prefix
  is shared, and let ``start_library`` create the communicator. :doc:`/library/start-a-library` shows how a library
  is started, and :doc:`groups-and-meshes` from where a communicator gets its device.

  Close the communicator in ``shutdown``, because ``simccl`` has no engine that would call ``leave``.
- **The end of a call**, in ``group.hpp``. A stream of the simulation runs ``run_in_stream``, code of the host that sets
  ``began`` and ``ended`` of a ``Call``, or its error. The stream of your device does not run such code for a call of
  the library, so let ``watch`` set them. Record one more event before the call. In each round, ask the library for
  errors, and then query both events: when the stream has reached the first, the call has begun, and its
  timeout runs; when it has reached the second, the call has ended.

  An error belongs to the communicator and not to a call, so it fails all open calls. ``wait`` may come before the
  watchdog, so give each work access to the communicator, and let ``exception`` ask the library, too.

Step 3 of :doc:`five-steps` is then one more event and a call of the library; the other four stay as they are.

Checks for the first week
-------------------------

Begin with the device alone, then add the backend, and add one property at a time:

1. A program with two streams and an event is right, and so is a backward pass. No backend can be right before
   that.
2. Freed memory is used again only when the streams that were recorded for it have reached the point at which it was
   freed.
3. A sum of two ranks is right when the input is late, and when another stream than the default one calls
   ``wait`` and then reads the result.
4. Inputs may be dropped at once after an asynchronous call.
5. Callbacks of futures see the result, and DDP has the same gradients on all ranks.
6. ``is_completed`` is true only when every stream may read.
7. A rank that never calls leads to an error on the others within the timeout, and all processes can end.
8. Groups, splits and batches of messages work in every order that your backend allows.

The next program makes the first six checks. Only the module and the backend have names of the simulation, so replace
these two with yours. Hardware has no gates, so here a stream is late because it has much to do first:

.. listing:: gallery/accelerators/to_hardware/first_checks.py
   :part: names

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/accelerators/to_hardware/first_checks.py
      :part: checks
"""

from launcher import launch

launch("to_hardware/first_checks.py", ranks=2)

# %%
# Without gates, a check finds a bug only if the stream is late enough. Measure how long ``late_numbers``
# takes on your device. If the host needs longer to launch the rest of a check, let ``late_numbers`` add more often.
# Then run the suite of :doc:`/communicate/test-your-backend` with ``--device``, which also covers items 7 and 8 of
# the list, and train as :doc:`training-on-a-device` does.
#
# What a simulation cannot show
# -----------------------------
#
# - **Order of memory.** All streams here share one mutex, so a task sees all that ended before it. On
#   hardware, a kernel that shares memory with the host or with another device needs fences.
# - **Concurrent kernels.** Each stream here has a thread of its own, so everything that may run does run. On
#   a device, communication takes compute units from the computation, and a kernel that waits for a peer keeps
#   them. If two such kernels cannot run at the same time, groups wait for each other although their streams do
#   not, so the deadlock of :doc:`order-and-abort` comes back. This is reasoning, and no sample shows it.
# - **Registered memory.** A network card reads memory only after its registration, which takes time. NCCL
#   has ``ncclCommRegister`` and ``ncclMemAlloc`` for it, and PyTorch's backend can register what the
#   allocator gets. Freed memory must then be deregistered before the device takes it back.
# - **Graphs.** A program can capture a stream and replay it later. Nothing runs during the capture, so a
#   watchdog must not ask for the events of captured calls. The guard says with ``isStreamCapturing`` when
#   that is the case.
# - **Broken devices.** A kernel that throws here ends up as an error of the calls that wait later. On
#   hardware, one wrong kernel can make all later calls of the process fail, also those that would clean up.
# - **Time.** A time line of this part shows an order. Only a measurement on the device tells whether overlap
#   gains anything.
#
# The checks of streams in the suite of :doc:`/communicate/test-your-backend` last ran on a GPU, an
# NVIDIA H200, in November 2026, with PyTorch 2.11. They used gloo, because NCCL refuses two ranks on one GPU by
# default. They found that, with gloo, ``is_completed`` of a work on the GPU was true before the data had arrived,
# that a work which the program did not keep lost its data, and that an all-gather of CUDA tensors ended the process
# with ``SIGSEGV``. The checks of order, of late inputs and of futures passed.
#
# Not run here: CUDA, NCCL and any hardware. By hand, the check program was run on the simulated device with
# each of the rules ``input``, ``output``, ``lifetime``, ``devices`` and ``completion`` broken, and failed each time.
# The columns about CUDA and NCCL follow the headers of PyTorch, and ``nccl.h`` of the version that PyTorch
# 2.15 comes with.

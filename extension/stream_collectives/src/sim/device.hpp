#pragma once

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "simulated_accelerator/include/stream.hpp"

// [device]
// The runtime of the device: the only header that names one. PyTorch has these classes for
// each device that registers a c10::impl::DeviceGuardImplInterface, so a port replaces the
// type, the name and the native stream.
//
//   here                    what your runtime has            CUDA
//
//   kType, kName            PrivateUse1 and its new name     kCUDA, "cuda"
//   NativeStream            what your library enqueues on    cudaStream_t
//   Event                   record, wait, query              cudaEvent_t
//   Guard, StreamGuard      the current device and stream    cudaSetDevice
//   memory of the host      pinned, for a library that copies through it:
//                           tensor.pin_memory()              cudaHostAlloc
namespace device {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr const char* kName = "sim";

using NativeStream = sim::Stream*;
using Event = c10::Event;
using Guard = c10::impl::VirtualGuardImpl;
using StreamGuard = c10::StreamGuard;

inline NativeStream native(const c10::Stream& stream) {
  return static_cast<NativeStream>(Guard(kType).getStreamNativeHandle(stream));
}

} // namespace device
// [/device]

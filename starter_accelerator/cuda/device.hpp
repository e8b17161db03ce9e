#pragma once

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cuda_runtime.h>

// [device]
namespace device {

constexpr auto kType = c10::DeviceType::CUDA;
constexpr const char* kName = "cuda";

using NativeStream = cudaStream_t;
using Event = c10::Event;
using Guard = c10::impl::VirtualGuardImpl;
using StreamGuard = c10::StreamGuard;

inline NativeStream native(const c10::Stream& stream) {
  return static_cast<NativeStream>(Guard(kType).getStreamNativeHandle(stream));
}

} // namespace device
// [/device]

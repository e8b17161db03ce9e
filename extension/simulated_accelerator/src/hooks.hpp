#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "memory.hpp"

namespace sim {

// What PyTorch asks an accelerator outside of streams and memory.
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return Guard().deviceCount(); }
  c10::DeviceIndex getCurrentDevice() const override {
    return Guard().getDevice().index();
  }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    Guard().setDevice({kSim, device});
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return Guard().exchangeDevice({kSim, device}).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? getCurrentDevice() : exchangeDevice(device);
  }

  bool isPinnedPtr(const void* data) const override { return pinned_pool().owns(data); }
  at::Allocator* getPinnedMemoryAllocator() const override {
    static auto& pinned = *new PinnedAllocator();
    return &pinned;
  }

  // Kernels of the CPU draw the numbers, so the generators are those of the CPU.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    static auto& all = *new std::vector<at::Generator>();
    static std::once_flag once;
    std::call_once(once, [] {
      all.resize(Driver::get().devices());
      for (auto& one : all) one = at::detail::createCPUGenerator();
    });
    return all.at(Driver::get().check_device(device < 0 ? getCurrentDevice() : device));
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::detail::createCPUGenerator();
  }

  // FSDP frees the memory of a storage, and takes new one for it.
  void resizePrivateUse1Bytes(
      const c10::Storage& storage, size_t bytes) const override {
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr data = allocator().allocate(bytes);
    const size_t kept = std::min(bytes, storage.nbytes());
    if (kept > 0) allocator().copy_data(data.get(), storage.data(), kept);
    auto* const impl = storage.unsafeGetStorageImpl();
    impl->set_data_ptr_noswap(std::move(data));
    impl->set_nbytes(bytes);
  }
};

inline Hooks& hooks() {
  static auto& hooks = *new Hooks();
  return hooks;
}

} // namespace sim

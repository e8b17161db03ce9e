#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "memory.hpp"

namespace sim {

// What PyTorch asks an accelerator outside of streams and memory.
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  Hooks() {
    while (static_cast<int>(generators_.size()) < driver.devices()) {
      generators_.push_back(at::detail::createCPUGenerator());
    }
  }

  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }

  // [hooks]
  bool isPinnedPtr(const void* data) const override { return pinned_pool.owns(data); }
  at::Allocator* getPinnedMemoryAllocator() const override {
    static auto& pinned = *new PinnedAllocator();
    return &pinned;
  }

  // Kernels of the CPU draw the numbers, so the generators are those of the CPU.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return generators_.at(device < 0 ? Guard().getDevice().index() : device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::detail::createCPUGenerator();
  }

  // FSDP frees the memory of a storage, and takes new memory for it.
  void resizePrivateUse1Bytes(
      const c10::Storage& storage, size_t bytes) const override {
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr data = allocator.allocate(bytes);
    const size_t kept = std::min(bytes, storage.nbytes());
    if (kept > 0) copy(storage, data.get(), kept);
    auto* const impl = storage.unsafeGetStorageImpl();
    impl->set_data_ptr_noswap(std::move(data));
    impl->set_nbytes(bytes);
  }
  // [/hooks]

 private:
  // The current stream copies. The memory may belong to another one.
  static void copy(const c10::Storage& from, void* to, size_t bytes) {
    allocator.copy_data(to, from.data(), bytes);
    allocator.recordStream(from.data_ptr(), Guard().getStream(from.device()));
  }

  std::vector<at::Generator> generators_;
};

inline Hooks& hooks = *new Hooks();

} // namespace sim

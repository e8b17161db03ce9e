#pragma once

#include "frame/registration.hpp"

namespace stream_collectives {

using frame::Kind, frame::milliseconds, frame::StorePtr, frame::Tensors, frame::WorkPtr;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

// The time that clocks can count to.
inline milliseconds countable(milliseconds timeout) {
  return std::min(timeout, frame::kLongest);
}

// The library gives up after the watchdog, whose error says more.
inline milliseconds timeout_of_library(milliseconds timeout) {
  return countable(timeout) + std::chrono::seconds(1);
}

// The options of the backend "simccl".
struct OptionsSimccl final : frame::OptionsOf<OptionsSimccl> {
  explicit OptionsSimccl(milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("simccl", timeout) {}

  std::string library = "gloo"; // the backend for the CPU that moves the data
  bool blocking_wait = false; // wait() makes the host wait, too
  std::string broken; // a rule that the group breaks on purpose
  bool keeps(std::string_view rule) const { return broken != rule; }

  // The library moves the data, so this transport is only for the rendezvous.
  std::unique_ptr<frame::Transport> connect(frame::Place place) const override;
  BackendPtr connect(const StorePtr& store, int rank, int size) const;
  BackendPtr start(const StorePtr& store, int rank, int size,
      frame::OptionsPtr options) const override;

 private:
  BackendPtr start_library(const StorePtr& store, int rank, int size,
      frame::Clock::time_point deadline) const;
};

} // namespace stream_collectives

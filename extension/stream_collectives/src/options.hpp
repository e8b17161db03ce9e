#pragma once

#include "frame/registration.hpp"

namespace stream_collectives {

using frame::Kind, frame::milliseconds, frame::StorePtr, frame::Tensors, frame::WorkPtr;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

// The options of the backend "simccl".
struct OptionsSimccl final : frame::OptionsOf<OptionsSimccl> {
  explicit OptionsSimccl(milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("simccl", timeout) {}

  std::string library = "gloo"; // the backend for the CPU that moves the data
  bool blocking_wait = false; // wait() makes the host wait, too
  std::string broken; // a rule that the group breaks on purpose
  bool keeps(std::string_view rule) const { return broken != rule; }

  std::unique_ptr<frame::Transport> connect(frame::Place) const override {
    return nullptr; // the library connects the ranks
  }
  BackendPtr connect(const StorePtr& store, int rank, int size) const;
  BackendPtr start(const StorePtr& store, int rank, int size,
      frame::OptionsPtr options) const override;
};

} // namespace stream_collectives

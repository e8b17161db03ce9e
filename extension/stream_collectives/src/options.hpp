#pragma once

#include "frame/registration.hpp"

namespace stream_collectives {

using frame::Kind, frame::milliseconds, frame::StorePtr, frame::Tensors, frame::WorkPtr;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

// [rules]
// The rules of streams. A group can break each of them on purpose: a program then shows
// what the rule is good for.
constexpr std::array<const char*, 8> kRules{
    "input", // the communication waits for the caller's stream
    "output", // wait() lets the caller's stream wait for the communication
    "lifetime", // the memory is kept until nobody uses it
    "devices", // the future knows its device, so that callbacks wait for the stream
    "completion", // a work is completed when the stream has ended it
    "barrier", // a barrier lets the host wait
    "own_stream", // the communication has another stream than the caller
    "group_stream", // each group has a stream of its own
};
// [/rules]

// The options of the backend "simccl".
struct OptionsSimccl final : frame::OptionsOf<OptionsSimccl> {
  explicit OptionsSimccl(milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("simccl", timeout) {}

  std::string library = "gloo"; // the backend for the CPU that moves the data
  bool blocking_wait = false; // wait() lets the host wait, too
  std::string broken; // a rule
  bool keeps(std::string_view rule) const { return broken != rule; }

  std::unique_ptr<frame::Transport> connect(frame::Place) const override {
    return nullptr; // the library connects the ranks
  }
  BackendPtr connect(const StorePtr& store, int rank, int size) const;
  BackendPtr start(const StorePtr& store, int rank, int size,
      frame::OptionsPtr options) const override;
};

} // namespace stream_collectives

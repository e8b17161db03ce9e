#pragma once

#include <array>

#include "frame/registration.hpp"

namespace stream_collectives {

using c10d::kUnsetTimeout;
using frame::milliseconds, frame::OptionsBase, frame::StorePtr, frame::Tensors;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// [rules]
// The rules of streams, each of which a group can break on purpose: a program then shows
// what the rule is good for.
constexpr std::array<const char*, 8> kRules{
    "input", // the communication waits for the caller's stream
    "output", // wait() lets the caller's stream wait for the communication
    "lifetime", // the memory is kept until it is no longer used
    "devices", // the future knows the device, so that its callbacks wait for the stream
    "completion", // the work is completed when the stream has ended it
    "barrier", // a barrier lets the host wait
    "own_stream", // the communication has another stream than the caller
    "group_stream", // each group has a stream of its own
};
// [/rules]

// The options of the backend "simccl".
struct OptionsSimccl final : frame::OptionsOf<OptionsSimccl> {
  explicit OptionsSimccl(milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("simccl", timeout) {}

  std::string inner = "gloo"; // the backend for the CPU that moves the data
  bool blocking_wait = false; // wait() lets the host wait, too
  std::string broken; // a rule

  bool keeps(std::string_view rule) const { return broken != rule; }

  std::unique_ptr<frame::Transport> connect(frame::Place) const override {
    return nullptr; // the inner backend is the transport
  }
  BackendPtr start(const StorePtr& store, int rank, int size,
      frame::OptionsPtr options) const override;
};
using OptionsPtr = c10::intrusive_ptr<OptionsSimccl>;

} // namespace stream_collectives

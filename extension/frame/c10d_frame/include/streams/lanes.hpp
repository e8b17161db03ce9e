#pragma once

#include "calls.hpp"
#include "launch.hpp"

namespace streams {

// [lane]
// Where a call runs: collectives in one stream, in the order in which the program calls
// them; messages in one for each direction, rank and tag, because ranks may call them in
// different orders.
using Lane = std::tuple<c10::DeviceIndex, Kind, int, int64_t>;

// A group calls it for one launch at a time.
class Lanes {
 public:
  explicit Lanes(bool for_messages) : for_messages_(for_messages) {}
  ~Lanes() { give_back_streams(); }

  bool has_own_lane(Kind kind) const { return for_messages_ && is_message(kind); }
  Lane lane(at::Device device, std::optional<Kind> kind, const CallList& calls) const {
    const bool own = kind && has_own_lane(*kind);
    const auto note = own ? calls[0]->note : frame::Note();
    return {device.index(), note.kind, note.root, note.tag};
  }
  c10::Stream stream_of(const Lane& lane, c10::StreamId current) {
    const std::lock_guard lock(mutex_);
    if (!streams_.contains(lane)) streams_.emplace(lane, free_stream(lane, current));
    return streams_.at(lane);
  }
  // [/lane]

  // [order]
  // Lets a launch come after earlier ones: a collective after the last one, because the
  // library wants one order, also where a rank uses two devices; a message, also one of a
  // batch, after the last one of its lane.
  void order(const LaunchPtr& launch, at::Device device, std::optional<Kind> kind,
      const CallList& calls, const c10::Stream& stream) {
    if (!kind || !has_own_lane(*kind)) {
      if (last_collective_) last_collective_->end.block(stream);
      last_collective_ = launch;
    }
    for (const auto& call : calls) {
      if (!has_own_lane(call->note.kind)) continue;
      auto& last = last_messages_[lane(device, call->note.kind, {call})];
      if (last) last->end.block(stream);
      last = launch;
    }
  }
  // [/order]

  // For messages that have ended: their order counts no more, and their streams are idle.
  void free_ended() {
    const std::lock_guard lock(mutex_);
    std::erase_if(last_messages_, [this](const auto& last) {
      const bool ended = last.second->ended();
      if (ended) give_back(streams_.extract(last.first));
      return ended;
    });
  }

 private:
  // [free-stream]
  // A stream is free when its messages have ended, and already when the program's stream
  // waits for their end, because what that launches now begins later anyway.
  c10::Stream free_stream(const Lane& lane, c10::StreamId current) {
    const auto index = std::get<0>(lane);
    for (const auto& [other, launch] : last_messages_) {
      const bool same_device = std::get<0>(other) == index;
      if (!same_device || !launch->is_waited_for_by(current)) continue;
      if (const auto freed = streams_.extract(other)) return freed.mapped();
    }
    auto& idle = idle_[index];
    if (idle.empty()) {
      return device::Guard(device::kType).getNewStream({device::kType, index});
    }
    const auto stream = idle.back();
    idle.pop_back();
    return stream;
  }
  // [/free-stream]

  template <class Node>
  static void give_back(const Node& lane) {
    if (lane) idle_[std::get<0>(lane.key())].push_back(lane.mapped());
  }
  void give_back_streams() { // of a group that ends
    if (forks_ != frame::fork_count()) return;
    const std::lock_guard lock(mutex_);
    while (!streams_.empty()) {
      const auto lane = streams_.extract(streams_.begin());
      if (lane.mapped().query()) give_back(lane);
    }
  }

  const bool for_messages_; // or these run in the lane of the collectives
  const uint64_t forks_ = frame::fork_count();
  LaunchPtr last_collective_;
  std::map<Lane, LaunchPtr> last_messages_; // that have not ended

  static inline std::mutex mutex_; // guards these
  static inline std::map<c10::DeviceIndex, std::vector<c10::Stream>> idle_;
  std::map<Lane, c10::Stream> streams_;
};

} // namespace streams

#pragma once

#include "streams/group.hpp"

namespace stream_collectives {

// A rule of streams that a group breaks on purpose, so that a program shows what the rule
// is good for. An option of the backend.
struct Rules {
  virtual ~Rules() = default;
  bool keeps(std::string_view rule) const { return broken != rule; }
  std::string broken;
};

class BrokenWork final : public streams::Work {
 public:
  BrokenWork(int rank, std::optional<frame::Kind> kind, frame::OptionsPtr options)
      : Work(rank, kind, options->backend),
        options_(std::move(options)),
        rules_(dynamic_cast<const Rules&>(*options_)),
        host_goes_on_(kind == frame::Kind::barrier && !rules_.keeps("barrier")) {}

  bool isCompleted() override {
    return !rules_.keeps("completion") || Work::isCompleted();
  }
  bool wait(frame::milliseconds timeout) override {
    if (host_goes_on_) blocks_host = false;
    return Work::wait(timeout);
  }

 private:
  void order(const c10::Stream& current) override {
    if (rules_.keeps("output")) Work::order(current);
  }
  std::vector<at::Device> devices() const override {
    return rules_.keeps("devices") ? Work::devices() : std::vector<at::Device>();
  }

  const frame::OptionsPtr options_;
  const Rules& rules_; // the same
  const bool host_goes_on_;
};

class BrokenGroup final : public streams::StreamGroup {
 public:
  using StreamGroup::StreamGroup;

 private:
  bool keeps(std::string_view rule) const {
    return dynamic_cast<const Rules&>(options()).keeps(rule);
  }
  c10::intrusive_ptr<streams::Work> new_work(std::optional<frame::Kind> kind) override {
    auto options = frame::OptionsPtr::reclaim_copy(&this->options());
    return c10::make_intrusive<BrokenWork>(rank(), kind, std::move(options));
  }
  c10::Stream stream_for(const Lane& lane, const c10::Stream& current) override {
    return keeps("own_stream") ? StreamGroup::stream_for(lane, current) : current;
  }
  Lanes& lanes() override {
    return keeps("group_stream") ? StreamGroup::lanes() : lanes_of_all_groups_;
  }
  void wait_for(const device::Event& before, const c10::Stream& stream) override {
    if (keeps("input")) StreamGroup::wait_for(before, stream);
  }
  Kept kept(const Kept& calls) override { return keeps("lifetime") ? calls : Kept(); }

  static inline Lanes lanes_of_all_groups_;
};

} // namespace stream_collectives

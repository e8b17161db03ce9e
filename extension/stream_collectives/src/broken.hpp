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
        host_goes_on_(kind == frame::Kind::barrier && !rules_.keeps("barrier")),
        knows_device_(rules_.keeps("devices")) {}

  bool isCompleted() override {
    return !rules_.keeps("completion") || Work::isCompleted();
  }
  bool wait(frame::milliseconds timeout) override {
    if (host_goes_on_) blocks_host = false;
    return Work::wait(timeout);
  }
  void synchronize() override {
    rules_.keeps("output") ? Work::synchronize() : stash->clear();
  }
  streams::FuturePtr getFuture() override {
    if (knows_device_) return Work::getFuture();
    const auto of_cpu = c10::make_intrusive<streams::Future>(
        c10::ListType::create(c10::TensorType::get()));
    of_cpu->markCompleted(c10::IValue(outputs));
    return of_cpu;
  }

 private:
  const frame::OptionsPtr options_;
  const Rules& rules_; // the same
  const bool host_goes_on_, knows_device_;
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
  c10::Stream stream_for(
      const streams::Lane& lane, const c10::Stream& current) override {
    static auto& of_all_groups = *new streams::Lanes(/*for_messages=*/true);
    if (!keeps("own_stream")) return current;
    if (!keeps("group_stream")) return of_all_groups.stream_of(lane, current.id());
    return StreamGroup::stream_for(lane, current);
  }
  void wait_for_program(
      const c10::Stream& current, const c10::Stream& stream) override {
    if (keeps("input")) StreamGroup::wait_for_program(current, stream);
  }
  void keep(streams::Work& work, const streams::CallList& calls) override {
    StreamGroup::keep(work, keeps("lifetime") ? calls : streams::CallList());
  }
};

} // namespace stream_collectives

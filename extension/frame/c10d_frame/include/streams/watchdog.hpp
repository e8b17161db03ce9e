#pragma once

#include "frame/process.hpp"

#include "launch.hpp"

namespace streams {

constexpr milliseconds kWatchEvery{50};

// Watches over the launches of a communicator, and knows why the group takes no more calls.
// Any thread may call its methods, one of them watch().
class Watchdog {
 public:
  explicit Watchdog(std::unique_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)) {}

  Communicator& communicator() const { return *communicator_; }

  void add(const LaunchPtr& launch) {
    const std::lock_guard lock(mutex_);
    launches_.push_back(launch);
  }

  // Why the group takes no more calls; empty if it does.
  std::string failure() const {
    const std::lock_guard lock(mutex_);
    auto reason = failure_;
    for (const auto& launch : launches_) { // the thread may not know yet
      if (reason.empty()) reason = launch->error();
    }
    return reason;
  }

  // [fail]
  void fail(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& launch : launches_) launch->fail(reason);
      if (failure_.empty()) failure_ = reason;
      if (std::exchange(is_over_, true)) return;
    }
    TORCH_WARN(reason); // the program may never wait again
    communicator_->abort();
  }
  // [/fail]

  // Refuses later launches.
  void refuse(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = reason;
  }

  // Waits for what others need, as Progress::drain() does, and then for the rest a while:
  // perhaps nobody has the other half of a message. Returns whether all launches have ended,
  // or have been aborted.
  bool drain(milliseconds timeout) {
    std::unique_lock lock(mutex_);
    const auto wait = [&](milliseconds limit, const auto& counts) {
      return changed_.wait_until(lock, frame::in(limit),
          [&] { return is_over_ || std::ranges::none_of(launches_, counts); });
    };
    return wait(timeout, [](const auto& launch) { return launch->is_needed(); }) &&
        wait(frame::kLastMoments, [](const auto&) { return true; });
  }

  void destroy() {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(is_over_, true)) return;
    }
    communicator_->destroy();
  }

  // For a group that ends without shutdown(): its calls may wait for other ranks.
  void abort_running() {
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(
          launches_, [](const auto& launch) { return launch->surely_ended(); });
      if (launches_.empty() || std::exchange(is_over_, true)) return;
    }
    frame::quietly([this] { communicator_->abort(); }, kCannotAbort);
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }

  // [watch]
  // Ends the group when a call takes too long or has failed. It holds no tensor, and never
  // waits for a stream.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kWatchEvery, [this] { return stop_; })) {
      std::string error;
      try {
        error = look();
      } catch (...) {
        error = frame::text_of(std::current_exception());
      }
      changed_.notify_all();
      lock.unlock();
      if (!error.empty()) frame::quietly([&] { fail(error); }, kCannotAbort);
      lock.lock();
    }
  }
  std::string look() {
    std::string error;
    const auto of_library = communicator_->async_error(); // and not of one call
    for (const auto& launch : launches_) {
      if (!of_library.empty()) launch->fail(of_library);
      if (launch->late()) {
        launch->fail("it has not ended within " +
            std::to_string(launch->timeout.count()) +
            " ms; the ranks may wait for different calls");
      }
      if (error.empty()) error = launch->error();
    }
    // A launch that has failed stays until failure_ says so: failure() asks it before.
    std::erase_if(launches_, [this](const auto& launch) {
      return launch->surely_ended() && (!launch->failed() || !failure_.empty());
    });
    return error;
  }
  // [/watch]

 private:
  // A warning in place of an exception, which would end the process.
  static constexpr const char* kCannotAbort = "the library cannot abort: ";

  const std::unique_ptr<Communicator> communicator_;
  mutable std::mutex mutex_; // guards these
  frame::Condition changed_;
  std::vector<LaunchPtr> launches_;
  std::string failure_;
  bool is_over_ = false; // the communicator is aborted or destroyed, and that once
  bool stop_ = false;
};

// The thread of a watchdog. It owns the watchdog, too, which so stays in a fork, where the
// thread is missing: the end of a condition waits for those that wait for it.
class WatchdogThread {
 public:
  explicit WatchdogThread(std::unique_ptr<Communicator> communicator)
      : watchdog_(std::make_shared<Watchdog>(std::move(communicator))),
        thread_([watchdog = watchdog_] { watchdog->watch(); }) {}
  ~WatchdogThread() { stop(); }

  Watchdog& watchdog() const { return *watchdog_; }

  void stop() { // one thread at a time
    if (!thread_.joinable()) return;
    if (forks_ != frame::fork_count()) return thread_.detach();
    watchdog_->stop();
    thread_.join();
  }

 private:
  const uint64_t forks_ = frame::fork_count();
  const std::shared_ptr<Watchdog> watchdog_;
  frame::Thread thread_;
};

} // namespace streams

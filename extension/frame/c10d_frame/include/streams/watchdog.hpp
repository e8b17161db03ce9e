#pragma once

#include "launch.hpp"

namespace streams {

constexpr milliseconds kWatchEvery{50};

// A thread that watches over the launches of a communicator, and the reason why the group
// takes no more calls. Any thread may call its methods, but only one at a time stop().
class Watchdog {
 public:
  explicit Watchdog(std::unique_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)), thread_([this] { watch(); }) {}
  ~Watchdog() { stop(); }

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
      if (!failure_.empty()) return;
      failure_ = reason;
    }
    TORCH_WARN(reason); // the program may never wait again
    communicator_->abort();
  }
  // [/fail]

  // Waits until all launches have ended, and refuses later ones.
  void drain(milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, frame::in(timeout),
        [this] { return launches_.empty() || !failure_.empty(); });
    if (failure_.empty()) failure_ = "it was destroyed";
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (!thread_.joinable()) return;
    forks_ == frame::fork_count() ? thread_.join() : thread_.detach();
  }

 private:
  // [watch]
  // Ends the group when a call takes too long or has failed. It holds no tensor, and never
  // waits for a stream.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kWatchEvery, [this] { return stop_; })) {
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
        return launch->ended() && (!launch->failed() || !failure_.empty());
      });
      changed_.notify_all();
      lock.unlock();
      if (!error.empty()) fail(error);
      lock.lock();
    }
  }
  // [/watch]

  const std::unique_ptr<Communicator> communicator_;
  const uint64_t forks_ = frame::fork_count();
  mutable std::mutex mutex_; // guards these
  std::condition_variable changed_;
  std::vector<LaunchPtr> launches_;
  std::string failure_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace streams

#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include <pthread.h>
#include <stdlib.h>

#include "../include/stream.hpp"

namespace sim {

using Clock = std::chrono::steady_clock;
using Ready = std::function<bool()>;

class Queue;

// A place in a stream: it is reached when the stream has ended so many tasks. Events are
// such places, so an event costs nothing to record and nothing to destroy.
struct Mark {
  Queue* queue = nullptr;
  uint64_t number = 0;
};

// The driver of the device, without PyTorch. A stream is a queue and a thread that runs
// what is in it. One mutex guards all streams, so that each moment has one state, which
// settle() and the trace show.
class Driver {
 public:
  // [trace]
  // The steps of the host and of the streams, in the order in which they happened.
  struct Step {
    std::string what, name; // "launch", "begin" or "end" of a task
    int device;
    int64_t stream;
  };
  // [/trace]

  // Never destroyed: the threads of streams may outlive the static objects.
  static Driver& get() {
    static auto& driver = *new Driver();
    return driver;
  }

  int devices() const { return static_cast<int>(streams_.size()); }
  int check_device(int device) const {
    if (device >= 0 && device < devices()) return device;
    throw std::out_of_range("there is no device sim:" + std::to_string(device) +
        ": the devices are sim:0 to sim:" + std::to_string(devices() - 1) +
        ", and SIM_DEVICES says how many there are");
  }

  // A process that forks takes no thread along: its child has streams that stand still.
  bool forked() const { return forked_; }
  void check_process() const {
    if (!forked_) return;
    throw std::runtime_error(
        "this process is a fork of one that has used the device sim, and has none of its "
        "streams; start processes with the method \"spawn\", or fork before the first use");
  }

  // Stream 0 is the default stream of its device.
  Queue& stream(int device, int64_t id);
  Queue& new_stream(int device);

  uint64_t launch(
      Queue& queue, std::string name, Stream::Task run, Ready ready, bool peers);
  Mark mark(Queue& queue);
  bool reached(Mark mark);
  void wait(Mark mark); // on the host
  void wait(Queue& queue, Mark mark); // in a stream, which the host does not wait for
  std::vector<Mark> marks(int device); // the last one of each stream

  // Opens a gate: see Gate.
  void open(bool& gate) {
    const std::lock_guard lock(mutex_);
    gate = true;
    changed_.notify_all();
  }

  // Returns when no stream can go on by itself: each is idle, or waits for a gate or for
  // another stream. Without `peers`, it may also wait for other processes.
  void settle(bool peers);
  // How many threads of the host wait for the device.
  int waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  void start_trace() {
    const std::lock_guard lock(mutex_);
    trace_ = std::make_unique<std::vector<Step>>();
  }
  std::vector<Step> stop_trace() {
    const std::lock_guard lock(mutex_);
    const auto trace = std::move(trace_);
    return trace ? std::move(*trace) : std::vector<Step>();
  }

  // For the end of the process: no task may run while static objects go.
  void stop() {
    if (forked_) return;
    std::unique_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(2), [this] { return running_ == 0; });
  }

 private:
  Driver() {
    const char* const number = ::getenv("SIM_DEVICES");
    streams_.resize(std::max(1, number ? ::atoi(number) : 2));
    ::pthread_atfork(nullptr, nullptr, [] { get().forked_ = get().used_; });
  }

  void serve(Queue& queue);
  void wait(std::unique_lock<std::mutex>& lock, const Ready& ready);
  void note(const char* what, const std::string& name, const Queue& queue);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::unique_ptr<Queue>>> streams_; // of each device
  std::unique_ptr<std::vector<Step>> trace_;
  int running_ = 0, waiting_ = 0;
  bool used_ = false, forked_ = false, stopped_ = false;
  std::string failure_; // of a task, which the host learns when it waits
};

// One stream. The driver's mutex guards it.
class Queue final : public Stream {
 public:
  Queue(int device, int64_t id) : device(device), id(id) {}

  void launch(std::string name, Task task, bool peers) override {
    Driver::get().launch(*this, std::move(name), std::move(task), nullptr, peers);
  }

  const int device;
  const int64_t id;

 private:
  friend Driver;
  struct Entry {
    std::string name; // none: not in the trace
    Task run;
    Ready ready; // holds the stream until it is true
    bool peers; // waits for other processes
    bool begun = false;
  };
  std::deque<Entry> entries_;
  std::condition_variable launched_;
  uint64_t submitted_ = 0, ended_ = 0;
  bool served_ = false;
};

// Holds streams until the host opens it. Programs use it in place of sleeps, so that they
// decide themselves what is late.
class Gate {
 public:
  void hold(Queue& queue) {
    const auto ready = [open = open_] { return *open; };
    Driver::get().launch(queue, "gate", nullptr, ready, false);
  }
  void open() { Driver::get().open(*open_); }

 private:
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(false);
};

inline Queue& Driver::stream(int device, int64_t id) {
  const std::lock_guard lock(mutex_);
  auto& streams = streams_.at(check_device(device));
  if (streams.empty()) streams.push_back(std::make_unique<Queue>(device, 0));
  return *streams.at(id);
}

inline Queue& Driver::new_stream(int device) {
  stream(device, 0);
  const std::lock_guard lock(mutex_);
  auto& streams = streams_[device];
  streams.push_back(std::make_unique<Queue>(device, streams.size()));
  return *streams.back();
}

// [launch]
inline uint64_t Driver::launch(
    Queue& queue, std::string name, Stream::Task run, Ready ready, bool peers) {
  check_process();
  const std::lock_guard lock(mutex_);
  used_ = true;
  note("launch", name, queue);
  queue.entries_.push_back({std::move(name), std::move(run), std::move(ready), peers});
  queue.launched_.notify_one();
  if (!std::exchange(queue.served_, true)) {
    std::thread([this, &queue] { serve(queue); }).detach();
  }
  return ++queue.submitted_;
}

// The thread of a stream. It ends when it has nothing to do, and the next launch starts
// another one.
inline void Driver::serve(Queue& queue) {
  std::unique_lock lock(mutex_);
  const auto launched = [&] { return !queue.entries_.empty(); };
  while (queue.launched_.wait_for(lock, std::chrono::seconds(1), launched)) {
    auto& entry = queue.entries_.front();
    if (entry.ready) changed_.wait(lock, entry.ready);
    changed_.wait(lock, [this] { return !stopped_; }); // then it stays here
    note("begin", entry.name, queue);
    entry.begun = true;
    ++running_;
    changed_.notify_all();
    lock.unlock();
    std::string failure;
    try {
      if (entry.run) entry.run();
    } catch (const std::exception& error) {
      failure = entry.name + " has failed: " + error.what();
    }
    entry.run = nullptr; // what it owns goes without the mutex
    lock.lock();
    if (failure_.empty()) failure_ = failure;
    --running_;
    note("end", entry.name, queue);
    queue.entries_.pop_front();
    ++queue.ended_;
    changed_.notify_all();
  }
  queue.served_ = false;
}
// [/launch]

// [events]
inline Mark Driver::mark(Queue& queue) {
  const std::lock_guard lock(mutex_);
  return {&queue, queue.submitted_};
}

inline bool Driver::reached(Mark mark) {
  check_process();
  const std::lock_guard lock(mutex_);
  return mark.queue == nullptr || mark.queue->ended_ >= mark.number;
}

inline void Driver::wait(Mark mark) {
  check_process();
  std::unique_lock lock(mutex_);
  if (mark.queue) wait(lock, [&] { return mark.queue->ended_ >= mark.number; });
}

inline void Driver::wait(Queue& queue, Mark mark) {
  if (reached(mark) || mark.queue == &queue) return;
  const auto name = "wait for stream " + std::to_string(mark.queue->id);
  const auto ready = [mark] { return mark.queue->ended_ >= mark.number; };
  launch(queue, name, nullptr, ready, false);
}
// [/events]

inline std::vector<Mark> Driver::marks(int device) {
  check_process();
  const std::lock_guard lock(mutex_);
  std::vector<Mark> marks;
  for (const auto& queue : streams_.at(check_device(device))) {
    marks.push_back({queue.get(), queue->submitted_});
  }
  return marks;
}

inline void Driver::wait(std::unique_lock<std::mutex>& lock, const Ready& ready) {
  ++waiting_;
  changed_.wait(lock, [&] { return stopped_ || ready(); });
  --waiting_;
  if (!failure_.empty()) throw std::runtime_error("device sim: " + failure_);
}

inline void Driver::settle(bool peers) {
  check_process();
  const auto stands = [peers](const auto& queue) {
    if (queue->entries_.empty()) return true;
    const auto& entry = queue->entries_.front();
    return entry.begun ? entry.peers && !peers : entry.ready && !entry.ready();
  };
  std::unique_lock lock(mutex_);
  wait(lock, [&] {
    bool all = true;
    for (const auto& streams : streams_) {
      for (const auto& queue : streams) all = all && stands(queue);
    }
    return all;
  });
}

inline void Driver::note(
    const char* what, const std::string& name, const Queue& queue) {
  if (trace_ && !name.empty()) trace_->push_back({what, name, queue.device, queue.id});
}

} // namespace sim

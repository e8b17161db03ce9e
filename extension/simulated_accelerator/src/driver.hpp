#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <pthread.h>
#include <stdlib.h>

#include "../include/stream.hpp"

namespace sim {

using Clock = std::chrono::steady_clock;
using Ready = std::function<bool()>;

// The operations of PyTorch that run in this thread, while a profiler numbers them.
inline thread_local std::vector<uint64_t> operations;

// One stream, which the threads of the driver serve. Its mutex guards it.
class Queue final : public Stream {
 public:
  Queue(int device, int64_t id) : device(device), id(id) {}
  void launch(std::string name, Task run, bool peers) override;

  const int device;
  const int64_t id; // 0: the default stream

 private:
  friend class Driver;
  struct Entry {
    std::string name; // none: not in the trace
    Task run;
    Ready ready; // holds the stream until it is true
    bool peers; // waits for other processes
    uint64_t operation = operations.empty() ? 0 : operations.back(); // that launched it
    int64_t begun = 0; // the time
  };
  std::deque<Entry> entries_;
  uint64_t submitted_ = 0, ended_ = 0;
};

// A place in a stream: it is reached when the stream has ended so many tasks. An event
// of PyTorch is such a place, behind a small task that notes the time.
struct Mark {
  Queue* queue = nullptr;
  uint64_t number = 0;
};

// "launch", "begin" or "end"; the name of the task; the device and the stream.
using TraceEntry = std::tuple<std::string, std::string, int, int64_t>;

// A task that has ended, for a profiler: the times are nanoseconds of the wall clock.
struct Run {
  std::string name;
  int device;
  int64_t stream;
  uint64_t operation;
  int64_t begin, end;
};

// The driver of the device, without PyTorch. A stream is a queue, and threads run what is
// in it. One mutex guards all streams, so that each moment has one state, which settle()
// and the trace show.
class Driver {
 public:
  Driver() {
    const char* const number = ::getenv("SIM_DEVICES");
    streams_.resize(std::max(1, number ? ::atoi(number) : 2));
  }

  int devices() const { return static_cast<int>(streams_.size()); }
  int check_device(int device) const {
    if (device >= 0 && device < devices()) return device;
    throw std::out_of_range("there is no device sim:" + std::to_string(device) +
        ": the devices are sim:0 to sim:" + std::to_string(devices() - 1) +
        ", and SIM_DEVICES says how many there are");
  }

  // A process that forks takes no thread along: its child has streams that stand still.
  void fork() { forked_ = used_; }
  bool forked() const { return forked_; }
  void check_process() const {
    if (!forked_) return;
    throw std::runtime_error(
        "this process is a fork of one that has used the device sim, and has none of its "
        "streams; start processes with the method \"spawn\", or fork before the first use");
  }

  Queue& stream(int device, int64_t id) { // which begins to exist now
    const std::lock_guard lock(mutex_);
    auto& stream = streams_.at(check_device(device))[id];
    if (!stream) stream = std::make_unique<Queue>(device, id);
    return *stream;
  }
  Queue& new_stream(int device) {
    stream(device, 0);
    const std::lock_guard lock(mutex_);
    const auto id = streams_[device].rbegin()->first + 1;
    return *(streams_[device][id] = std::make_unique<Queue>(device, id));
  }

  // [launch]
  // Queues a task, and returns its number.
  uint64_t launch(Queue& queue, std::string name, Stream::Task run,
      Ready ready = nullptr, bool peers = false) {
    check_process();
    const std::lock_guard lock(mutex_);
    used_ = true;
    if (threads_ == running_) start(queue);
    note("launch", name, queue);
    queue.entries_.push_back(
        {std::move(name), std::move(run), std::move(ready), peers});
    can_run_.notify_one();
    return ++queue.submitted_;
  }
  // [/launch]

  // [events]
  Mark mark(Queue& queue) {
    const std::lock_guard lock(mutex_);
    return {&queue, queue.submitted_};
  }
  bool reached(Mark mark) {
    check_process();
    const std::lock_guard lock(mutex_);
    return is_reached(mark);
  }
  // The host waits.
  void wait(Mark mark) {
    wait_until([&] { return is_reached(mark); });
  }
  // The stream waits, and the host goes on.
  void wait(Queue& queue, Mark mark) {
    if (mark.queue == &queue || reached(mark)) return;
    launch(queue, "wait for stream " + std::to_string(mark.queue->id), nullptr,
        [mark] { return is_reached(mark); });
  }
  void synchronize(int device) {
    std::unique_lock lock(mutex_);
    std::vector<Mark> marks;
    for (const auto& [id, queue] : streams_.at(check_device(device))) {
      marks.push_back({queue.get(), queue->submitted_});
    }
    lock.unlock();
    for (const Mark mark : marks) wait(mark);
  }
  // [/events]

  // [settle]
  // Returns when no stream can go on by itself: each is idle, or waits for a gate or for
  // another stream. Without `peers`, it may also wait for other processes.
  void settle(bool peers) {
    const auto stands = [peers](const auto& stream) {
      if (stream.second->entries_.empty()) return true;
      const auto& entry = stream.second->entries_.front();
      return entry.begun ? entry.peers && !peers : entry.ready && !entry.ready();
    };
    wait_until([&] {
      return std::ranges::all_of(streams_,
          [&](const auto& streams) { return std::ranges::all_of(streams, stands); });
    });
  }
  void open(bool& gate) {
    const std::lock_guard lock(mutex_);
    gate = true;
    note_change();
  }
  int waiting() { // threads of the host, for the device
    const std::lock_guard lock(mutex_);
    return waiting_;
  }
  // [/settle]

  // Begins or ends a trace; returns what has happened, in its order.
  std::vector<TraceEntry> trace(bool on) {
    const std::lock_guard lock(mutex_);
    traces_ = on;
    return std::exchange(trace_, {});
  }
  // The same for a profile, which has no tasks that only wait.
  std::vector<Run> profile(bool on) {
    const std::lock_guard lock(mutex_);
    profiles_ = on;
    return std::exchange(runs_, {});
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
  // If the system has no thread for the stream, it gets no task, so it does not stand still.
  void start(const Queue& queue) {
    try {
      std::thread([this] { serve(); }).detach();
      ++threads_;
    } catch (const std::system_error& error) {
      throw std::runtime_error("device sim: no thread can be started for stream " +
          std::to_string(queue.id) + " of sim:" + std::to_string(queue.device) + ": " +
          error.what() +
          "; raise the limit of threads or of memory, or use fewer streams");
    }
  }

  // [serve]
  // One of the threads, which run tasks of any stream. A stream that waits for another one
  // holds none, but a task that waits for other processes does. A thread that has nothing
  // to do ends after a while, unless it is the last beside tasks that run.
  void serve() {
    std::unique_lock lock(mutex_);
    std::cv_status woken{};
    while (woken == std::cv_status::no_timeout || !is_superfluous()) {
      if (Queue* const queue = next()) {
        run(*queue, lock);
        woken = std::cv_status::no_timeout;
      } else {
        woken = can_run_.wait_for(lock, running_ > 0 ? kPatience : kIdle);
      }
    }
    --threads_;
  }

  // A stream whose first task can begin, and has not. Most tasks that wait for other
  // processes soon end, so only a few of them begin at once. One that does not end holds up
  // no other one for longer than a moment.
  Queue* next() {
    Queue* waits = nullptr;
    int just_begun = 0;
    for (const auto& streams : streams_) {
      for (const auto& [id, queue] : streams) {
        if (stopped_ || queue->entries_.empty()) continue;
        const auto& entry = queue->entries_.front();
        const std::chrono::nanoseconds time(now() - entry.begun);
        if (entry.begun) just_begun += entry.peers && time < kPatience;
        if (entry.begun || (entry.ready && !entry.ready())) continue;
        if (!entry.peers) return queue.get();
        if (!waits) waits = queue.get();
      }
    }
    return just_begun < kAtOnce ? waits : nullptr;
  }

  bool is_superfluous() {
    return !next() && threads_ - running_ > (running_ > 0 ? 1 : 0);
  }

  void run(Queue& queue, std::unique_lock<std::mutex>& lock) {
    auto& entry = queue.entries_.front();
    note("begin", entry.name, queue);
    entry.begun = now();
    ++running_;
    try {
      if (threads_ == running_) start(queue); // one that looks for what else can run
    } catch (const std::runtime_error&) { // the rest waits until a task ends
    }
    note_change();
    lock.unlock();
    std::string failure;
    try {
      if (entry.run) entry.run();
      entry.run = nullptr; // what it owns goes here, without the mutex
    } catch (const std::exception& error) {
      failure = "device sim: " + entry.name + " has failed: " + error.what();
    }
    lock.lock();
    if (failure_.empty()) failure_ = failure;
    --running_;
    note("end", entry.name, queue);
    record(entry, queue);
    queue.entries_.pop_front();
    ++queue.ended_;
    note_change();
  }
  // [/serve]

  void note_change() {
    changed_.notify_all();
    can_run_.notify_all();
  }

  static bool is_reached(Mark mark) {
    return !mark.queue || mark.queue->ended_ >= mark.number;
  }
  void wait_until(const Ready& ready) {
    check_process();
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.wait(lock, [&] { return stopped_ || ready(); });
    --waiting_;
    if (!failure_.empty()) throw std::runtime_error(failure_); // errors come late
  }
  void note(const char* what, const std::string& name, const Queue& queue) {
    if (traces_ && !name.empty())
      trace_.push_back({what, name, queue.device, queue.id});
  }

  void record(const Queue::Entry& entry, const Queue& queue) {
    if (!profiles_ || entry.name.empty() || entry.ready) return;
    runs_.push_back(
        {entry.name, queue.device, queue.id, entry.operation, entry.begun, now()});
  }
  static int64_t now() {
    const auto time = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::nanoseconds(time).count();
  }

  std::mutex mutex_;
  std::condition_variable changed_,
      can_run_; // for the host, and for threads without a task
  std::vector<std::map<int64_t, std::unique_ptr<Queue>>> streams_; // of each device
  std::vector<TraceEntry> trace_;
  std::vector<Run> runs_; // of a profile
  std::string failure_; // of a task
  static constexpr int kAtOnce = 16; // tasks
  static constexpr std::chrono::milliseconds kPatience{10}, kIdle{1000};
  int threads_ = 0, running_ = 0, waiting_ = 0;
  bool used_ = false, forked_ = false, stopped_ = false;
  bool traces_ = false, profiles_ = false;
};

// Never destroyed: the threads of streams may outlive the static objects.
inline Driver& driver = *new Driver();
inline const int at_fork = ::pthread_atfork(nullptr, nullptr, [] { driver.fork(); });

inline void Queue::launch(std::string name, Task run, bool peers) {
  driver.launch(*this, std::move(name), std::move(run), nullptr, peers);
}

// Holds streams until the host opens it. Programs use it in place of sleeps, so that they
// decide themselves what is late.
class Gate {
 public:
  void hold(Queue& queue) {
    driver.launch(queue, "gate", nullptr, [open = open_] { return *open; });
  }
  void open() { driver.open(*open_); }

 private:
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(false);
};

} // namespace sim

#pragma once

// The ranks of a group in one process: an engine each, on a fake network. All tests reach
// the engine here.

#include <sys/wait.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "frame/group.hpp"
#include "frame/library.hpp"
#include "frame/watch.hpp"
#include "streams/group.hpp"

// PyTorch defines these, too. No header of it may come after the framework of the tests.
#undef CHECK
#undef CHECK_EQ
#undef CHECK_GE
#undef CHECK_GT
#undef CHECK_LE
#undef CHECK_LT
#undef CHECK_NE
#define DOCTEST_CONFIG_SUPER_FAST_ASSERTS // compile faster
#include <doctest/doctest.h>

#include "fake_transport.hpp"
#include "python_lock.hpp"

namespace test {

using frame::Arguments, frame::Pending, frame::PendingPtr;
using Turn = frame::Engine::Begun;
// In the framework's words, an error of PyTorch has no stack.
REGISTER_EXCEPTION_TRANSLATOR(const c10::Error& error) {
  return error.what_without_backtrace();
}

constexpr bool kBoth[] = {false, true}; // whether the transport can block
using Texts = std::vector<std::string>;
using WorkPtr = c10::intrusive_ptr<frame::Work>;

// The clock moves, and with it all that the other threads wait for.
inline void let_pass(Clock::duration time) { frame::sleep_until(Clock::now() + time); }
// Returns when all other threads sleep.
inline void settle() { let_pass(0ms); }

// A function on a thread of its own, and what it throws.
class Job {
 public:
  explicit Job(std::function<void()> function)
      : thread_([state = state_, function = std::move(function)] {
          try {
            function();
          } catch (const std::exception&) {
            state->error = frame::text_of(std::current_exception());
          }
          state->has_ended = true;
        }) {}
  ~Job() {
    if (thread_.joinable()) thread_.join();
  }
  bool has_ended() const { return state_->has_ended; }
  std::string error() { // waits for the end
    if (thread_.joinable()) thread_.join();
    return state_->error;
  }

 private:
  struct State {
    std::atomic<bool> has_ended{false};
    std::string error;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  frame::Thread thread_;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

inline std::string error_of(const PendingPtr& pending) {
  if (!pending->ended()) return "goes on";
  return pending->error() ? frame::text_of(pending->error()) : "";
}

// The exit status of a fork that runs this: 0 if it returns.
template <class Function>
int status_of_fork(const Function& function) {
  settle(); // so that no other thread holds a mutex
  const auto child = fork();
  if (child == 0) {
    alarm(20);
    signal(SIGABRT, SIG_DFL); // not the framework's report
    function();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

class Rank {
 public:
  Rank(const std::shared_ptr<Network>& network, int rank)
      : network(network),
        rank(rank),
        engine_(std::make_shared<frame::Engine>(std::make_unique<FakeTransport>(network,
            frame::Place{rank, network->size, {"fake", "g", {}}, nullptr, {}}))) {}
  void start() { engine_->start(); }

  Arguments barrier(milliseconds timeout = 10s) const {
    return {Kind::barrier, timeout, "fake", network->size};
  }
  Arguments monitored_barrier(bool name_all, milliseconds timeout = 10s) const {
    Arguments call{Kind::monitored_barrier, timeout, "fake", network->size};
    call.name_all = name_all;
    return call;
  }
  Arguments all_reduce(const at::Tensor& tensor, milliseconds timeout = 10s) const {
    Arguments call{Kind::all_reduce, timeout, "fake", network->size};
    call.note.op = frame::Op::sum;
    call.reduction.emplace("fake", tensor.scalar_type(), call.note.op, network->size);
    call.in = call.out = {call.output(tensor, true)};
    call.note.bytes = call.in[0].size();
    return call;
  }
  Arguments send(const at::Tensor& tensor, int to, milliseconds timeout = 10s) const {
    Arguments call{Kind::send, timeout, "fake", network->size};
    call.in = {call.input(tensor)};
    return message(std::move(call), to);
  }
  Arguments receive(
      const at::Tensor& tensor, int from, milliseconds timeout = 10s) const {
    Arguments call{Kind::receive, timeout, "fake", network->size};
    call.out = {call.output(tensor)};
    call.source = std::make_shared<std::atomic<int>>(from);
    return message(std::move(call), from);
  }

  // Begins an operation, and leaves it to the threads of the engine.
  PendingPtr submit(Arguments call, Turn turn = {}) const {
    const auto pending = std::make_shared<Pending>(std::move(call));
    submit(pending, std::move(turn));
    return pending;
  }
  void submit(const PendingPtr& pending, Turn turn = {}) const {
    engine_->submit(pending, std::move(turn));
    engine_->wait_briefly(pending);
  }
  // Runs an operation to its end, and returns its error.
  std::string run(Arguments call, Turn turn = {}) const {
    const auto pending = std::make_shared<Pending>(std::move(call));
    engine_->run(pending, std::move(turn));
    return error_of(pending);
  }
  bool at_once(Arguments& call, Turn& turn) const {
    return engine_->at_once(call, turn);
  }
  bool wait(const PendingPtr& pending, Clock::time_point limit = frame::kNever) const {
    return engine_->wait([&] { return pending->ended(); }, limit);
  }
  bool wait(const std::function<bool()>& done) const {
    return engine_->wait(done, frame::kNever);
  }
  // Waits, and returns the error.
  std::string end_of(const PendingPtr& pending) const {
    wait(pending);
    return error_of(pending);
  }
  std::vector<int> missing(const PendingPtr& pending) const {
    return pending->missing();
  }
  void when_ended(const PendingPtr& pending, std::function<void()> callback) const {
    engine_->when_ended(pending, std::move(callback));
  }
  void before_end(const PendingPtr& pending, std::function<void()> callback) const {
    engine_->before_end(pending, std::move(callback));
  }
  WorkPtr work(std::vector<PendingPtr> operations, frame::Tensors outputs = {},
      const char* title = nullptr) const {
    return c10::make_intrusive<frame::Work>(rank, c10d::OpType::BARRIER, title, engine_,
        std::move(operations), std::move(outputs));
  }
  uint64_t sequence() const { return engine_->sequence(); }
  void check_process() const { engine_->check_process(); }
  void drain() const { engine_->drain(); }
  void abort() const { engine_->abort(); }
  void close(const std::string& reason = "the test is over") const {
    engine_->close(reason);
  }

  // The last owner of the engine, but for its threads.
  std::shared_ptr<frame::Engine> take_engine() { return std::move(engine_); }
  std::weak_ptr<frame::Engine> engine() const { return engine_; }

  std::string announced() const { return network->announced(rank); }
  std::optional<bool> left() const { return network->left(rank); }

  const std::shared_ptr<Network> network;
  const int rank;

 private:
  static Arguments message(Arguments call, int other) {
    call.note.root = other;
    call.note.bytes = (call.in.empty() ? call.out : call.in)[0].size();
    return call;
  }

  std::shared_ptr<frame::Engine> engine_;
};

// Some ranks, which have begun. At the end, they are closed side by side, and nothing of
// them is left.
class Ranks {
 public:
  explicit Ranks(int size, bool can_block = false)
      : network(std::make_shared<Network>(size, can_block)) {
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<Rank>(network, rank));
      engines_.push_back(ranks_.back()->engine());
      ranks_.back()->start();
    }
  }
  ~Ranks() {
    close();
    for (auto& rank : ranks_) rank->take_engine();
    for (int i = 0; i < 1000 && frame::MovedTime::get().threads() > 0; ++i)
      let_pass(10ms);
    CHECK(frame::MovedTime::get().threads() == 0);
    for (const auto& engine : engines_) CHECK(engine.expired());
    CHECK(network->broken() == "");
  }
  const Rank& operator[](int rank) const { return *ranks_[rank]; }
  Rank& operator[](int rank) { return *ranks_[rank]; }

  void close() {
    std::vector<std::unique_ptr<Job>> jobs;
    for (auto& rank : ranks_) {
      if (rank->engine().expired()) continue;
      jobs.push_back(std::make_unique<Job>([&] { rank->close(); }));
    }
  }

  // Runs a function on all ranks, and returns what each returns.
  std::vector<std::string> all(
      const std::function<std::string(const Rank&)>& function) const {
    std::vector<std::string> texts(ranks_.size());
    std::vector<std::unique_ptr<Job>> jobs;
    for (const auto& rank : ranks_) {
      jobs.push_back(
          std::make_unique<Job>([&] { texts[rank->rank] = function(*rank); }));
    }
    for (const auto& job : jobs) CHECK(job->error() == "");
    return texts;
  }

  const std::shared_ptr<Network> network;

 private:
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::weak_ptr<frame::Engine>> engines_;
};

} // namespace test

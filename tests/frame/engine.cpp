// Programs that drive the frame's engine with a transport whose operations the test ends. Each
// returns what is wrong, or nothing.

#include <set>

#include "frame/watch.hpp"
#include "frame/work.hpp"

using namespace std::chrono_literals;
using frame::Arguments, frame::Blobs, frame::Clock, frame::Engine, frame::Kind;
using frame::Note, frame::Operation, frame::Pending, frame::PendingPtr, frame::Pieces;
using frame::Steps;

namespace {

// What a transport is to do, and what it was told.
struct Plan {
  explicit Plan(bool can_block = true) : can_block(can_block) {}
  const bool can_block;
  std::function<bool()> at_once = [] { return false; };
  std::atomic<bool> holds = false; // what has begun
  std::string announced;
};

class Fake final : public frame::Transport {
 public:
  explicit Fake(Plan& plan)
      : Transport({0, 2, {"fake", "0", {}}, {}, {}}), plan_(plan) {}
  bool can_block() const override { return plan_.can_block; }
  bool at_once(const Operation&) override { return plan_.at_once(); }
  Steps collective(const Operation&) override {
    frame::Until free([this] { return !plan_.holds; });
    co_await free;
  }
  Steps exchange(const Note&, Pieces, int, Blobs&) override { return {}; }
  Steps send(const Operation&) override { return {}; }
  Steps receive(const Operation&) override { return {}; }
  void announce(const std::string& reason) override {
    plan_.announced = reason.empty() ? "nothing" : reason;
  }

 private:
  Plan& plan_;
};

std::shared_ptr<Engine> engine_of(Plan& plan) {
  auto engine = std::make_shared<Engine>(std::make_unique<Fake>(plan));
  engine->start();
  return engine;
}

Arguments barrier(frame::milliseconds timeout = 20s) {
  return {Kind::barrier, timeout, "fake", 2};
}

std::string error_of(const Pending& pending) {
  if (!pending.ended()) return "it has not ended";
  return pending.error() ? frame::text_of(pending.error()) : "";
}

// A barrier is run to its end.
std::string run(Engine& engine, Engine::Begun turn = {}) {
  const auto operation = std::make_shared<Pending>(barrier());
  engine.run(operation, std::move(turn));
  return error_of(*operation);
}

// The threads of an engine end in time, and with them the engine.
std::string end(std::shared_ptr<Engine> engine) {
  const std::weak_ptr<Engine> known = engine;
  engine->close("the test is over");
  engine.reset();
  return known.expired() ? "" : "a thread has not ended";
}

std::string a_deadline_in_a_callback() {
  Plan plan;
  auto engine = engine_of(plan);
  const auto operation = std::make_shared<Pending>(barrier(100ms));
  engine->before_end(operation, [] { std::this_thread::sleep_for(400ms); });
  engine->run(operation);
  auto problems = error_of(*operation);
  problems += run(*engine);
  problems += end(std::move(engine));
  return problems + plan.announced;
}

std::string a_callback_that_throws() {
  Plan plan;
  auto engine = engine_of(plan);
  const auto operation = std::make_shared<Pending>(barrier());
  engine->before_end(operation, [] { throw std::runtime_error("out of a callback"); });
  engine->run(operation);
  return "the process goes on";
}

std::string a_turn_that_is_lost() {
  Plan plan(false);
  auto engine = engine_of(plan);
  {
    Engine::Begun turn;
    auto arguments = barrier();
    if (engine->at_once(arguments, turn)) return "it has ended";
  } // as if an exception were thrown here
  const std::string reason = "rank 0 cannot go on with a call", next = run(*engine);
  const auto late = end(std::move(engine));
  const bool good =
      next.find(reason) != next.npos && plan.announced.starts_with(reason);
  return good ? late : next + ", " + plan.announced;
}

std::string a_turn_that_is_used() {
  Plan plan(false);
  auto engine = engine_of(plan);
  Engine::Begun turn;
  auto arguments = barrier();
  if (engine->at_once(arguments, turn)) return "it has ended";
  auto problems = run(*engine, std::move(turn));
  problems += run(*engine);
  problems += end(std::move(engine));
  return problems + plan.announced;
}

std::string a_result_that_cannot_be_written() {
  auto tensor = at::zeros({4, 2}).t(); // not contiguous, so the results are copied
  Plan plan(false);
  plan.at_once = [&] { return tensor.resize_({3}), true; };
  auto engine = engine_of(plan);
  Engine::Begun turn;
  auto arguments = barrier();
  arguments.output(tensor);
  try {
    engine->at_once(arguments, turn);
    return "nothing was thrown";
  } catch (const c10::Error&) { // and the group goes on
    auto problems = run(*engine);
    problems += end(std::move(engine));
    return problems + plan.announced;
  }
}

// A sanitizer sees in which order the threads lock.
std::string a_work_that_three_threads_ask() {
  Plan plan;
  auto engine = engine_of(plan);
  for (int round = 0; round < 100; ++round) {
    const auto operation = std::make_shared<Pending>(barrier());
    const auto work = c10::make_intrusive<frame::Work>(0, c10d::OpType::BARRIER,
        nullptr, engine, frame::Operations{operation}, frame::Tensors{});
    std::thread calls_back([&] { work->getFuture()->addCallback([](auto&) {}); });
    std::thread polls([&] {
      while (!work->isCompleted()) std::this_thread::yield();
    });
    engine->submit(operation);
    work->wait();
    calls_back.join();
    polls.join();
  }
  return end(std::move(engine)) + plan.announced;
}

// Work::getFuture() makes a work that has ended wait for its future.
std::string a_wait_that_has_ended_once() {
  Plan plan;
  auto engine = engine_of(plan);
  int asked = 0;
  const bool ended = engine->wait([&] { return asked++ == 0; }, frame::kNever);
  return (ended ? "" : "it has not ended, ") + end(std::move(engine));
}

// The other thread does not drive, because it waits for what no operation brings.
std::string an_operation_that_comes_while_another_thread_waits() {
  Plan plan(false);
  auto engine = engine_of(plan);
  std::atomic<bool> waits = false, may_go = false;
  std::thread other([&] {
    engine->wait([&] { return waits = true, may_go.load(); }, frame::kNever);
  });
  while (!waits) std::this_thread::yield();
  plan.holds = true;
  const auto operation = std::make_shared<Pending>(barrier());
  engine->submit(operation);
  engine->wait_briefly(operation);
  may_go = true;
  plan.holds = false;
  const auto limit = Clock::now() + 10s;
  while (!operation->ended() && Clock::now() < limit) std::this_thread::yield();
  const auto problems = error_of(*operation);
  const auto last = std::make_shared<Pending>(barrier());
  engine->run(last); // wakes the other thread in any case
  other.join();
  return problems + end(std::move(engine)) + plan.announced;
}

// The keys of a group, in memory; notes which ones are asked for.
class Memory final : public frame::Keys {
 public:
  void set(const std::string& key, std::span<const std::byte> value) override {
    const auto* text = reinterpret_cast<const char*>(value.data());
    with(key) = std::string(text, value.size());
  }
  std::vector<Value> get(const Names& keys) override {
    std::vector<Value> values;
    for (const auto& key : keys) {
      const auto value = text(key);
      values.emplace_back(value.begin(), value.end());
    }
    return values;
  }
  std::string text(const std::string& key) override { return with(key); }
  bool has(const Names& keys) override {
    return std::ranges::none_of(
        keys, [&](const auto& key) { return text(key).empty(); });
  }
  int64_t add(const std::string& key, int64_t amount) override {
    auto value = with(key);
    const int64_t sum = (value->empty() ? 0 : std::stoll(*value)) + amount;
    value = std::to_string(sum);
    return sum;
  }
  void erase(const std::string& key) override { with(key) = ""; }
  void append(const std::string& key, const std::string& text) override {
    *with(key) += text;
  }
  std::string take(const std::string& key) override {
    auto value = with(key);
    return std::exchange(*value, "");
  }
  std::string set_first(const std::string& key, const std::string& text) override {
    auto value = with(key);
    if (value->empty()) value = text;
    return *value;
  }
  void publish(const std::string& key, const std::string& text) override {
    set_text(key, text);
  }

  std::set<std::string> take_asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

 private:
  struct Locked {
    std::unique_lock<std::mutex> lock;
    std::string& value;
    void operator=(const std::string& text) { value = text; }
    operator std::string() const { return value; }
    std::string& operator*() { return value; }
    std::string* operator->() { return &value; }
  };
  Locked with(const std::string& key) {
    std::unique_lock lock(mutex_);
    asked_.insert(key);
    return {std::move(lock), values_[key]};
  }

  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::set<std::string> asked_;
};

// Sixteen ranks learn that their group has failed, from one key.
std::string the_keys_of_a_failure() {
  constexpr int kRanks = 16;
  const auto keys = std::make_shared<Memory>();
  std::vector<std::unique_ptr<frame::Watch>> watches(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const frame::Place place{rank, kRanks, {"fake", "0", {}}, keys, frame::in(60s),
          std::vector<frame::Member>(kRanks, {getpid(), "", 0})};
      watches[rank] =
          std::make_unique<frame::Watch>(place, 60s, std::make_shared<frame::Bell>());
    });
  }
  for (auto& thread : threads) thread.join();
  keys->take_asked();
  watches[3]->announce("out of paper");
  watches[7]->leave(false);
  const auto all_know = [&] {
    return std::ranges::all_of(watches, [](const auto& one) {
      return one->has_left() || one->failure() == "out of paper";
    });
  };
  if (!frame::poll_until(all_know, frame::in(60s))) return "a rank does not know";
  std::string more;
  for (const auto& key : keys->take_asked()) {
    if (key != "news" && key != "leavers") more += key + " ";
  }
  return more;
}

} // namespace

extern "C" const char* run_program(const char* name) {
  static const std::map<std::string, std::string (*)()> programs{
      {"a deadline in a callback", a_deadline_in_a_callback},
      {"a callback that throws", a_callback_that_throws},
      {"a turn that is lost", a_turn_that_is_lost},
      {"a turn that is used", a_turn_that_is_used},
      {"a result that cannot be written", a_result_that_cannot_be_written},
      {"a work that three threads ask", a_work_that_three_threads_ask},
      {"a wait that has ended once", a_wait_that_has_ended_once},
      {"an operation that comes while another thread waits",
          an_operation_that_comes_while_another_thread_waits},
      {"the keys of a failure", the_keys_of_a_failure},
  };
  static std::string answer;
  answer = programs.at(name)();
  return answer.c_str();
}

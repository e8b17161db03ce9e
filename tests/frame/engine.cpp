// Programs that drive the frame's engine with a transport whose operations the test ends. Each
// returns what is wrong, or nothing.

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
  std::string announced;
};

class Fake final : public frame::Transport {
 public:
  explicit Fake(Plan& plan)
      : Transport({0, 2, {"fake", "0", {}}, {}, {}}), plan_(plan) {}
  bool can_block() const override { return plan_.can_block; }
  bool at_once(const Operation&) override { return plan_.at_once(); }
  Steps collective(const Operation&) override { return {}; }
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
std::string run(Engine& engine, Engine::Turn turn = nullptr) {
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
    Engine::Turn turn;
    auto arguments = barrier();
    if (engine->at_once(arguments, turn)) return "it has ended";
  } // as if an exception were thrown here
  const std::string reason = "rank 0 cannot go on with a collective",
                    next = run(*engine);
  const auto late = end(std::move(engine));
  const bool good =
      next.find(reason) != next.npos && plan.announced.starts_with(reason);
  return good ? late : next + ", " + plan.announced;
}

std::string a_turn_that_is_used() {
  Plan plan(false);
  auto engine = engine_of(plan);
  Engine::Turn turn;
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
  Engine::Turn turn;
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

} // namespace

extern "C" const char* run_program(const char* name) {
  static const std::map<std::string, std::string (*)()> programs{
      {"a deadline in a callback", a_deadline_in_a_callback},
      {"a callback that throws", a_callback_that_throws},
      {"a turn that is lost", a_turn_that_is_lost},
      {"a turn that is used", a_turn_that_is_used},
      {"a result that cannot be written", a_result_that_cannot_be_written},
      {"a work that three threads ask", a_work_that_three_threads_ask},
  };
  static std::string answer;
  answer = programs.at(name)();
  return answer.c_str();
}

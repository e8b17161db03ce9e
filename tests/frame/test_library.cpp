// The thread that makes all calls of a library. It never ends, so each test is a fork.

#include "rank.hpp"

using namespace test;

namespace {

// Says in the fork where something is wrong.
void need(bool good, int line) {
  if (good) return;
  std::fprintf(stderr, "test_library.cpp:%d: is not so\n", line);
  _exit(1);
}

struct FakeCall final : frame::Call {
  explicit FakeCall(const std::shared_ptr<Bell>& bell) : Call(bell) {}
  void begin() override {
    if (fails_at == 0) throw std::runtime_error("it does not begin");
  }
  bool has_ended() override {
    if (fails_at == ++looks) throw std::runtime_error("it breaks");
    return Clock::now() >= end;
  }
  int fails_at = -1, looks = 0;
  Clock::time_point end = frame::kNever;
};

} // namespace

TEST_SUITE("library") {
  TEST_CASE("a function that runs, throws or hangs in the library") {
    CHECK(status_of_fork([] {
      auto& library = *new frame::Library("fake");
      int calls = 0;
      library.run([&] { ++calls; }, Clock::now() + 1s, "count");
      need(calls == 1, __LINE__);
      const auto error = [&](std::function<void()> function,
                             std::function<void()> look) {
        try {
          library.run(std::move(function), Clock::now() + 1s, "start", look);
        } catch (const std::exception& error) {
          return std::string(error.what());
        }
        return std::string();
      };
      need(error([] { throw std::runtime_error("no memory"); }, [] {}) == "no memory",
          __LINE__);
      Gate gate;
      const auto begin = Clock::now();
      int looks = 0;
      const auto hangs = [&] { gate.pass(); };
      need(error(hangs, [&] { ++looks; }) == "fake could not start in time", __LINE__);
      need(Clock::now() - begin == 1s && looks == 20, __LINE__);
      const auto stops = [] { throw std::runtime_error("rank 1 has died"); };
      need(error(hangs, stops) == "rank 1 has died", __LINE__);
      gate.open();
      need(error([&] { ++calls; }, [] {}) == "" && calls == 2, __LINE__);
      const auto status = status_of_fork([&] {
        const auto text = error([] {}, [] {});
        need(contains(text, "runs in the parent of this process"), __LINE__);
      });
      need(status == 0, __LINE__);
    }) == 0);
  }

  TEST_CASE("calls of a library end, fail and are left behind") {
    CHECK(status_of_fork([] {
      auto& library = *new frame::Library("fake");
      const auto bell = std::make_shared<Bell>();
      const auto ends = std::make_shared<FakeCall>(bell);
      ends->end = Clock::now() + 1s;
      const auto bad = std::make_shared<FakeCall>(bell);
      bad->fails_at = 0;
      const auto breaks = std::make_shared<FakeCall>(bell);
      breaks->fails_at = 3;
      auto forgotten = std::make_shared<FakeCall>(bell);
      const std::weak_ptr<FakeCall> known = forgotten;
      for (const auto& call : {ends, bad, breaks, forgotten}) library.begin(call);
      forgotten.reset();
      let_pass(990ms);
      need(bad->done() && bad->error() == "it does not begin", __LINE__);
      need(breaks->done() && breaks->error() == "it breaks", __LINE__);
      need(!ends->done() && bell->rings() == 2, __LINE__);
      let_pass(20ms);
      need(ends->done() && ends->error() == "" && bell->rings() == 3, __LINE__);
      need(ends.use_count() == 1, __LINE__);
      // The library may still use the memory of these.
      need(!known.expired() && bad.use_count() == 2 && breaks.use_count() == 2,
          __LINE__);
    }) == 0);
  }
}

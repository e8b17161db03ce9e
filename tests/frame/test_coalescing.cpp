// Coalescing: each thread has a batch of its own, in each group.

#include <doctest/doctest.h>

#include <memory>
#include <thread>
#include <vector>

#include "frame/coalescing.hpp"

namespace {

using Call = std::shared_ptr<int>;
using Coalescing = frame::Coalescing<std::vector<Call>>;

template <class Function>
void on_another_thread(const Function& function) {
  std::thread(function).join();
}

void add(Coalescing& group, int call) {
  group.batch()->push_back(std::make_shared<int>(call));
}

} // namespace

TEST_CASE("a batch is what was collected between start() and end()") {
  Coalescing group("acme");
  CHECK(group.batch() == nullptr);
  group.start();
  add(group, 1);
  add(group, 2);
  const auto calls = group.end();
  REQUIRE(calls.size() == 2);
  CHECK(*calls[0] == 1);
  CHECK(*calls[1] == 2);
  CHECK(group.batch() == nullptr);
}

TEST_CASE("start() and end() come in turn") {
  Coalescing group("acme");
  CHECK_THROWS_WITH(group.end(), "Backend acme: does not coalesce");
  group.start();
  CHECK_THROWS_WITH(group.start(), "Backend acme: coalesces already");
  group.end();
  CHECK_THROWS_WITH(group.end(), "Backend acme: does not coalesce");
}

TEST_CASE("a thread coalesces alone, and in one group") {
  Coalescing group("acme"), other("acme");
  group.start();
  CHECK(other.batch() == nullptr);
  on_another_thread([&] {
    CHECK(group.batch() == nullptr);
    group.start();
    add(group, 1);
    CHECK(group.end().size() == 1);
  });
  CHECK(group.end().empty());
}

TEST_CASE("a function's calls are a batch") {
  Coalescing group("acme");
  const auto calls = group.collect({}, [&] { add(group, 1); });
  REQUIRE(calls);
  CHECK(calls->size() == 1);
  CHECK(group.batch() == nullptr);
}

TEST_CASE("a function's calls join the batch that was started before") {
  Coalescing group("acme");
  group.start();
  CHECK_FALSE(group.collect({}, [&] { add(group, 1); }));
  CHECK(group.end().size() == 1);
}

TEST_CASE("a function that throws ends the batch") {
  Coalescing group("acme");
  const auto fail = [&] {
    add(group, 1);
    throw std::runtime_error("refused");
  };
  for (const bool inside : {false, true}) {
    if (inside) group.start();
    CHECK_THROWS_WITH(group.collect({}, fail), "refused");
    CHECK(group.batch() == nullptr);
  }
}

TEST_CASE("a call that is refused fails at the end of the batch") {
  Coalescing group("acme");
  const auto fail = []() -> int { throw std::runtime_error("refused"); };
  CHECK_THROWS_WITH(group.run(fail), "refused");
  group.start();
  CHECK(group.run(fail) == 0);
  CHECK(group.run([] { return 1; }) == 1);
  CHECK_THROWS_WITH(group.end(), "refused");
  CHECK(group.batch() == nullptr);
  CHECK_THROWS_WITH(group.collect({}, [&] { group.run(fail); }), "refused");
  CHECK(group.batch() == nullptr);
}

TEST_CASE("a batch that no thread ends goes with its group") {
  std::weak_ptr<int> call;
  auto group = std::make_unique<Coalescing>("acme");
  on_another_thread([&] {
    group->start();
    add(*group, 1);
    call = group->batch()->front();
  });
  CHECK_FALSE(call.expired());
  group.reset();
  CHECK(call.expired());
}

TEST_CASE("a group does not coalesce for an earlier one at its address") {
  std::optional<Coalescing> group;
  group.emplace("acme");
  group->start();
  on_another_thread([&] { group.reset(); });
  group.emplace("acme");
  CHECK(group->batch() == nullptr);
}

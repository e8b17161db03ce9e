// Operations as coroutines, without PyTorch: what steps may await, and how they fail.

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "frame/steps.hpp"

using frame::Awaited, frame::Nested, frame::Steps, frame::Together, frame::Until;
using RankList = std::vector<int>;

namespace {

// A condition that holds from some turn on, and counts how often it is asked.
struct Opening final : Awaited {
  explicit Opening(int& now, int from, RankList ranks = {})
      : now(now), from(from), ranks(std::move(ranks)) {}
  Opening(const Opening&) = delete;
  bool ready() override {
    ++asked;
    return now >= from;
  }
  bool moved() const override { return moves; }
  RankList missing() const override { return ranks; }

  int& now;
  const int from;
  const RankList ranks;
  int asked = 0;
  bool moves = false;
};

Steps wait(Opening& turn) { co_await turn; }

Steps fail(Opening& turn) {
  co_await turn;
  throw std::runtime_error("the turn is over");
}

Steps nested(Steps inner) { co_await std::move(inner); }

Steps together(Steps one, Steps other) {
  Together both(std::move(one), std::move(other));
  co_await both;
}

// Catches what it awaits, and says so.
Steps catches(Steps inner, std::string& caught) {
  try {
    co_await std::move(inner);
    caught = "nothing";
  } catch (const std::runtime_error& error) {
    caught = error.what();
  }
}

template <class Expression>
concept can_be_awaited = requires(Steps::promise_type& promise, Expression&& it) {
  promise.await_transform(std::forward<Expression>(it));
};
// GCC 12 would destroy parts of such temporaries twice.
static_assert(can_be_awaited<Until&> && !can_be_awaited<Until>);
static_assert(can_be_awaited<Together&> && !can_be_awaited<Together>);
static_assert(!can_be_awaited<Nested> && !can_be_awaited<const Until&>);
// Other steps are taken over.
static_assert(can_be_awaited<Steps> && !can_be_awaited<Steps&>);

} // namespace

TEST_CASE("steps await the element of a list, not a copy") {
  int now = 0;
  Opening turns[] = {Opening(now, 0), Opening(now, 1)};
  const auto both = [&]() -> Steps {
    co_await turns[0];
    co_await turns[1];
  };
  Steps steps = both();
  CHECK(steps.advance());
  CHECK(!steps.advance());
  ++now;
  CHECK(steps.advance());
  CHECK(steps.done());
  CHECK(turns[0].asked == 1);
  CHECK(turns[1].asked > 1); // later, too
}

TEST_CASE("steps catch what other steps throw, at once and later") {
  for (const int from : {0, 1}) {
    int now = 0;
    std::string caught;
    Opening turn(now, from);
    Steps steps = catches(fail(turn), caught);
    steps.advance();
    CHECK(steps.done() == (from == 0));
    ++now;
    steps.advance();
    CHECK(steps.done());
    CHECK(caught == "the turn is over");
  }
}

TEST_CASE("what no steps catch comes out of advance(), at once and later") {
  for (const int from : {0, 1}) {
    int now = 0;
    Opening turn(now, from);
    Steps steps = nested(nested(fail(turn)));
    if (from == 1) CHECK(steps.advance());
    now = 1;
    CHECK_THROWS_WITH(steps.advance(), "the turn is over");
    CHECK(steps.done());
  }
}

TEST_CASE("steps side by side all advance, and end with the last") {
  int now = 0;
  Opening early(now, 1, {3}), late(now, 2, {3, 1});
  Steps steps = together(wait(late), wait(early));
  CHECK(steps.advance()); // both have begun
  CHECK(steps.missing() == RankList{1, 3});
  CHECK(!steps.advance());
  now = 1;
  CHECK(steps.advance());
  CHECK(!steps.done());
  late.moves = true;
  CHECK(steps.advance());
  now = 2;
  const int asked = early.asked;
  CHECK(steps.advance());
  CHECK(steps.done());
  CHECK(early.asked == asked); // it had ended
  CHECK(steps.missing().empty());
}

TEST_CASE("steps side by side name the ranks that some wait for") {
  int now = 0;
  Opening any(now, 1), one(now, 2, {2});
  Steps steps = together(wait(any), wait(one));
  steps.advance();
  CHECK(steps.missing() == RankList{2});
  Steps all = together(wait(any), wait(any));
  all.advance();
  CHECK(all.missing().empty());
}

TEST_CASE("an exception ends steps side by side at once") {
  int now = 0, destroyed = 0;
  Opening soon(now, 1), never(now, 2);
  const auto other = [&]() -> Steps {
    const std::shared_ptr<void> end(nullptr, [&](void*) { ++destroyed; });
    co_await never;
  };
  std::string caught;
  Steps steps = catches(together(other(), fail(soon)), caught);
  steps.advance();
  CHECK(destroyed == 0);
  now = 1;
  steps.advance();
  CHECK(steps.done());
  CHECK(caught == "the turn is over");
  CHECK(destroyed == 1);
}

TEST_CASE("steps side by side may be many, done, or none") {
  int now = 0;
  Opening turn(now, 1);
  std::vector<Steps> list(100);
  for (int i = 0; i < 100; i += 2) list[i] = wait(turn);
  Together many(std::move(list)), none;
  CHECK(!many.ready());
  CHECK(none.ready());
  now = 1;
  CHECK(many.ready());
}

// The engine: deadlines, failures, the end of a group, at_once(), and which thread drives.

#include "rank.hpp"

using namespace test;

namespace {

bool is_before(const Texts& calls, const std::string& one, const std::string& other) {
  return std::ranges::find(calls, one) < std::ranges::find(calls, other);
}

} // namespace

TEST_CASE("an all_reduce of three ranks") {
  for (const bool can_block : kBoth) {
    Ranks ranks(3, can_block);
    ranks.network->slow_down();
    for (int round = 0; round < 3; ++round) {
      const auto texts = ranks.all([](const Rank& rank) {
        auto tensor = at::full({4}, rank.rank + 1);
        const auto error = rank.run(rank.all_reduce(tensor));
        return error + std::to_string(tensor.sum().item<int64_t>());
      });
      CHECK(texts == Texts{"24", "24", "24"});
    }
    CHECK(ranks[0].sequence() == 3);
  }
}

TEST_CASE("messages go on side by side, and with collectives") {
  for (const bool can_block : kBoth) {
    Ranks ranks(2, can_block);
    const auto got = at::zeros({2}), later = at::zeros({2});
    const auto barrier = ranks[0].submit(ranks[0].barrier());
    const auto first = ranks[0].submit(ranks[0].receive(later, 1));
    ranks[1].submit(ranks[1].send(at::full({2}, 7.), 0));
    CHECK(ranks[0].end_of(first) == "");
    const auto second = ranks[0].submit(ranks[0].receive(got, frame::kAnySource));
    ranks[1].submit(ranks[1].send(at::full({2}, 8.), 0));
    CHECK(ranks[0].end_of(second) == "");
    CHECK(later.sum().item<float>() == 14);
    CHECK(got.sum().item<float>() == 16);
    CHECK(*second->arguments->source == 1);
    CHECK_FALSE(barrier->ended());
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    CHECK(ranks[0].end_of(barrier) == "");
  }
}

TEST_CASE("collectives begin one after another") {
  for (const bool can_block : kBoth) {
    Ranks ranks(2, can_block);
    const auto one = ranks[0].submit(ranks[0].barrier());
    const auto other = ranks[0].submit(ranks[0].barrier());
    let_pass(1s);
    CHECK(ranks.network->count(0, "exchange") == 1);
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    let_pass(1s);
    CHECK(one->ended());
    CHECK_FALSE(other->ended());
    CHECK(ranks.network->count(0, "exchange") == 2);
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    CHECK(ranks[0].end_of(other) == "");
  }
}

TEST_SUITE("deadlines") {
  TEST_CASE("a deadline passes") {
    for (const bool can_block : kBoth) {
      Ranks ranks(3, can_block);
      const auto third = ranks[2].submit(ranks[2].barrier());
      const auto begin = Clock::now();
      const auto error = ranks[0].run(ranks[0].barrier(1s));
      CHECK(Clock::now() - begin == 1s);
      const std::string reason =
          "Timed out after 1000 ms: rank 0 has waited in barrier #1 for Rank 1";
      CHECK(error ==
          "Backend fake: barrier #1 of group \"g\" failed on rank 0: " + reason);
      CHECK(ranks[0].announced() == reason); // before run() has returned
      CHECK(contains(ranks[2].end_of(third), "failed on rank 2: " + reason));
      CHECK(Clock::now() - begin < 1100ms);
      CHECK(contains(ranks[1].run(ranks[1].barrier()), reason));
    }
  }

  TEST_CASE("a deadline passes where no call waits") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier(1s));
      let_pass(990ms);
      CHECK_FALSE(pending->ended());
      let_pass(20ms);
      CHECK(contains(error_of(pending), "Timed out after 1000 ms"));
      let_pass(100ms);
      CHECK(contains(ranks[0].announced(), "Timed out"));
    }
  }

  TEST_CASE("a deadline passes while the driver hangs in the transport") {
    for (const std::string call : {"exchange", "look", "failure"}) {
      for (const bool can_block : kBoth) {
        CAPTURE(call);
        CAPTURE(can_block);
        Ranks ranks(2, can_block);
        Gate gate;
        ranks.network->on(0, call, [&] { gate.pass(); });
        const auto pending = std::make_shared<Pending>(ranks[0].barrier(1s));
        const auto begin = Clock::now();
        Job hangs([&] { ranks[0].submit(pending); });
        settle();
        CHECK(contains(ranks[0].end_of(pending), "Timed out after 1000 ms"));
        CHECK(Clock::now() - begin <= 1050ms);
        gate.open();
        let_pass(100ms);
        CHECK(contains(ranks[0].announced(), "Timed out"));
      }
    }
  }

  TEST_CASE("the deadline of a collective begins when it is the first") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto one = ranks[0].submit(ranks[0].barrier(10s));
      const auto other = ranks[0].submit(ranks[0].barrier(1s));
      let_pass(3s);
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      CHECK(ranks[0].end_of(one) == "");
      let_pass(900ms);
      CHECK_FALSE(other->ended());
      let_pass(200ms);
      CHECK(contains(error_of(other), "Timed out after 1000 ms"));
    }
  }

  TEST_CASE("later operations do not put a deadline off") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto begin = Clock::now();
      const auto pending = ranks[0].submit(ranks[0].barrier(1s));
      for (int i = 0; i < 5; ++i) {
        let_pass(100ms);
        ranks[0].submit(ranks[0].barrier(5s));
        ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
      }
      CHECK(contains(ranks[0].end_of(pending), "Timed out after 1000 ms"));
      CHECK(Clock::now() - begin <= 1050ms);
    }
  }

  TEST_CASE("a deadline passes while the driver hangs and no call waits") {
    Ranks ranks(2, /*can_block=*/true);
    Gate gate;
    ranks.network->on(0, "look", [&] { gate.pass(); });
    let_pass(1s); // all threads of the engine sleep
    const auto pending = ranks[0].submit(ranks[0].barrier(1s));
    let_pass(1100ms);
    CHECK(contains(error_of(pending), "Timed out after 1000 ms"));
    gate.open();
  }

  TEST_CASE("a deadline passes while the driver hangs and callbacks wait for others") {
    Ranks ranks(2, /*can_block=*/true);
    const auto first = ranks[0].submit(ranks[0].barrier());
    for (int i = 0; i < 10; ++i) ranks[0].when_ended(first, [] { let_pass(500ms); });
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    CHECK(ranks[0].end_of(first) == "");
    Gate gate;
    ranks.network->on(0, "look", [&] { gate.pass(); });
    const auto pending = ranks[0].submit(ranks[0].barrier(1s));
    let_pass(1600ms);
    CHECK(contains(error_of(pending), "Timed out after 1000 ms"));
    gate.open();
  }

  TEST_CASE("an operation that has failed writes nothing afterwards") {
    Ranks ranks(2, /*can_block=*/true);
    const auto tensor = at::ones({1}), other = at::ones({1});
    ranks.network->hold();
    ranks[1].submit(ranks[1].all_reduce(other));
    const auto pending = ranks[0].submit(ranks[0].all_reduce(tensor, 1s));
    let_pass(500ms);
    Gate gate;
    ranks.network->on(0, "failure", [&] { gate.pass(); });
    CHECK(contains(ranks[0].end_of(pending), "Timed out after 1000 ms"));
    ranks.network->hold(false);
    gate.open();
    let_pass(1s);
    CHECK(tensor.item<float>() == 1);
    CHECK(other.item<float>() == 2); // its rank had all that it needed
  }

  TEST_CASE("a collective that ends late does not take time from the next") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto one = ranks[0].submit(ranks[0].barrier(1s));
      ranks[0].before_end(one, [] { let_pass(5s); }); // longer than the next may take
      const auto other = ranks[0].submit(ranks[0].barrier(20s));
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      CHECK(ranks[0].end_of(one) == "");
      CHECK_FALSE(other->ended());
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      CHECK(ranks[0].end_of(other) == "");
      CHECK(ranks[0].announced() == "");
    }
  }

  TEST_CASE("messages have no deadline, but waits for them have") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1, 1s));
      let_pass(100s);
      CHECK_FALSE(pending->ended());
      CHECK(ranks[0].missing(pending) == std::vector{1});
      const auto begin = Clock::now();
      CHECK_THROWS_WITH_AS(ranks[0].work({pending})->wait(),
          doctest::Contains("has not ended within the 1000 ms of this wait(); it waits "
                            "for Rank 1"),
          c10::DistBackendError);
      CHECK(Clock::now() - begin == 1s);
      ranks[1].submit(ranks[1].send(at::ones({1}), 0));
      CHECK(ranks[0].work({pending})->wait());
    }
  }

  TEST_CASE("a wait whose limit is over looks once") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier());
      let_pass(1s);
      const auto begin = Clock::now();
      CHECK_FALSE(ranks[0].wait(pending, begin));
      CHECK_FALSE(ranks[0].wait(pending, begin - 1s));
      CHECK(Clock::now() - begin < 50ms);
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      let_pass(1s);
      CHECK(ranks[0].wait(pending, begin));
    }
  }

  TEST_CASE("a late monitored_barrier speaks as gloo does") {
    for (const bool name_all : {false, true}) {
      Ranks ranks(3);
      const auto error = ranks[0].run(ranks[0].monitored_barrier(name_all, 1s));
      const auto who = name_all ? "Ranks 1, 2" : "Rank 1";
      CHECK(contains(error,
          std::string(who) +
              " failed to pass monitoredBarrier in 1000 ms; Rank 0 timed"));
    }
  }
}

TEST_SUITE("failures") {
  TEST_CASE("an exception of the transport fails the group on all ranks") {
    for (const std::string call :
        {"collective", "exchange", "look", "failure", "lost", "rest"}) {
      for (const bool can_block : kBoth) {
        CAPTURE(call);
        Ranks ranks(3, can_block);
        ranks.network->let_throw(1, call);
        const auto pending = ranks[0].submit(ranks[0].barrier());
        const auto message = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
        CHECK(contains(ranks[1].run(ranks[1].barrier()), call + " throws"));
        CHECK(ranks[1].announced() == call + " throws");
        CHECK(contains(ranks[0].end_of(pending), "on rank 0: " + call + " throws"));
        CHECK(contains(ranks[0].end_of(message), call + " throws"));
        CHECK(contains(ranks[0].run(ranks[0].barrier()), call + " throws"));
        ranks.close();
        CHECK(is_before(ranks.network->calls(1), "announce", "leave"));
        CHECK(ranks[0].left() == false);
        CHECK(ranks[1].left() == false);
      }
    }
  }

  TEST_CASE("what the transport throws may be of any type") {
    for (const std::string call : {"collective", "look", "failure", "rest"}) {
      for (const bool can_block : kBoth) {
        CAPTURE(call);
        Ranks ranks(3, can_block);
        ranks.network->on(1, call, [] { throw 42; });
        const auto pending = ranks[0].submit(ranks[0].barrier());
        const std::string error = ranks[1].run(ranks[1].barrier());
        CHECK(contains(error, "an exception of an unknown type"));
        CHECK(contains(ranks[0].end_of(pending), "an exception of an unknown type"));
      }
    }
  }

  TEST_CASE("an exception while a rank says goodbye concerns nobody") {
    for (const std::string call : {"announce", "leave", "last steps"}) {
      for (const bool can_block : kBoth) {
        CAPTURE(call);
        Ranks ranks(2, can_block);
        ranks.network->let_throw(0, call);
        CHECK(contains(ranks[0].run(ranks[0].barrier(1s)), "Timed out"));
        const auto begin = Clock::now();
        ranks[0].close();
        CHECK(Clock::now() - begin < 100ms);
      }
    }
  }

  TEST_CASE("a rank that dies is named") {
    for (const bool can_block : kBoth) {
      Ranks ranks(3, can_block);
      const auto one = ranks[0].submit(ranks[0].barrier(100s));
      const auto other = ranks[1].submit(ranks[1].barrier(100s));
      let_pass(1s);
      ranks.network->kill(2);
      const auto begin = Clock::now();
      CHECK(contains(ranks[0].end_of(one), "on rank 0: rank 2 has died"));
      CHECK(contains(ranks[1].end_of(other), "on rank 1: rank 2 has died"));
      CHECK(Clock::now() - begin <= 200ms);
    }
  }

  TEST_CASE("data that had come before its rank died counts") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto got = at::zeros({1});
      ranks.network->hold();
      ranks[1].submit(ranks[1].send(at::ones({1}), 0));
      const auto pending = ranks[0].submit(ranks[0].receive(got, 1));
      let_pass(1s);
      ranks.network->on(0, "lost", [&] { ranks.network->hold(false); });
      ranks.network->kill(1);
      CHECK(ranks[0].end_of(pending) == "");
      CHECK(got.item<float>() == 1);
    }
  }

  TEST_CASE("the reason that a rank has told counts more than that it has left") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier());
      ranks.network->on(0, "lost", [&] {
        ranks.network->kill(1);
        ranks.network->announce("rank 1 has no memory");
      });
      CHECK(contains(ranks[0].end_of(pending), "on rank 0: rank 1 has no memory"));
    }
  }

  TEST_CASE("ranks that run different collectives both say so") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto texts = ranks.all([](const Rank& rank) {
        auto tensor = at::zeros({2});
        return rank.run(rank.rank == 0 ? rank.barrier() : rank.all_reduce(tensor));
      });
      for (const auto& text : texts) {
        CHECK(contains(text,
            "the ranks do not agree: rank 0 runs barrier #1, rank 1 runs all_reduce #1 of "
            "8 bytes of float32 with SUM"));
      }
    }
  }

  TEST_CASE("the first failure counts") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier(1s));
      CHECK(contains(ranks[0].end_of(pending), "Timed out"));
      ranks.network->announce("something else");
      CHECK(contains(ranks[0].run(ranks[0].barrier()), "Timed out"));
      CHECK(ranks.network->count(0, "exchange") == 1); // the second has not begun
      ranks[0].abort();
      CHECK(contains(error_of(pending), "Timed out"));
      CHECK(contains(ranks[0].announced(), "Timed out"));
      CHECK(ranks.network->count(0, "announce") == 1);
    }
  }
}

TEST_SUITE("the end of a group") {
  TEST_CASE("closing ends what is in flight, and then the rank leaves") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto barrier = ranks[0].submit(ranks[0].barrier());
      const auto message = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
      const auto behind = ranks[0].submit(ranks[0].barrier());
      Job waits([&] { ranks[0].wait(barrier); });
      let_pass(1s);
      const auto begin = Clock::now();
      ranks[0].close("its group was destroyed");
      CHECK(Clock::now() - begin < 100ms);
      for (const auto& each : {barrier, message, behind}) {
        CHECK(contains(error_of(each), "on rank 0: its group was destroyed"));
        CHECK(ranks[0].missing(each).size() < 2);
      }
      CHECK(waits.error() == "");
      CHECK(ranks[0].left() == true); // orderly
      CHECK(ranks[0].announced() == "");
      CHECK_THROWS_WITH(ranks[0].submit(ranks[0].barrier()),
          doctest::Contains("cannot run barrier: its group was destroyed"));
      ranks[0].close("another reason");
      ranks[0].abort();
      CHECK_THROWS_WITH(ranks[0].run(ranks[0].receive(at::zeros({1}), 1)),
          doctest::Contains("its group was destroyed"));
    }
  }

  TEST_CASE("steps end before the rank leaves") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      ranks[0].submit(ranks[0].barrier());
      ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
      let_pass(1s);
      ranks[0].close();
      CHECK(ranks.network->count(0, "end of steps") == 2);
      CHECK(is_before(ranks.network->calls(0), "end of steps", "leave"));
    }
  }

  TEST_CASE("aborting tells the others before the rank leaves") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto other = ranks[1].submit(ranks[1].barrier());
      const auto pending = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
      ranks[0].abort();
      CHECK(contains(error_of(pending), "rank 0 has aborted the group"));
      CHECK(is_before(ranks.network->calls(0), "announce", "leave"));
      CHECK(ranks[0].left() == false);
      CHECK(
          contains(ranks[1].end_of(other), "on rank 1: rank 0 has aborted the group"));
    }
  }

  TEST_CASE("a rank aborts while another thread of it waits") {
    for (const bool can_block : kBoth) {
      for (const bool is_slow : {false, true}) {
        Ranks ranks(2, can_block);
        if (is_slow) ranks.network->slow_down();
        const auto pending = ranks[0].submit(ranks[0].barrier());
        std::list<Job> waits;
        for (int i = 0; i < 2; ++i) waits.emplace_back([&] { ranks[0].wait(pending); });
        settle();
        const auto begin = Clock::now();
        ranks[0].abort();
        CHECK(Clock::now() - begin < 200ms);
        for (auto& each : waits) CHECK(each.error() == "");
        CHECK(is_before(ranks.network->calls(0), "announce", "leave"));
      }
    }
  }

  TEST_CASE("an idle rank that aborts tells the others, too") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      ranks[0].abort();
      CHECK(ranks[0].announced() == "rank 0 has aborted the group");
      CHECK(contains(ranks[1].run(ranks[1].barrier()), "rank 0 has aborted the group"));
    }
  }

  TEST_CASE("a rank that fails and closes at once has told the others") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      ranks.network->slow_down();
      const auto pending = ranks[0].submit(ranks[0].barrier(1s));
      ranks[0].when_ended(pending, [&] { ranks[0].close("too late"); });
      let_pass(2s);
      CHECK(contains(error_of(pending), "Timed out"));
      CHECK(contains(ranks[0].announced(), "Timed out"));
      CHECK(is_before(ranks.network->calls(0), "announce", "leave"));
    }
  }

  TEST_CASE("many threads close") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      ranks.network->slow_down();
      const auto pending = ranks[0].submit(ranks[0].barrier());
      std::list<Job> jobs;
      for (int i = 0; i < 3; ++i) jobs.emplace_back([&] { ranks[0].close("one"); });
      for (int i = 0; i < 3; ++i) jobs.emplace_back([&] { ranks[0].abort(); });
      for (auto& job : jobs) CHECK(job.error() == "");
      CHECK(pending->ended());
      CHECK(ranks.network->count(0, "leave") == 1);
    }
  }

  TEST_CASE("threads of the engine close and abort") {
    for (const bool before : {true, false}) {
      for (const bool aborts : {true, false}) {
        for (const bool can_block : kBoth) {
          CAPTURE(before);
          CAPTURE(aborts);
          Ranks ranks(2, can_block);
          const auto& rank = ranks[0];
          const auto pending = rank.submit(rank.barrier());
          const auto other = rank.submit(rank.receive(at::zeros({1}), 1));
          Clock::duration took{};
          const auto end = [&] {
            const auto begin = Clock::now();
            aborts ? rank.abort() : rank.close("it closes");
            took = Clock::now() - begin;
          };
          if (before) rank.before_end(pending, end);
          if (!before) rank.when_ended(pending, end);
          CHECK(ranks[1].run(ranks[1].barrier()) == "");
          CHECK(rank.end_of(pending) == "");
          CHECK(contains(
              rank.end_of(other), aborts ? "rank 0 has aborted" : "it closes"));
          let_pass(3s);
          // Where this thread drives, it calls back, and the threads wait for it.
          CHECK(took <= (before && !can_block ? 2500ms : 100ms));
        }
      }
    }
  }

  TEST_CASE("the last reference to an engine goes in a callback") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier());
      const auto& rank = ranks[0];
      rank.when_ended(
          pending, [&rank, engine = rank.engine().lock()] { rank.close(); });
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      const auto engine = rank.engine();
      let_pass(1s);
      ranks[0].take_engine();
      let_pass(5s);
      CHECK(engine.expired());
    }
  }

  TEST_CASE("a call that hangs holds up the end for two and a half seconds") {
    Ranks ranks(2, /*can_block=*/true);
    Gate gate;
    ranks.network->on(0, "exchange", [&] { gate.pass(); });
    const auto pending = ranks[0].submit(ranks[0].barrier());
    let_pass(1s);
    const auto begin = Clock::now();
    ranks[0].close("its group was destroyed");
    CHECK(Clock::now() - begin == 2500ms);
    CHECK(contains(error_of(pending), "its group was destroyed"));
    ranks[0].take_engine();
    CHECK_FALSE(ranks[0].left());
    gate.open();
    let_pass(1s);
    CHECK(ranks[0].left()); // only now
  }

  TEST_CASE("the last steps get two seconds") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      ranks.network->stay(0);
      auto begin = Clock::now();
      ranks[0].close();
      CHECK(Clock::now() - begin == 2s);
      ranks.network->stay(1);
      Job opens([&] {
        let_pass(300ms);
        ranks.network->stay(1, false);
      });
      begin = Clock::now();
      ranks[1].close();
      CHECK(Clock::now() - begin == 300ms);
    }
  }

  TEST_CASE("a long callback holds up neither the end of its group nor the others") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      Gate gate;
      bool has_ended = false;
      const auto pending = ranks[0].submit(ranks[0].barrier());
      ranks[0].when_ended(pending, [&] {
        gate.pass();
        has_ended = true;
      });
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      CHECK(ranks[0].end_of(pending) == "");
      const auto begin = Clock::now();
      ranks[0].close();
      CHECK(Clock::now() - begin == 2500ms);
      ranks[0].take_engine();
      CHECK(ranks[0].left() == true);
      gate.open();
      let_pass(1s);
      CHECK(has_ended);
    }
  }

  TEST_CASE("draining waits for collectives, and for sends a while") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto barrier = ranks[0].submit(ranks[0].barrier());
      const auto receive = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
      const auto send = ranks[0].submit(ranks[0].send(at::zeros({1}), 1));
      Job comes([&] {
        let_pass(5s);
        CHECK(ranks[1].run(ranks[1].barrier()) == "");
      });
      const auto begin = Clock::now();
      ranks[0].drain();
      CHECK(Clock::now() - begin >= 7s);
      CHECK(Clock::now() - begin < 7100ms);
      CHECK(error_of(barrier) == "");
      CHECK_FALSE(receive->ended());
      CHECK_FALSE(send->ended());
      const auto got = ranks[1].submit(ranks[1].receive(at::zeros({1}), 0));
      ranks[0].drain();
      CHECK(error_of(send) == "");
      CHECK(ranks[1].end_of(got) == "");
    }
  }

  TEST_CASE("draining ends at the deadline of a collective") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto barrier = ranks[0].submit(ranks[0].barrier(3s));
      const auto begin = Clock::now();
      ranks[0].drain();
      CHECK(Clock::now() - begin <= 3s);
      CHECK(contains(error_of(barrier), "Timed out"));
    }
  }

  TEST_CASE("a rank that cannot start its threads tells the others") {
    for (const int threads : {0, 1}) {
      for (const bool can_block : kBoth) {
        CAPTURE(threads);
        const auto network = std::make_shared<Network>(2, can_block);
        {
          Rank rank(network, 0);
          frame::MovedTime::get().allow_threads(threads);
          CHECK_THROWS_WITH(rank.start(),
              doctest::Contains("Backend fake: rank 0 cannot join group \"g\": rank 0 "
                                "cannot start a thread"));
          frame::MovedTime::get().allow_threads(frame::MovedTime::kAnyNumber);
          CHECK(contains(network->announced(0), "rank 0 cannot start a thread"));
          CHECK_THROWS(rank.submit(rank.barrier()));
        }
        CHECK(frame::MovedTime::get().threads() == 0);
      }
    }
  }
}

TEST_SUITE("which thread drives") {
  TEST_CASE("a thread of the engine makes all calls if the transport can block") {
    Ranks ranks(2, /*can_block=*/true);
    ranks.network->slow_down();
    for (int round = 0; round < 3; ++round) {
      ranks.all([](const Rank& rank) { return rank.run(rank.barrier()); });
    }
    CHECK(ranks.network->threads(0).size() == 1);
    CHECK_FALSE(ranks.network->threads(0).contains(std::this_thread::get_id()));
  }

  TEST_CASE("a call that waits drives, and alone") {
    Ranks ranks(2);
    Job comes([&] {
      let_pass(1s);
      ranks[1].run(ranks[1].barrier());
    });
    CHECK(ranks[0].run(ranks[0].barrier()) == "");
    CHECK(ranks.network->threads(0) == std::set{std::this_thread::get_id()});
  }

  TEST_CASE("a wait that is over hands the drive to the thread of the engine") {
    Ranks ranks(2);
    const auto pending = ranks[0].submit(ranks[0].barrier());
    Job waits([&] { CHECK_FALSE(ranks[0].wait(pending, Clock::now() + 1s)); });
    CHECK(waits.error() == "");
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    let_pass(100ms);
    CHECK(error_of(pending) == "");
  }

  TEST_CASE("a call whose operation has ended hands the drive to the next") {
    Ranks ranks(2);
    ranks.network->slow_down();
    const auto one = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
    const auto other = ranks[0].submit(ranks[0].barrier());
    Job first([&] { CHECK(ranks[0].end_of(one) == ""); });
    settle();
    Job second([&] { CHECK(ranks[0].end_of(other) == ""); });
    let_pass(1s);
    ranks[1].submit(ranks[1].send(at::zeros({1}), 0));
    CHECK(first.error() == "");
    CHECK_FALSE(second.has_ended());
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    CHECK(second.error() == "");
  }

  TEST_CASE("a thread that waits for one operation ends that of another thread") {
    Ranks ranks(2);
    const auto one = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
    const auto other = ranks[0].submit(ranks[0].barrier());
    Job waits([&] { ranks[0].wait(one); });
    let_pass(1s);
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    let_pass(100ms);
    CHECK(error_of(other) == "");
    CHECK_FALSE(waits.has_ended());
    ranks[0].close();
  }

  TEST_CASE("a thread that waits for what no operation brings does not drive") {
    Ranks ranks(2);
    const auto& rank = ranks[0];
    std::atomic<bool> may_go = false;
    Job waits([&] { rank.wait([&] { return may_go.load(); }); });
    settle();
    const auto pending = rank.submit(rank.barrier());
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    let_pass(100ms);
    CHECK(error_of(pending) == "");
    may_go = true;
    const auto wakes = rank.submit(rank.barrier());
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    CHECK(rank.end_of(wakes) == "");
    CHECK(waits.error() == "");
  }

  // Work::getFuture() makes a work that has ended wait for its future.
  TEST_CASE("a wait has ended once it was told so") {
    for (const bool can_block : kBoth) {
      Ranks ranks(1, can_block);
      int asked = 0;
      CHECK(ranks[0].wait([&] { return asked++ == 0; }));
    }
  }

  TEST_CASE("many threads run at once") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      ranks.network->slow_down();
      std::list<Job> jobs;
      for (int rank = 0; rank < 2; ++rank) {
        for (int i = 0; i < 4; ++i) {
          jobs.emplace_back([&, rank, i] {
            const auto& mine = ranks[rank];
            for (int round = 0; round < 3; ++round) {
              const auto tensor = at::full({1}, 1. * i);
              CHECK(mine.run(mine.barrier()) == "");
              CHECK(mine.run(rank == 0 ? mine.send(tensor, 1)
                                       : mine.receive(tensor, 0)) == "");
            }
          });
        }
      }
      for (auto& job : jobs) CHECK(job.error() == "");
    }
  }
}

TEST_SUITE("at_once") {
  TEST_CASE("a collective ends at once") {
    Ranks ranks(2);
    ranks.network->set_at_once([] { return true; });
    Turn turn;
    for (uint64_t number = 1; number <= 3; ++number) {
      auto call = ranks[0].barrier();
      CHECK(ranks[0].at_once(call, turn));
      CHECK(!turn);
      CHECK(call.note.sequence == number);
      CHECK(ranks[0].sequence() == number);
    }
    CHECK(ranks.network->count(0, "exchange") == 0);
  }

  TEST_CASE("a collective that does not end at once goes on with the turn") {
    for (const bool throws : {false, true}) {
      Ranks ranks(2);
      if (throws) ranks.network->let_throw(0, "at_once");
      Job other([&] { CHECK(ranks[1].run(ranks[1].barrier()) == ""); });
      auto call = ranks[0].barrier();
      Turn turn;
      CHECK_FALSE(ranks[0].at_once(call, turn));
      CHECK(!!turn);
      const auto pending = ranks[0].submit(std::move(call), std::move(turn));
      CHECK(ranks[0].end_of(pending) == "");
      CHECK(pending->note().sequence == 1);
      CHECK(ranks[0].sequence() == 1);
      CHECK(other.error() == "");
    }
  }

  TEST_CASE("a collective with the turn is the first") {
    Ranks ranks(2);
    auto call = ranks[0].barrier();
    Turn turn, none;
    CHECK_FALSE(ranks[0].at_once(call, turn));
    const auto behind = ranks[0].submit(ranks[0].barrier());
    let_pass(1s);
    CHECK(ranks.network->count(0, "exchange") == 0); // until the turn is taken
    auto more = ranks[0].barrier();
    CHECK_FALSE(ranks[0].at_once(more, none)); // something runs
    CHECK(!none);
    const auto first = ranks[0].submit(std::move(call), std::move(turn));
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    CHECK(ranks[0].end_of(first) == "");
    CHECK_FALSE(behind->ended());
    CHECK(first->note().sequence == 1);
    CHECK(behind->note().sequence == 2);
  }

  TEST_CASE("the deadline of a collective begins when that with the turn has ended") {
    Ranks ranks(2);
    auto call = ranks[0].barrier();
    Turn turn;
    CHECK_FALSE(ranks[0].at_once(call, turn));
    const auto behind = ranks[0].submit(ranks[0].barrier(1s)); // by another thread
    const auto first = ranks[0].submit(std::move(call), std::move(turn));
    let_pass(3s);
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    CHECK(ranks[0].end_of(first) == "");
    let_pass(900ms);
    CHECK(error_of(behind) == "goes on");
    CHECK(ranks[1].run(ranks[1].barrier()) == "");
    CHECK(ranks[0].end_of(behind) == "");
  }

  TEST_CASE("a turn that is lost fails the group") {
    Ranks ranks(2);
    {
      auto call = ranks[0].barrier();
      Turn turn;
      CHECK_FALSE(ranks[0].at_once(call, turn));
    } // as if an exception were thrown here
    const std::string reason = "rank 0 cannot go on with a call";
    CHECK(contains(ranks[0].run(ranks[0].barrier()), reason));
    CHECK(ranks[0].announced().starts_with(reason));
    CHECK(contains(ranks[1].run(ranks[1].barrier()), reason));
  }

  TEST_CASE("a failure comes between at_once and submit") {
    Ranks ranks(2);
    auto call = ranks[0].barrier();
    Turn turn;
    CHECK_FALSE(ranks[0].at_once(call, turn));
    const auto other = ranks[0].submit(ranks[0].barrier(1s)); // behind it
    ranks.network->announce("rank 1 has failed");
    let_pass(100ms);
    CHECK_FALSE(other->ended());
    const auto pending = ranks[0].submit(std::move(call), std::move(turn));
    CHECK(contains(ranks[0].end_of(pending), "rank 1 has failed"));
    CHECK(contains(ranks[0].end_of(other), "rank 1 has failed"));
  }

  TEST_CASE("a group closes between at_once and submit") {
    Ranks ranks(2);
    auto call = ranks[0].barrier();
    Turn turn;
    CHECK_FALSE(ranks[0].at_once(call, turn));
    Job closes([&] { ranks[0].close("its group was destroyed"); });
    let_pass(100ms);
    CHECK_FALSE(ranks[0].left()); // the turn excludes the driver
    CHECK_THROWS_WITH(ranks[0].submit(std::move(call), std::move(turn)),
        doctest::Contains("its group was destroyed"));
    CHECK(closes.error() == "");
    CHECK(ranks[0].left());
  }

  TEST_CASE("nothing ends at once after a failure, or after the end") {
    Ranks ranks(2);
    ranks.network->set_at_once([] { return true; });
    CHECK(contains(ranks[0].run(ranks[0].barrier(1s)), "Timed out"));
    Turn turn;
    auto call = ranks[0].barrier();
    CHECK_FALSE(ranks[0].at_once(call, turn));
    CHECK(!turn);
    ranks[1].close();
    call = ranks[1].barrier();
    CHECK_FALSE(ranks[1].at_once(call, turn));
    CHECK(!turn);
  }

  TEST_CASE("nothing ends at once beside something else") {
    Ranks ranks(2);
    ranks.network->set_at_once([] { return true; });
    const auto message = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
    Turn turn;
    auto call = ranks[0].barrier();
    CHECK_FALSE(ranks[0].at_once(call, turn));
    ranks[1].submit(ranks[1].send(at::zeros({1}), 0));
    CHECK(ranks[0].end_of(message) == "");
    let_pass(100ms);
    CHECK(ranks[0].at_once(call, turn));
  }

  TEST_CASE("a transport that can block is not asked") {
    Ranks ranks(2, /*can_block=*/true);
    ranks.network->set_at_once([] { return true; });
    Turn turn;
    auto call = ranks[0].barrier();
    CHECK_FALSE(ranks[0].at_once(call, turn));
    CHECK(ranks.network->count(0, "at_once") == 0);
  }

  TEST_CASE("a result that cannot be written concerns its call alone") {
    Ranks ranks(1);
    auto tensor = at::zeros({4, 2}).t(); // not contiguous, so the results are copied
    ranks.network->set_at_once([&] { return tensor.resize_({3}), true; });
    Turn turn;
    auto call = ranks[0].barrier();
    call.output(tensor);
    CHECK_THROWS_AS(ranks[0].at_once(call, turn), c10::Error);
    CHECK(!turn);
    ranks.network->set_at_once([] { return false; });
    call = ranks[0].barrier();
    CHECK_FALSE(ranks[0].at_once(call, turn));
    CHECK(ranks[0].run(std::move(call), std::move(turn)) == "");
    CHECK(ranks[0].announced() == "");
  }

  TEST_CASE("threads that compete for the turn") {
    Ranks ranks(1);
    ranks.network->slow_down();
    std::atomic<int> calls = 0;
    ranks.network->set_at_once([&] { return ++calls % 2 == 0; });
    std::list<Job> jobs;
    for (int i = 0; i < 4; ++i) {
      jobs.emplace_back([&] {
        for (int round = 0; round < 5; ++round) {
          Turn turn;
          auto call = ranks[0].barrier();
          if (ranks[0].at_once(call, turn)) continue;
          CHECK(ranks[0].run(std::move(call), std::move(turn)) == "");
        }
      });
    }
    for (auto& job : jobs) CHECK(job.error() == "");
    CHECK(ranks[0].sequence() == 20);
  }
}

TEST_SUITE("chance") {
  // What happens is drawn, and when. The time moves only while all sleep, so that much of
  // it happens at once.
  TEST_CASE("whatever happens, every operation ends") {
    for (unsigned seed = 0; seed < 40; ++seed) {
      CAPTURE(seed);
      Ranks ranks(3, seed % 2 == 1);
      if (seed % 4 < 2) ranks.network->slow_down();
      ranks.network->set_at_once([] { return false; });
      std::mutex mutex;
      std::vector<PendingPtr> all;
      const auto add = [&](const PendingPtr& pending) {
        const std::lock_guard lock(mutex);
        all.push_back(pending);
        return pending;
      };
      const auto work = [&](const Rank& rank, unsigned number) {
        std::minstd_rand random(100 * seed + number);
        const auto draw = [&](int below) {
          return static_cast<int>(random() >> 8) % below;
        };
        for (int round = 0; round < 6; ++round) {
          const int other = (rank.rank + 1 + draw(2)) % 3;
          const auto tensor = at::zeros({1});
          Turn turn;
          auto call = rank.barrier(milliseconds(1 + draw(300)));
          const int kind = draw(6);
          if (kind == 1) call = rank.send(tensor, other);
          if (kind == 2)
            call = rank.receive(tensor, draw(2) ? other : frame::kAnySource);
          if (kind == 3) CHECK_FALSE(rank.at_once(call, turn));
          const auto pending = std::make_shared<Pending>(std::move(call));
          const bool notes = draw(2);
          if (notes) rank.before_end(pending, [] { frame::yield(); });
          rank.submit(add(pending), std::move(turn));
          if (notes) rank.when_ended(pending, [&, pending] { rank.missing(pending); });
          const auto limit = Clock::now() + milliseconds(draw(100));
          rank.wait(
              pending, draw(2) || pending->note().root >= -1 ? limit : frame::kNever);
        }
      };
      const auto disturb = [&](unsigned number) {
        std::minstd_rand random(100 * seed + number);
        const auto draw = [&](int below) {
          return static_cast<int>(random() >> 8) % below;
        };
        static const char* const calls[] = {
            "exchange", "look", "failure", "lost", "announce", "leave", "rest", "send"};
        let_pass(std::chrono::microseconds(draw(400'000)));
        const int rank = draw(3);
        if (const int what = draw(6); what == 0) {
          ranks.network->kill(rank);
        } else if (what == 1) {
          ranks[rank].abort();
        } else if (what == 2) {
          ranks[rank].close();
        } else if (what == 3) {
          ranks.network->announce("another rank has failed");
        } else if (what == 4) {
          ranks.network->let_throw(rank, calls[draw(8)]);
        }
      };
      std::list<Job> jobs;
      for (unsigned number = 0; number < 6; ++number) {
        jobs.emplace_back([&, number] { work(ranks[number / 2], number); });
      }
      for (unsigned number = 6; number < 8; ++number) {
        jobs.emplace_back([&, number] { disturb(number); });
      }
      for (auto& job : jobs) {
        const auto error = job.error(); // of a submission to a closed group
        CHECK((error == "" || contains(error, "the test is over") ||
            contains(error, "its group was aborted")));
      }
      jobs.clear();
      ranks.close();
      for (const auto& each : all) CHECK((each->ended() || !each->operation.owner));
    }
  }
}

TEST_SUITE("forks") {
  TEST_CASE("a fork can use nothing of the group, and let go of all") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier());
      const auto ended = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
      ranks[1].submit(ranks[1].send(at::zeros({1}), 0));
      CHECK(ranks[0].end_of(ended) == "");
      auto work = ranks[0].work({pending});
      const auto status = status_of_fork([&] {
        const auto refuses = [](const auto& call) {
          try {
            call();
          } catch (const c10::DistBackendError& error) {
            if (contains(error.what(), "not to a fork of it")) return;
          }
          _exit(1);
        };
        Turn turn;
        auto call = ranks[0].barrier();
        refuses([&] { ranks[0].check_process(); });
        refuses([&] { ranks[0].submit(ranks[0].barrier()); });
        refuses([&] { ranks[0].run(ranks[0].barrier()); });
        refuses([&] { ranks[0].at_once(call, turn); });
        refuses([&] { ranks[0].wait(pending); });
        refuses([&] { ranks[0].when_ended(pending, [] {}); });
        refuses([&] { ranks[0].before_end(pending, [] {}); });
        refuses([&] { work->wait(); });
        refuses([&] { work->getFuture(); });
        bool is_called = false;
        ranks[0].when_ended(ended, [&] { is_called = true; });
        if (!is_called) _exit(2);
        work.reset();
        ranks[0].drain();
        ranks[0].abort();
        ranks[0].close();
        ranks[0].take_engine();
      });
      CHECK(status == 0);
      CHECK(ranks[1].run(ranks[1].barrier()) == ""); // the parent goes on
      CHECK(ranks[0].end_of(pending) == "");
    }
  }

  TEST_CASE("a callback that throws ends the process") {
    for (const bool before : {false, true}) {
      const auto status = status_of_fork([&] {
        std::freopen("/dev/null", "w", stderr); // the words of std::terminate
        Ranks ranks(1);
        const auto pending = std::make_shared<Pending>(ranks[0].barrier());
        const auto throws = [] { throw std::runtime_error("out of a callback"); };
        if (before) ranks[0].before_end(pending, throws);
        if (!before) ranks[0].when_ended(pending, throws);
        ranks[0].submit(pending);
        let_pass(1s);
      });
      CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
    }
  }
}

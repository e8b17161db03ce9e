// What programs see: works, futures, callbacks and groups.

#include "rank.hpp"

using namespace test;

namespace {

// Runs its function where its last owner lets go of it.
std::shared_ptr<void> at_end_of_life(std::function<void()> function) {
  return {nullptr, [function](void*) { function(); }};
}

} // namespace

TEST_SUITE("callbacks") {
  TEST_CASE("one thread calls back, in the order in which operations end") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto& rank = ranks[0];
      std::vector<int> order;
      std::set<std::thread::id> threads;
      const auto adds = [&](int number) {
        return [&, number] {
          order.push_back(number);
          threads.insert(std::this_thread::get_id());
          let_pass(1s);
        };
      };
      const auto message = rank.submit(rank.receive(at::zeros({1}), 1));
      const auto barrier = rank.submit(rank.barrier());
      rank.when_ended(message, adds(3));
      rank.when_ended(barrier, adds(1));
      rank.when_ended(barrier, adds(2));
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      const auto begin = Clock::now();
      CHECK(rank.end_of(barrier) == "");
      ranks[1].submit(ranks[1].send(at::zeros({1}), 0));
      CHECK(rank.end_of(message) == "");
      CHECK(Clock::now() - begin < 500ms); // callbacks hold up no operation
      let_pass(4s);
      CHECK(order == std::vector{1, 2, 3});
      CHECK(threads.size() == 1);
      CHECK_FALSE(threads.contains(std::this_thread::get_id()));
    }
  }

  TEST_CASE("a callback of an ended operation is called at once") {
    for (const bool can_block : kBoth) {
      Ranks ranks(1, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier());
      ranks[0].wait(pending);
      int calls = 0;
      ranks[0].when_ended(pending, [&] { ++calls; });
      ranks[0].before_end(pending, [&] { ++calls; });
      CHECK(calls == 2);
    }
  }

  TEST_CASE("no thread learns of the end before the first callbacks have returned") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto& rank = ranks[0];
      const auto pending = rank.submit(rank.barrier());
      bool is_called = false;
      rank.before_end(pending, [&] {
        rank.before_end(pending, [&] { is_called = true; }); // one more meanwhile
        let_pass(1s);
        CHECK_FALSE(pending->ended());
        CHECK_FALSE(is_called);
      });
      Job waits([&] {
        rank.wait(pending);
        CHECK(is_called);
      });
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      CHECK(waits.error() == "");
    }
  }

  TEST_CASE("all first callbacks of a failure are called before any operation ends") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto& rank = ranks[0];
      const auto one = rank.submit(rank.receive(at::zeros({1}), 1));
      const auto other = rank.submit(rank.receive(at::zeros({1}), 1));
      int calls = 0;
      for (const auto& each : {one, other}) {
        rank.before_end(each, [&] { calls += !one->ended() && !other->ended(); });
      }
      rank.close();
      CHECK(calls == 2);
      CHECK(one->ended());
      CHECK(other->ended());
    }
  }

  TEST_CASE(
      "in a callback, those of other operations come on the thread that ends them") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto& rank = ranks[0];
      const auto first = rank.submit(rank.barrier());
      const auto second = rank.submit(rank.barrier());
      Gate gate;
      rank.when_ended(first, [&] {
        rank.when_ended(second, [&] { gate.open(); });
        gate.pass(); // as PowerSGD's hook waits
      });
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      let_pass(1s);
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      CHECK(rank.end_of(second) == "");
      gate.pass();
    }
  }

  TEST_CASE("a callback runs, submits and waits") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto& rank = ranks[0];
      const auto first = rank.submit(rank.barrier());
      PendingPtr third;
      bool has_ended = false;
      rank.when_ended(first, [&] {
        CHECK(rank.run(rank.barrier()) == "");
        third = rank.submit(rank.barrier());
        CHECK_FALSE(rank.wait(third, Clock::now() + 1s));
        has_ended = true;
      });
      for (int i = 0; i < 2; ++i) CHECK(ranks[1].run(ranks[1].barrier()) == "");
      let_pass(2s);
      CHECK(has_ended);
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      CHECK(rank.end_of(third) == "");
    }
  }

  TEST_CASE("a callback is called although the group closes while its operation ends") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier());
      const auto future = ranks[0].work({pending})->getFuture();
      ranks[0].before_end(pending, [] { let_pass(1s); });
      Job waits([&] { CHECK(ranks[0].end_of(pending) == ""); });
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      let_pass(100ms); // the operation has been taken out
      ranks[0].close();
      CHECK(waits.error() == "");
      CHECK(future->completed());
    }
  }

  TEST_CASE("callbacks are called at a failure, and at the end of the group") {
    for (const bool can_block : kBoth) {
      for (const bool fails : {false, true}) {
        Ranks ranks(2, can_block);
        const auto pending = ranks[0].submit(ranks[0].barrier(1s));
        bool is_called = false;
        ranks[0].when_ended(pending, [&] {
          CHECK(pending->error() != nullptr);
          is_called = true;
        });
        if (fails) let_pass(2s);
        ranks[0].close(); // has joined the thread that calls back
        CHECK(is_called);
      }
    }
  }
}

TEST_SUITE("works") {
  TEST_CASE("a work and its future") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      auto tensor = at::ones({2});
      const auto work =
          ranks[0].work({ranks[0].submit(ranks[0].all_reduce(tensor))}, {tensor});
      const auto future = work->getFuture();
      CHECK(work->getFuture() == future);
      int calls = 0;
      future->addCallback([&](auto& ended) {
        calls += ended.value().toTensorVector()[0].is_same(tensor);
      });
      CHECK_FALSE(work->isCompleted());
      CHECK_FALSE(work->isSuccess());
      Job other([&] {
        auto mine = at::ones({2});
        let_pass(1s);
        CHECK(ranks[1].run(ranks[1].all_reduce(mine)) == "");
      });
      CHECK(work->wait());
      CHECK(future->completed()); // since wait() has returned
      CHECK(work->isCompleted());
      CHECK(work->isSuccess());
      settle(); // completed, it calls back
      CHECK(calls == 1);
      CHECK(work->result()[0].sum().item<float>() == 4);
      CHECK(work->getSequencenumber() == 1);
    }
  }

  TEST_CASE("the future of a work that has ended, and of one that has failed") {
    Ranks ranks(2);
    const auto failed = ranks[0].work({ranks[0].submit(ranks[0].barrier(1s))});
    const auto before = failed->getFuture();
    CHECK_THROWS_WITH(failed->wait(), doctest::Contains("Timed out after 1000 ms"));
    CHECK_THROWS_WITH(failed->wait(), doctest::Contains("Timed out after 1000 ms"));
    CHECK_FALSE(failed->isSuccess());
    CHECK(before->hasError());
    const auto after = ranks[0].work({ranks[0].submit(ranks[0].barrier())});
    CHECK(after->isCompleted());
    CHECK(after->getFuture()->hasError());
  }

  TEST_CASE("a timeout of wait() ends the wait, and not the work") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto work = ranks[0].work({ranks[0].submit(ranks[0].barrier())});
      for (int i = 0; i < 2; ++i) {
        const auto begin = Clock::now();
        CHECK_THROWS_WITH(work->wait(2s),
            "Backend fake: barrier #1 of group \"g\" has not ended within the 2000 ms of "
            "this wait(); it waits for Rank 1");
        CHECK(Clock::now() - begin == 2s);
      }
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      CHECK(work->wait(2s));
    }
  }

  TEST_CASE("a wait can be late because of earlier callbacks") {
    Ranks ranks(1, /*can_block=*/true);
    Gate gate;
    const auto first = ranks[0].work({ranks[0].submit(ranks[0].barrier())});
    ranks.network->hold();
    const auto blocks = ranks[0].submit(ranks[0].barrier());
    ranks[0].when_ended(blocks, [&] { gate.pass(); });
    const auto work = ranks[0].work({ranks[0].submit(ranks[0].barrier())});
    const auto future = work->getFuture();
    ranks.network->hold(false);
    CHECK_THROWS_WITH(
        work->wait(1s), doctest::Contains("it waits for earlier callbacks"));
    CHECK_FALSE(work->isCompleted());
    gate.open();
    CHECK(work->wait(1s));
    CHECK(future->completed());
  }

  TEST_CASE(
      "a work of several operations ends with the last, and has the first error") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto& rank = ranks[0];
      const auto work = rank.work({rank.submit(rank.barrier()),
          rank.submit(rank.receive(at::zeros({1}), 1)), rank.submit(rank.barrier(1s))});
      const auto future = work->getFuture();
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      CHECK_FALSE(work->isCompleted());
      CHECK_THROWS_WITH(
          work->wait(), doctest::Contains("recv of 4 bytes of float32 with tag 0"));
      CHECK(future->hasError());
      const auto none = rank.work({});
      CHECK(none->wait());
      CHECK(none->getFuture()->completed());
    }
  }

  TEST_CASE("no thread sees a work of no operations before its end") {
    Ranks ranks(1);
    const auto work = ranks[0].work({}, frame::Tensors(100'000)); // takes long to copy
    std::atomic<bool> is_over = false;
    int open = 0;
    Job asks([&] {
      while (!is_over) open += !work->isCompleted();
    });
    CHECK(work->getFuture()->completed());
    is_over = true;
    CHECK(asks.error() == "");
    CHECK(open == 0);
  }

  TEST_CASE("a work outlives its group") {
    for (const bool can_block : kBoth) {
      WorkPtr ended, cut;
      {
        Ranks ranks(2, can_block);
        Job other([&] { ranks[1].run(ranks[1].barrier()); });
        ended = ranks[0].work({ranks[0].submit(ranks[0].barrier())});
        CHECK(ended->wait());
        cut = ranks[0].work({ranks[0].submit(ranks[0].barrier())});
        ranks[0].close("its group was destroyed");
        CHECK(ended->wait());
        CHECK_THROWS_WITH(cut->wait(), doctest::Contains("its group was destroyed"));
        CHECK(cut->getFuture()->hasError());
        cut->abort();
        ended.reset(); // they own the engine
        cut.reset();
      }
    }
  }

  TEST_CASE("aborting a work ends its group on all ranks") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto other = ranks[1].submit(ranks[1].barrier());
      const auto work =
          ranks[0].work({ranks[0].submit(ranks[0].receive(at::zeros({1}), 1))});
      work->abort();
      CHECK_THROWS_WITH(
          work->wait(), doctest::Contains("rank 0 has aborted the group"));
      CHECK(contains(ranks[1].end_of(other), "rank 0 has aborted the group"));
    }
  }

  // A sanitizer sees in which order the threads lock.
  TEST_CASE("three threads ask a work") {
    for (const bool can_block : kBoth) {
      Ranks ranks(1, can_block);
      for (int round = 0; round < 20; ++round) {
        ranks.network->hold();
        const auto pending = ranks[0].submit(ranks[0].barrier());
        const auto work = ranks[0].work({pending});
        std::atomic<int> calls = 0;
        Job calls_back(
            [&] { work->getFuture()->addCallback([&](auto&) { ++calls; }); });
        Job polls([&] {
          while (!work->isCompleted()) frame::yield();
        });
        ranks.network->hold(false);
        CHECK(work->wait());
        CHECK(calls_back.error() == "");
        CHECK(polls.error() == "");
        let_pass(1ms);
        CHECK(calls == 1);
      }
    }
  }

  TEST_CASE("a profiler has its end before any thread learns of it") {
    static std::atomic<int> begun, ended;
    begun = ended = 0;
    const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
          begun += contains(function.name(), "fake:barrier");
          return nullptr;
        },
        [](const at::RecordFunction& function, at::ObserverContext*) {
          ended += contains(function.name(), "fake:barrier");
        }));
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier());
      const auto work = ranks[0].work({pending}, {}, "fake:barrier");
      CHECK(begun == 1 + can_block);
      CHECK(ended == 0 + can_block);
      CHECK(ranks[1].run(ranks[1].barrier()) == "");
      while (!pending->ended()) let_pass(1us);
      CHECK(ended == 1 + can_block);
    }
    at::removeCallback(handle);
  }
}

TEST_SUITE("Python's lock") {
  TEST_CASE("a thread that waits gives Python's lock away") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const PythonLock lock;
      const auto pending = ranks[0].submit(ranks[0].barrier());
      ranks[0].before_end(pending, [] { PythonLock needs_it; });
      Job other([&] { ranks[1].run(ranks[1].barrier()); });
      CHECK(ranks[0].end_of(pending) == "");
      CHECK(PyGILState_Check() == 1);
      const frame::WithoutGil without_gil; // for the threads that end
      CHECK(other.error() == "");
    }
  }

  TEST_CASE(
      "no mutex is held while a tensor or a callback goes, which may need the lock") {
    for (const bool can_block : kBoth) {
      for (const bool fails : {false, true}) {
        CAPTURE(can_block);
        CAPTURE(fails);
        float memory = 0;
        Ranks ranks(2, can_block);
        Gate goes, asked;
        const auto waits_for_python = [&] {
          goes.open();
          asked.pass();
        };
        const auto pending = ranks[0].submit(ranks[0].receive(at::zeros({1}), 1));
        {
          const auto tensor = at::from_blob(
              &memory, {1}, [owner = at_end_of_life(waits_for_python)](void*) {});
          auto mine = ranks[0].submit(ranks[0].receive(tensor, 1));
          ranks[0].when_ended(mine, [owner = at_end_of_life(waits_for_python)] {});
          ranks[0].before_end(mine, [owner = at_end_of_life(waits_for_python)] {});
        }
        Job ends([&] {
          if (fails) ranks[0].close();
          if (!fails) {
            ranks[1].submit(ranks[1].send(at::zeros({1}), 0));
            ranks[1].submit(ranks[1].send(at::zeros({1}), 0));
          }
        });
        goes.pass();
        ranks[0].before_end(pending, [] {}); // has Python's lock, and takes the mutex
        asked.open();
        CHECK(ends.error() == "");
        let_pass(1s);
      }
    }
  }

  // Those of a call that has not begun, whose last owner is the thread that ends it.
  TEST_CASE("no mutex is held while the tensor of a call goes that fails") {
    for (const bool can_block : kBoth) {
      for (const bool aborts : {false, true}) {
        float memory = 0;
        Ranks ranks(2, can_block);
        Gate goes, asked;
        const auto first = ranks[0].submit(ranks[0].barrier());
        {
          const auto waits_for_python = [&] {
            goes.open();
            asked.pass();
          };
          const auto tensor = at::from_blob(
              &memory, {1}, [owner = at_end_of_life(waits_for_python)](void*) {});
          ranks[0].submit(ranks[0].all_reduce(tensor));
        }
        Job ends([&] { aborts ? ranks[0].abort() : ranks[0].close(); });
        goes.pass();
        ranks[0].before_end(first, [] {}); // has Python's lock, and takes the mutex
        asked.open();
        CHECK(ends.error() == "");
      }
    }
  }

  TEST_CASE("a work that is aborted gives Python's lock away") {
    for (const bool can_block : kBoth) {
      Ranks ranks(2, can_block);
      const auto pending = ranks[0].submit(ranks[0].barrier());
      ranks[0].when_ended(pending, [] { PythonLock needs_it; });
      const PythonLock lock;
      const auto begin = Clock::now();
      ranks[0].work({pending})->abort();
      CHECK(Clock::now() - begin < 100ms);
      CHECK(PyGILState_Check() == 1);
    }
  }

  TEST_CASE("a thread that stays once Python exits does not keep Python's lock") {
    const auto status = status_of_fork([] {
      frame::PythonExit::begin();
      Gate has_lock;
      Job stays([&] {
        const PythonLock lock;
        has_lock.open();
        frame::PythonExit::keep_other_threads();
      });
      has_lock.pass();
      const PythonLock lock;
      _exit(0);
    });
    CHECK(status == 0);
  }
}

namespace {

struct FakeOptions final : frame::Options {
  FakeOptions(std::shared_ptr<Network> network, milliseconds timeout = 10s)
      : Options("fake", timeout), network(std::move(network)) {
    group_name = "g";
  }
  std::unique_ptr<frame::Transport> connect(frame::Place place) const override {
    return std::make_unique<FakeTransport>(network, std::move(place));
  }
  frame::OptionsPtr copy() const override { return {}; }
  c10::intrusive_ptr<c10d::Backend> start(
      const frame::StorePtr&, int, int, frame::OptionsPtr) const override {
    return {};
  }
  const std::shared_ptr<Network> network;
};

// Runs a function on all ranks of a group. None is left at the end.
void run_group(
    int size, bool can_block, const std::function<void(frame::Group&)>& run) {
  const auto network = std::make_shared<Network>(size, can_block);
  const auto store = c10::make_intrusive<c10d::HashStore>();
  {
    std::list<Job> jobs;
    for (int rank = 0; rank < size; ++rank) {
      jobs.emplace_back([&, rank] {
        frame::Group group(
            store, rank, size, c10::make_intrusive<FakeOptions>(network));
        run(group);
      });
    }
    for (auto& job : jobs) CHECK(job.error() == "");
  }
  let_pass(10s);
  CHECK(frame::MovedTime::get().threads() == 0);
  CHECK(network->broken() == "");
  CHECK(store->getNumKeys() == 0);
}

Arguments all_reduce(frame::Group& group, const at::Tensor& tensor) {
  auto call = group.begin(Kind::all_reduce, kNoTimeout);
  call.note.op = frame::Op::sum;
  call.reduction.emplace("fake", tensor.scalar_type(), call.note.op, group.size());
  call.in = call.out = {call.output(tensor, true)};
  call.note.bytes = call.in[0].size();
  return call;
}

Arguments message(frame::Group& group, Kind kind, const at::Tensor& tensor, int other) {
  auto call = group.begin(kind, kNoTimeout);
  if (kind == Kind::send) call.in = {call.input(tensor)};
  if (kind == Kind::receive) {
    call.out = {call.output(tensor)};
    call.source = std::make_shared<std::atomic<int>>(other);
  }
  call.note.root = other;
  return call;
}

} // namespace

TEST_SUITE("groups") {
  TEST_CASE("calls that wait, and calls that do not") {
    for (const bool can_block : kBoth) {
      run_group(3, can_block, [](frame::Group& group) {
        auto tensor = at::ones({2});
        CHECK(group.run(all_reduce(group, tensor), /*async=*/false) == nullptr);
        const auto work = group.run(all_reduce(group, tensor), /*async=*/true);
        CHECK(work->wait());
        CHECK(tensor.sum().item<float>() == 18);
        CHECK(group.sequence() == 2);
        group.shutdown();
      });
    }
  }

  TEST_CASE("calls that are coalesced end as one work") {
    for (const bool can_block : kBoth) {
      run_group(2, can_block, [](frame::Group& group) {
        const auto tensor = at::ones({2}), got = at::zeros({2});
        group.start_coalescing();
        CHECK_THROWS(group.start_coalescing());
        const int other = 1 - group.rank();
        group.run(message(group, Kind::receive, got, other), true);
        group.run(message(group, Kind::send, tensor, other), true);
        auto sum = at::ones({2});
        CHECK(group.run(all_reduce(group, sum), false) == nullptr);
        const auto work = group.end_coalescing();
        CHECK_THROWS(group.end_coalescing());
        CHECK(work->wait());
        CHECK(got.sum().item<float>() == 2);
        CHECK(sum.sum().item<float>() == 4);
        group.shutdown();
      });
    }
  }

  TEST_CASE(
      "calls that are coalesced begin before the end, and so do their deadlines") {
    for (const bool can_block : kBoth) {
      run_group(2, can_block, [](frame::Group& group) {
        auto tensor = at::ones({2});
        group.start_coalescing();
        const auto work = group.run(all_reduce(group, tensor), /*async=*/true);
        let_pass(1s);
        CHECK(work->isCompleted());
        CHECK(group.end_coalescing()->wait());
        CHECK(tensor.sum().item<float>() == 4);
        if (group.rank() != 0) return let_pass(20s);
        group.start_coalescing();
        const auto late = group.run(all_reduce(group, tensor), /*async=*/true);
        let_pass(11s);
        CHECK(late->isCompleted());
        CHECK_THROWS_WITH(group.end_coalescing()->wait(),
            doctest::Contains("Timed out after 10000 ms"));
      });
    }
  }

  TEST_CASE("a profiler knows of a coalesced call before it begins") {
    static std::vector<int> exchanges; // before each call
    static Network* asked;
    exchanges.clear();
    const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
          settle(); // a call that has begun also ends
          exchanges.push_back(asked->count(0, "exchange"));
          return nullptr;
        }));
    const auto store = c10::make_intrusive<c10d::HashStore>();
    const auto network = std::make_shared<Network>(1, /*can_block=*/true);
    asked = network.get();
    {
      frame::Group group(store, 0, 1, c10::make_intrusive<FakeOptions>(network));
      const auto call = [&](size_t) {
        group.run(group.begin(Kind::barrier, kNoTimeout), /*async=*/true);
      };
      group.start_coalescing();
      call(0);
      CHECK(group.end_coalescing()->wait());
      CHECK(group.together(Kind::barrier, true, 2, 2, call)->wait());
    }
    at::removeCallback(handle);
    CHECK(exchanges == std::vector{0, 1, 1}); // the call, the end, and two together
  }

  TEST_CASE("calls together begin after all have checked their tensors") {
    for (const bool can_block : kBoth) {
      run_group(2, can_block, [](frame::Group& group) {
        auto tensor = at::ones({2});
        const auto call = [&](size_t i) {
          if (i == 2) throw std::runtime_error("the third is wrong");
          group.run(all_reduce(group, tensor), true);
        };
        CHECK_THROWS_WITH(
            group.together(Kind::all_reduce, true, 3, 3, call), "the third is wrong");
        CHECK(group.sequence() == 0);
        CHECK(group.together(Kind::all_reduce, false, 2, 2, call) == nullptr);
        CHECK(tensor.sum().item<float>() == 8);
        group.shutdown();
      });
    }
  }

  TEST_CASE("a group that is destroyed ends what is in flight") {
    for (const bool can_block : kBoth) {
      c10::intrusive_ptr<c10d::Work> works[2];
      run_group(2, can_block, [&](frame::Group& group) {
        const auto got = at::zeros({2});
        auto& work = works[group.rank()] =
            group.run(message(group, Kind::receive, got, 1 - group.rank()), true);
        let_pass(1s);
        CHECK_FALSE(work->isCompleted());
        if (group.rank() == 0) let_pass(10s);
        if (group.rank() == 0)
          CHECK_THROWS_WITH(work->wait(), doctest::Contains("left"));
      });
      CHECK_THROWS_WITH(works[1]->wait(), doctest::Contains("its group was destroyed"));
      works[0].reset();
      works[1].reset();
    }
  }

  TEST_CASE("a call that is refused lets go of its tensors, also with a profiler") {
    const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
          return nullptr;
        }));
    bool has_gone = false;
    run_group(1, /*can_block=*/false, [&](frame::Group& group) {
      group.shutdown();
      float memory = 0;
      const auto tensor = at::from_blob(
          &memory, {1}, [owner = at_end_of_life([&] { has_gone = true; })](void*) {});
      CHECK_THROWS_WITH(group.run(all_reduce(group, tensor), true),
          doctest::Contains("its group was destroyed"));
    });
    at::removeCallback(handle);
    CHECK(has_gone);
  }

  TEST_CASE("no thread comes back from a wait once Python exits") {
    const auto status = status_of_fork([] {
      const auto network = std::make_shared<Network>(2);
      const auto store = c10::make_intrusive<c10d::HashStore>();
      std::atomic<int> come_back = 0;
      std::list<Job> jobs;
      for (int rank = 0; rank < 2; ++rank) {
        jobs.emplace_back([&, rank] {
          frame::Group group(store, rank, 2, c10::make_intrusive<FakeOptions>(network));
          const auto got = at::zeros({2});
          group.run(message(group, Kind::receive, got, 1 - rank), true)->wait();
          ++come_back;
        });
      }
      let_pass(1s);
      frame::Group::close_all();
      if (network->left(0) != true || network->left(1) != true) _exit(3);
      _exit(come_back == 0 ? 0 : 4);
    });
    CHECK(status == 0);
  }
}

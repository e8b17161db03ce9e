// Threads that sleep on a pipe: one polls it, the others wait for that one or for the bell.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <deque>
#include <thread>

#include "frame/file_bell.hpp"

using namespace std::chrono_literals;
using frame::Clock, frame::Descriptor, frame::FileBell;

namespace {

constexpr auto kHang = 60s; // no test comes near it, unless a thread is not woken

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    out = Descriptor(ends[0]);
    in = Descriptor(ends[1]);
  }
  void write(char byte) const { REQUIRE(::write(in.number(), &byte, 1) == 1); }
  char read() const { // of a pipe that has something
    char byte = 0;
    REQUIRE(::read(out.number(), &byte, 1) == 1);
    return byte;
  }
  bool has_come() const {
    pollfd entry{out.number(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }
  Descriptor in, out;
};

bool nothing() { return false; }

// What an engine and its transport are to the threads that wait: one of them at a time
// reads the pipe, for all, and rings when a thread has got what it waits for.
class Engine {
 public:
  // Waits for so many bytes of one value; whether it was woken each time.
  bool wait(int value, int count) {
    while (got_[value] < count) {
      const auto limit = Clock::now() + kHang;
      look();
      bell_.rest(
          pipe_.out.number(), limit, [&] { return got_[value] >= count || look(); });
      if (Clock::now() >= limit) return false;
    }
    return true;
  }
  void send(int value) { pipe_.write(static_cast<char>(value)); }
  void give(int value) { // not through the pipe
    ++got_[value];
    bell_.ring();
  }

 private:
  bool look() {
    if (looks_.exchange(true)) return false;
    const bool moved = pipe_.has_come();
    if (moved) {
      ++got_[static_cast<int>(pipe_.read())];
      bell_.ring();
    }
    looks_ = false;
    return moved;
  }

  Pipe pipe_;
  FileBell bell_;
  std::atomic<bool> looks_ = false;
  std::atomic<int> got_[8] = {};
};

} // namespace

TEST_CASE("no wake is lost when several threads wait") {
  constexpr int kThreads = 4, kEach = 3000;
  Engine engine;
  std::atomic<int> woken = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] { woken += engine.wait(thread, 2 * kEach); });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < kThreads * kEach; ++i) engine.send(i % kThreads);
  });
  threads.emplace_back([&] {
    for (int i = 0; i < kThreads * kEach; ++i) engine.give(i % kThreads);
  });
  for (auto& thread : threads) thread.join();
  CHECK(woken == kThreads);
}

TEST_CASE("each byte and each ring wakes a thread that sleeps") {
  Engine engine;
  std::atomic<int> asked = 0;
  for (int round = 0; round < 500; ++round) {
    std::thread one([&] { asked += engine.wait(0, 2 * (round + 1)); });
    std::thread other([&] { asked += engine.wait(1, 2 * (round + 1)); });
    for (const int value : {1, 0}) engine.send(value);
    for (const int value : {0, 1}) engine.give(value);
    one.join();
    other.join();
  }
  CHECK(asked == 1000);
}

TEST_CASE("the limit ends the sleep of each thread") {
  const Pipe pipe;
  FileBell bell;
  std::vector<std::thread> threads;
  std::atomic<int> early = 0, moved = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const auto limit = Clock::now() + 20ms;
      moved += bell.rest(pipe.out.number(), limit, nothing);
      early += Clock::now() < limit;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(moved == 0);
  CHECK(early == 0);
  bell.rest(pipe.out.number(), Clock::now() - 1s, nothing); // a limit that is over
}

TEST_CASE("a thread polls when the one before it has gone") {
  const Pipe pipe;
  FileBell bell;
  const int file = pipe.out.number();
  std::atomic<bool> polls = false;
  const auto look = [&] { return pipe.has_come(); };
  std::thread first([&] {
    bell.rest(file, Clock::now() + 50ms, look, [&] { return polls = true; });
  });
  while (!polls) std::this_thread::yield();
  std::atomic<bool> late = false;
  std::thread second([&] {
    const auto limit = Clock::now() + kHang;
    while (!bell.rest(file, limit, look)) continue;
    late = Clock::now() >= limit;
  });
  first.join(); // and comes no more
  pipe.write(1);
  second.join();
  CHECK(!late);
}

TEST_CASE("a ring ends one sleep, not the next") {
  const Pipe pipe;
  FileBell bell;
  const int file = pipe.out.number();
  auto limit = Clock::now() + kHang;
  bell.rest(file, limit, nothing, [&] { return bell.ring(), true; });
  CHECK(Clock::now() < limit);
  limit = Clock::now() + 20ms;
  bell.rest(file, limit, nothing);
  CHECK(Clock::now() >= limit);
}

TEST_CASE("a library that must not be slept on is looked at") {
  const Pipe pipe;
  FileBell bell;
  int looks = 0;
  const auto look = [&] { return ++looks == 2; };
  const auto limit = Clock::now() + kHang;
  CHECK(bell.rest(pipe.out.number(), limit, look, nothing));
  CHECK(Clock::now() < limit);
  CHECK(looks == 2);
}

TEST_CASE("an exception lets go of the file") {
  const Pipe pipe;
  FileBell bell;
  const auto limit = Clock::now() + kHang;
  const auto broken = []() -> bool { throw std::runtime_error("arm"); };
  CHECK_THROWS(bell.rest(pipe.out.number(), limit, nothing, broken));
  pipe.write(1);
  bell.rest(pipe.out.number(), limit, nothing); // polls, and finds the byte
  CHECK(Clock::now() < limit);
}

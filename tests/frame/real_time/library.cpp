// The thread of a library: who owns its calls, and how it sleeps.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "frame/library.hpp"

using namespace std::chrono_literals;
using frame::Bell, frame::Clock, frame::Library;

namespace {

constexpr auto kHang = 60s; // no test comes near it, unless a thread is not woken

// What happens to the calls of a test.
struct Log {
  std::shared_ptr<Bell> bell = std::make_shared<Bell>();
  std::atomic<int> destroyed = 0, destroyed_by_library = 0, asked = 0, cancelled = 0;
  std::atomic<bool> ends = true, can_cancel = false;
  std::thread::id library;
};

class Call final : public frame::Call {
 public:
  explicit Call(Log& log, bool fails = false)
      : frame::Call(log.bell), log_(log), fails_(fails) {}
  ~Call() override {
    ++log_.destroyed;
    log_.destroyed_by_library += std::this_thread::get_id() == log_.library;
  }

 private:
  void begin() override {
    if (fails_) throw std::runtime_error("it cannot begin");
  }
  bool has_ended() override {
    ++log_.asked;
    return log_.ends;
  }
  bool cancel() override {
    ++log_.cancelled;
    return log_.can_cancel;
  }

  Log& log_;
  const bool fails_;
};

// Holds the thread of the library up after a call is done, until a test lets it go.
class SlowBell final : public Bell {
 public:
  void ring() override {
    while (held) std::this_thread::yield();
    Bell::ring();
  }
  std::atomic<bool> held = true;
};

template <class Done>
bool comes(const Done& done) {
  return frame::poll_until(done, Clock::now() + kHang);
}

// A library that makes progress by itself, and has a file for that.
class Progress final : public Library {
 public:
  Progress() : Library("progress"), file_(eventfd(0, EFD_NONBLOCK)) {}
  void signal() { eventfd_write(file_.number(), 1); }
  std::atomic<int> signals = 0, arms = 0;

 private:
  bool progress() override {
    eventfd_t count;
    const bool moved = eventfd_read(file_.number(), &count) == 0;
    signals += moved;
    return moved;
  }
  int file() override { return file_.number(); }
  bool arm() override { return ++arms; }
  const frame::Descriptor file_;
};

Library& library() {
  static auto& library = *new Library("test");
  return library;
}

} // namespace

TEST_CASE("the operation is the last owner of a call that is done") {
  Log log;
  const auto slow = std::make_shared<SlowBell>();
  log.bell = slow;
  const auto learn = [&] { log.library = std::this_thread::get_id(); };
  library().run(learn, Clock::now() + kHang, "begin");
  auto call = std::make_shared<Call>(log);
  library().begin(call);
  CHECK(comes([&] { return call->done(); }));
  call.reset();
  CHECK(log.destroyed == 1);
  slow->held = false;
  library().run([] {}, Clock::now() + kHang, "do nothing");
  CHECK(log.destroyed_by_library == 0);
}

TEST_CASE("a call that is left behind keeps its memory") {
  auto& log = *new Log();
  log.ends = false;
  library().begin(std::make_shared<Call>(log));
  CHECK(comes([&] { return log.cancelled == 1; }));
  const int asked = log.asked;
  library().run([] {}, Clock::now() + kHang, "do nothing");
  CHECK(log.asked == asked); // it is dropped
  CHECK(log.destroyed == 0);
}

TEST_CASE("a call that can be cancelled is asked until it has ended") {
  auto& log = *new Log();
  log.can_cancel = true;
  log.ends = false;
  library().begin(std::make_shared<Call>(log));
  CHECK(comes([&] { return log.cancelled == 1 && log.asked > 10; }));
  const auto heard = log.bell->rings();
  log.ends = true;
  CHECK(log.bell->wait(heard, Clock::now() + kHang) > heard);
  CHECK(log.cancelled == 1);
  CHECK(log.destroyed == 0); // as its tensors may take Python
}

TEST_CASE("a call that has failed keeps its memory") {
  auto& log = *new Log();
  auto call = std::make_shared<Call>(log, /*fails=*/true);
  library().begin(call);
  CHECK(comes([&] { return call->done(); }));
  CHECK(call->error() == "it cannot begin");
  call.reset();
  CHECK(log.destroyed == 0);
}

TEST_CASE("a library with a file makes progress while no call is open") {
  auto& library = *new Progress();
  library.run([] {}, Clock::now() + kHang, "begin");
  for (int i = 1; i <= 100; ++i) {
    library.signal();
    CHECK(comes([&] { return library.signals == i; }));
    library.run([] {}, Clock::now() + kHang, "do a job");
  }
  CHECK(library.arms > 0);
  const int arms = library.arms;
  std::this_thread::sleep_for(20ms);
  CHECK(library.arms <= arms + 1); // it sleeps
}

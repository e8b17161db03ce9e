// A transport that reads what has come for all operations in progress().

#include "frame/work.hpp"

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using frame::Arguments, frame::Blobs, frame::Engine, frame::Kind, frame::Note;
using frame::Operation, frame::Pending, frame::PendingPtr, frame::Pieces, frame::Steps;
using frame::Until;

namespace {

// What has come to this rank, which it sees when it has read it.
struct Wire {
  std::atomic<int> come = 0, reads = 0, asked = 0;
  std::atomic<bool> broken = false, dead = false, comes_late = false, has_left = false;
  int read = 0;
  int asked_in_vain = 0; // whether the others know of the failure
};

class Reader final : public frame::Transport {
 public:
  explicit Reader(Wire& wire)
      : Transport({0, 2, {"fake", "0", {}}, {}, {}}), wire_(wire) {}
  bool can_block() const override { return false; }
  void progress() override {
    ++wire_.reads;
    if (wire_.broken) throw std::runtime_error("the wire is cut");
    wire_.read = wire_.come;
  }
  Steps receive(const Operation&) override {
    Until come(
        [this] {
          ++wire_.asked;
          return wire_.read > 0;
        },
        [] { return std::vector{1}; });
    co_await come;
  }
  std::optional<std::string> lost(const std::vector<int>&) override {
    if (!wire_.dead) return std::nullopt;
    if (wire_.comes_late) wire_.come = 1; // what it had sent before it died
    return "rank 1 has died";
  }
  Steps leave(bool) override {
    wire_.read = wire_.come = 0;
    Until answered([this] { return wire_.read > 0; });
    wire_.come = 1;
    co_await answered;
    wire_.has_left = true;
  }
  bool has_told() override { return wire_.asked_in_vain-- <= 0; }
  Steps exchange(const Note&, Pieces, int, Blobs&) override { return {}; }
  Steps send(const Operation&) override { return {}; }

 private:
  Wire& wire_;
};

class Group {
 public:
  explicit Group(Wire& wire)
      : engine_(std::make_shared<Engine>(std::make_unique<Reader>(wire))) {
    engine_->start();
  }
  ~Group() { close(); }
  PendingPtr receive() {
    const auto pending =
        std::make_shared<Pending>(Arguments{Kind::receive, 20s, "fake", 2});
    engine_->submit(pending);
    engine_->wait_briefly(pending); // and then leaves it to the thread of the engine
    return pending;
  }
  std::string end_of(const PendingPtr& pending) {
    if (!engine_->wait([&] { return pending->ended(); }, frame::in(20s))) return "late";
    return pending->error() ? frame::text_of(pending->error()) : "";
  }
  void close() { engine_->close("the test is over"); }

 private:
  std::shared_ptr<Engine> engine_;
};

} // namespace

TEST_CASE("many operations cost one progress() per look") {
  Wire wire;
  Group group(wire);
  std::vector<PendingPtr> all;
  for (int i = 0; i < 10; ++i) all.push_back(group.receive());
  while (wire.asked < 200) frame::yield(); // the thread of the engine looks
  wire.come = 1;
  for (const auto& each : all) CHECK(group.end_of(each).empty());
  CHECK(wire.reads <= wire.asked / 2);
}

TEST_CASE("what progress() throws ends the group") {
  Wire wire;
  Group group(wire);
  const auto one = group.receive(), other = group.receive();
  wire.broken = true;
  for (const auto& each : {one, other}) {
    CHECK(group.end_of(each).find("the wire is cut") != std::string::npos);
  }
}

TEST_CASE(
    "a thread rests until the others know of a failure, whatever progress() throws") {
  Wire wire;
  Group group(wire);
  const auto receive = group.receive();
  const auto begin = frame::Clock::now();
  wire.asked_in_vain = 100;
  wire.broken = true;
  CHECK(group.end_of(receive).find("the wire is cut") != std::string::npos);
  CHECK(frame::Clock::now() - begin > 1ms); // it stands still while a thread works
}

TEST_CASE("the last data of a rank that has died counts") {
  for (const bool comes : {true, false}) {
    Wire wire;
    wire.comes_late = comes;
    Group group(wire);
    const auto receive = group.receive();
    wire.dead = true;
    const auto error = group.end_of(receive);
    CHECK((error.find("rank 1 has died") == std::string::npos) == comes);
  }
}

TEST_CASE("the last steps make progress, too") {
  Wire wire;
  Group(wire).close();
  CHECK(wire.has_left);
}

namespace {

// A transport whose threads rest until something wakes them. A look at a receive with tag 1
// may last; what has another tag has come.
class Sleepy final : public frame::Transport {
 public:
  explicit Sleepy(std::atomic<bool>& lasts)
      : Transport({0, 2, {"fake", "0", {}}, {}, {}}), lasts_(lasts) {}
  bool can_block() const override { return false; }
  bool at_once(const Operation& op) override {
    last();
    return op.note.kind == Kind::barrier;
  }
  Steps receive(const Operation& op) override {
    Until come([this, tag = op.note.tag] {
      if (tag == 1) last();
      return tag != 1;
    });
    co_await come;
  }
  bool rest(
      const frame::Idle&, frame::Clock::time_point limit, const Look& look) override {
    const uint64_t heard = bell()->rings();
    if (look()) return true;
    bell()->wait(heard, limit);
    return false;
  }
  Steps exchange(const Note&, Pieces, int, Blobs&) override { return {}; }
  Steps send(const Operation&) override { return {}; }

 private:
  void last() {
    if (lasts_.exchange(false)) frame::sleep_until(frame::Clock::now() + 20ms);
  }
  std::atomic<bool>& lasts_;
};

PendingPtr receive_with(int64_t tag) {
  const auto pending =
      std::make_shared<Pending>(Arguments{Kind::receive, 20s, "fake", 2});
  pending->arguments->note.tag = tag;
  return pending;
}

} // namespace

// Either a call that has ended, or the thread of the engine, or a call that ends at once.
TEST_CASE(
    "a thread that gives back the turn wakes one that has asked for it meanwhile") {
  for (const std::string who : {"a call", "the driver", "at once"}) {
    CAPTURE(who);
    std::atomic<bool> lasts = false;
    const auto engine = std::make_shared<Engine>(std::make_unique<Sleepy>(lasts));
    engine->start();
    const auto slow = receive_with(1);
    if (who == "the driver") {
      engine->submit(slow);
      engine->wait_briefly(slow);
    }
    frame::sleep_until(frame::Clock::now() + 10ms);
    frame::Clock::duration took{};
    lasts = true;
    frame::Thread other([&] {
      while (lasts) frame::yield();
      const auto begin = frame::Clock::now();
      engine->run(receive_with(2)); // the turn is taken
      took = frame::Clock::now() - begin;
    });
    if (who == "a call") {
      const auto ends = receive_with(2);
      engine->submit(ends);
      engine->submit(slow);
      engine->wait([&] { return ends->ended(); }, frame::kNever);
    }
    if (who == "at once") {
      Engine::Begun begun;
      Arguments barrier{Kind::barrier, 20s, "fake", 2};
      CHECK(engine->at_once(barrier, begun));
    }
    other.join();
    CHECK(took > 10ms);
    CHECK(took < 25ms);
    engine->close("the test is over");
  }
}

TEST_CASE("a thread that drives wakes when the future that it waits for is complete") {
  std::atomic<bool> lasts = false;
  const auto engine = std::make_shared<Engine>(std::make_unique<Sleepy>(lasts));
  engine->start();
  engine->submit(receive_with(1)); // goes on, so that the thread drives
  const auto ends = receive_with(2);
  engine->when_ended(ends, [] { frame::sleep_until(frame::Clock::now() + 10ms); });
  const auto work = c10::make_intrusive<frame::Work>(0, c10d::OpType::RECV, nullptr,
      engine, frame::Operations{ends}, frame::Tensors{});
  work->getFuture();
  const auto begin = frame::Clock::now();
  engine->submit(ends);
  CHECK(work->wait());
  CHECK(frame::Clock::now() - begin == 10ms);
  engine->close("the test is over");
}

namespace {

class Mute final : public frame::Transport {
 public:
  explicit Mute(bool blocks)
      : Transport({0, 2, {"fake", "0", {}}, {}, {}}), blocks_(blocks) {}
  bool can_block() const override { return blocks_; }
  void wake() override { throw std::runtime_error("it cannot wake"); }
  Steps receive(const Operation& op) override {
    Until come([tag = op.note.tag] { return tag != 1; });
    co_await come;
  }
  Steps exchange(const Note&, Pieces, int, Blobs&) override { return {}; }
  Steps send(const Operation&) override { return {}; }

 private:
  const bool blocks_;
};

} // namespace

TEST_CASE("threads look again although the transport cannot wake them") {
  for (const bool blocks : {false, true}) {
    const auto engine = std::make_shared<Engine>(std::make_unique<Mute>(blocks));
    engine->start();
    const auto open = receive_with(1), ends = receive_with(2);
    engine->submit(open);
    engine->wait_briefly(open);
    engine->run(ends);
    CHECK(ends->error() == nullptr);
    engine->close("the test is over");
    CHECK(frame::text_of(open->error()).find("the test is over") != std::string::npos);
  }
}

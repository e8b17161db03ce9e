// Messages of programs and their receives, on a network that counts how often it is asked.

#include <deque>

#include "frame/message_transport.hpp"

#include <doctest/doctest.h>

using frame::Bytes, frame::Head, frame::Kind, frame::Mailbox, frame::Note;
using frame::Operation, frame::Steps, frame::Transfer;

namespace {

// What rank 1 has sent to rank 0, in this order: heads and messages.
class Line final : public frame::Messages {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  int host(int) const override { return 0; }
  void begin(Transfer& transfer) override {
    open.push_back(&transfer);
    move();
  }
  void forget(Transfer& transfer) override { std::erase(open, &transfer); }
  void look() override { ++looks; }

  void come(int64_t tag, size_t bytes, int8_t value) {
    Head head;
    head.note.kind = Kind::send;
    head.note.tag = tag;
    head.note.bytes = head.bytes = bytes;
    const auto words = frame::bytes_of(head);
    sent.emplace_back(words.begin(), words.end());
    sent.emplace_back(bytes, std::byte(value));
    move();
  }

  int looks = 0;
  std::deque<Transfer*> open;
  std::deque<frame::Blob> sent;

 private:
  void move() {
    for (; !open.empty() && !sent.empty(); open.pop_front(), sent.pop_front()) {
      frame::copy(open.front()->bytes, sent.front());
      open.front()->ended = true;
    }
  }
};

// A receive with this tag, of rank 1 or of any.
struct Waiting {
  Waiting(Mailbox& mailbox, int64_t tag, size_t bytes = 4, int from = 1)
      : data(bytes), out(data) {
    Note note;
    note.kind = Kind::receive;
    note.tag = tag;
    note.bytes = bytes;
    note.root = from;
    operation = {note, {}, {&out, 1}, {}, {}, nullptr, source, nullptr};
    steps = mailbox.receive(operation);
    steps.advance();
  }
  Waiting(const Waiting&) = delete;
  int value() const { return steps.done() ? int(data.at(0)) : -1; }

  frame::Blob data;
  Bytes out;
  std::shared_ptr<std::atomic<int>> source = std::make_shared<std::atomic<int>>(-1);
  Operation operation;
  Steps steps;
};

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_CASE("of many receives that wait, one looks") {
  Line line;
  const frame::Names names{"fake", "g", {}};
  Mailbox mailbox(line, names);
  std::deque<Waiting> all;
  for (int tag = 0; tag < 100; ++tag)
    all.emplace_back(mailbox, tag, 4, tag % 2 ? 1 : -1);
  line.looks = 0;
  for (auto& each : all) each.steps.advance();
  CHECK(line.looks == 1);
  for (int tag = 100; tag-- > 0;) line.come(tag, 4, int8_t(tag));
  all[0].steps.advance(); // the first one that waits, for all others
  for (auto& each : all) each.steps.advance();
  for (int tag = 0; tag < 100; ++tag) CHECK(all[tag].value() == tag);
}

TEST_CASE("a look that ends another receive counts as progress") {
  Line line;
  const frame::Names names{"fake", "g", {}};
  Mailbox mailbox(line, names);
  Waiting first(mailbox, 1), second(mailbox, 2);
  line.come(2, 4, 22);
  CHECK_FALSE(second.steps.advance());
  CHECK(first.steps.advance());
  CHECK(second.steps.advance());
  CHECK(second.value() == 22);
  CHECK(first.value() == -1);
}

TEST_CASE("a message that is kept goes to its receive, in the order of its tag") {
  Line line;
  const frame::Names names{"fake", "g", {}};
  Mailbox mailbox(line, names);
  Waiting waits(mailbox, 1);
  for (const int8_t value : {5, 6}) line.come(2, 4, value);
  waits.steps.advance();
  CHECK(Waiting(mailbox, 2, 4, frame::kAnySource).value() == 5);
  CHECK(Waiting(mailbox, 2).value() == 6);
  CHECK(Waiting(mailbox, 2).value() == -1);
}

TEST_CASE(
    "a receive says that no more messages are kept, also of those without bytes") {
  for (const size_t bytes : {0, 1 << 20}) {
    Line line;
    const frame::Names names{"fake", "g", {}};
    Mailbox mailbox(line, names);
    Waiting waits(mailbox, 1);
    CHECK(waits.steps.because() == "");
    const int count = bytes ? 70 : 1'250'000;
    for (int i = 0; i < count; ++i) line.come(2, bytes, 0);
    waits.steps.advance();
    CHECK(
        waits.steps.because().find("without a receive are kept") != std::string::npos);
    CHECK_FALSE(line.sent.empty());
  }
}

TEST_CASE("no receive gets a message after one disagrees with its own") {
  Line line;
  const frame::Names names{"fake", "g", {}};
  Mailbox mailbox(line, names);
  Waiting other(mailbox, 1), wrong(mailbox, 2, 8);
  line.come(2, 4, 2);
  line.come(1, 4, 1);
  for (Waiting* each : {&other, &wrong}) {
    const auto error = error_of([&] { each->steps.advance(); });
    CHECK(error.find("the ranks do not agree: rank 0 runs recv") == 0);
  }
  CHECK(int(other.data[0]) == 0);
}

namespace {

// A library that writes into the memory of transfers until it is to forget them. The heads
// come at a certain look, each from a rank that runs a collective of this kind.
class Writing final : public frame::Messages {
 public:
  int rank() const override { return 0; }
  int size() const override { return 3; }
  int host(int) const override { return 0; }
  void begin(Transfer& transfer) override {
    begun.push_back(&transfer);
    open.push_back(&transfer);
  }
  void forget(Transfer& transfer) override {
    unknown += std::erase(open, &transfer) == 0;
    for (std::byte& each : transfer.bytes) each = std::byte(1);
  }
  void look() override {
    if (--looks > 0) return;
    std::erase_if(open, [this](Transfer* each) {
      if (each->bytes.size() != sizeof(Head)) return false;
      frame::copy(each->bytes, frame::bytes_of(head));
      return each->ended = true;
    });
  }

  int looks = 0, unknown = 0; // that were forgotten, and had not begun
  Head head;
  std::vector<Transfer*> begun, open;
};

} // namespace

TEST_CASE("the library forgets a message before its memory goes") {
  Writing library;
  library.head.bytes = 100;
  const frame::Names names{"fake", "g", {}};
  Mailbox mailbox(library, names);
  Waiting waits(mailbox, /*tag=*/1);
  waits.steps.advance();
  CHECK(library.begun.back()->bytes.size() == 100); // with another tag: to be kept
}

TEST_CASE("receives of a collective begin in their order") {
  for (int looks = 1; looks < 5; ++looks) {
    Writing library;
    library.looks = looks;
    const frame::Names names{"fake", "g", {}};
    frame::Noted net(library, Note(), names);
    std::array<std::byte, 1> one;
    std::array<std::byte, 2> other;
    const Transfer first = net.receive(1, one), second = net.receive(1, other);
    for (int i = 0; i < 5; ++i) net.look();
    REQUIRE(library.begun.size() == 3);
    CHECK(library.begun[1] == &first);
    CHECK(library.begun[2] == &second);
  }
}

TEST_CASE("a library is to forget only what has begun") {
  Writing library;
  library.looks = 10;
  library.head.note.kind = Kind::broadcast;
  const frame::Names names{"fake", "g", {}};
  {
    frame::Noted net(library, Note(), names);
    std::array<std::byte, 1> one, other;
    const Transfer first = net.receive(1, one), second = net.receive(2, other);
    library.looks = 0;
    CHECK(error_of([&] { net.look(); }).find("the ranks do not agree") == 0);
  }
  CHECK(library.unknown == 0);
}

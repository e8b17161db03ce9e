// MessageTransport over queues in one process, whose messages arrive at random times.

#include <deque>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "frame/message_transport.hpp"

using namespace frame;
using std::to_string;

namespace {

using Key = std::tuple<int, int, int>; // from, to, channel

// What is under way between the ranks. A send ends when it is received.
struct Wire {
  std::mt19937 random{1};
  std::map<Key, std::deque<Transfer*>> sends, receives;

  // Moves one message, if there is one; returns whether there was.
  bool move() {
    std::vector<Key> ready;
    for (const auto& [key, queue] : sends) {
      if (!queue.empty() && !receives[key].empty()) ready.push_back(key);
    }
    if (ready.empty()) return false;
    const Key key = ready[random() % ready.size()];
    Transfer *send = sends[key].front(), *receive = receives[key].front();
    receive->require_size(send->bytes.size());
    copy(receive->bytes, send->bytes);
    sends[key].pop_front();
    receives[key].pop_front();
    send->ended = receive->ended = true;
    return true;
  }
};

class End final : public Messages {
 public:
  End(Wire& wire, int rank, int size) : wire_(wire), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int host(int rank) const override { return rank / 2; }
  void begin(Transfer& transfer) override { queue(transfer).push_back(&transfer); }
  void forget(Transfer& transfer) override { std::erase(queue(transfer), &transfer); }

 private:
  std::deque<Transfer*>& queue(const Transfer& transfer) {
    const bool sends = transfer.way == Way::send;
    const int other = transfer.other;
    return sends ? wire_.sends[{rank_, other, transfer.channel}]
                 : wire_.receives[{other, rank_, transfer.channel}];
  }

  Wire& wire_;
  const int rank_, size_;
};

// The operations of all ranks, in one process.
class Group {
 public:
  using Numbers = std::vector<uint32_t>;

  Group(int size, const std::string& named = "") {
    for (int rank = 0; rank < size; ++rank) {
      Place place{rank, size, {"queue", "0", {}}, nullptr, {}};
      transports_.push_back(std::make_unique<MessageTransport>(
          std::move(place), std::make_shared<End>(wire_, rank, size), Choice(named)));
    }
  }

  int size() const { return static_cast<int>(transports_.size()); }
  std::mt19937& random() { return wire_.random; }
  MessageTransport& operator[](int rank) { return *transports_[rank]; }
  void add(Steps steps) { // which begin in the order of calls
    steps.advance();
    steps_.push_back(std::move(steps));
  }

  // Runs what has been added to its end, in random order; returns what it says.
  std::string run() {
    try {
      while (!steps_.empty()) {
        bool moved = wire_.move();
        for (auto& each : steps_) {
          if (wire_.random() % 4 == 0) moved |= each.advance();
        }
        for (size_t i = 0; i < steps_.size() && !moved; ++i)
          moved = steps_[i].advance();
        const auto ended =
            std::erase_if(steps_, [](auto& each) { return each.done(); });
        if (!moved && ended == 0 && !wire_.move()) return "waits";
      }
      return "";
    } catch (const std::exception& error) {
      steps_.clear();
      return error.what();
    }
  }

 private:
  Wire wire_;
  std::vector<std::unique_ptr<MessageTransport>> transports_;
  std::vector<Steps> steps_;
};

// One call, with memory of its own.
struct Call {
  Call(Kind kind, size_t inputs, size_t outputs, size_t numbers, uint32_t first) {
    op.note.kind = kind;
    op.note.bytes = kind == Kind::all_to_all ? 0 : numbers * sizeof(uint32_t);
    for (auto [count, memory, pieces] :
        {std::tuple(inputs, &input, &in), std::tuple(outputs, &output, &out)}) {
      memory->assign(count, std::vector<uint32_t>(numbers, first));
      for (auto& piece : *memory)
        for (auto& number : piece) number = first = first * 1664525 + 1013904223;
      for (auto& piece : *memory)
        pieces->push_back(std::as_writable_bytes(std::span(piece)));
    }
    op.in = in;
    op.out = out;
    op.source = std::make_shared<std::atomic<int>>(-1);
    const bool reduces = kind == Kind::all_reduce || kind == Kind::reduce ||
        kind == Kind::reduce_scatter;
    if (!reduces) return;
    op.note.op = Op::sum;
    op.note.dtype = Dtype::uint32;
    op.reduce = op.combine = [](Bytes target, Pieces sources) {
      for (size_t i = 0; i + 4 <= target.size(); i += 4) {
        uint32_t sum = 0, number;
        for (const Bytes source : sources) {
          std::memcpy(&number, source.data() + i, 4);
          sum += number;
        }
        std::memcpy(target.data() + i, &sum, 4);
      }
    };
  }
  Call(const Call&) = delete;

  std::vector<std::vector<uint32_t>> input, output;
  std::vector<Bytes> in, out;
  Operation op;
};

// The calls of all ranks of one collective.
std::deque<Call> calls_of(Kind kind, int size, int root, size_t numbers) {
  std::deque<Call> calls;
  for (int rank = 0; rank < size; ++rank) {
    const size_t is_root = rank == root, all = size;
    size_t in = kind != Kind::barrier, out = in;
    if (kind == Kind::broadcast) in = is_root, out = 1 - is_root;
    if (kind == Kind::reduce) out = is_root;
    if (kind == Kind::gather) out = is_root * all;
    if (kind == Kind::scatter) in = is_root * all;
    if (kind == Kind::all_gather || kind == Kind::all_to_all) out = all;
    if (kind == Kind::reduce_scatter || kind == Kind::all_to_all) in = all;
    Call& call = calls.emplace_back(kind, in, out, numbers, 1000 * rank);
    call.op.note.root = root;
    call.op.note.even = kind == Kind::all_to_all;
  }
  return calls;
}

// All kinds give the same as an exchange.
std::string collectives() {
  for (const int size : {1, 2, 3, 5, 8, 9}) {
    for (int kind = 0; kind <= static_cast<int>(Kind::all_to_all); ++kind) {
      for (const size_t numbers : {0, 1, 300, 20000}) {
        Group group(size);
        const int root = static_cast<int>(numbers) % size;
        auto calls = calls_of(static_cast<Kind>(kind), size, root, numbers);
        auto expected = calls_of(static_cast<Kind>(kind), size, root, numbers);
        for (int rank = 0; rank < size; ++rank)
          group.add(group[rank].collective(calls[rank].op));
        auto error = group.run();
        for (int rank = 0; rank < size; ++rank)
          group.add(group[rank].Transport::collective(expected[rank].op));
        if (error.empty()) error = group.run();
        for (int rank = 0; rank < size && error.empty(); ++rank) {
          if (calls[rank].output != expected[rank].output) error = "differs";
        }
        if (error.empty()) continue;
        return describe(calls[0].op.note) + " with " + to_string(size) + ": " + error;
      }
    }
  }
  return "";
}

// Programs whose messages have tags and are received in another order, some from any rank.
std::string messages() {
  for (int round = 0; round < 30; ++round) {
    Group group(1 + round % 4 + 1);
    std::map<std::tuple<int, int, int>, std::vector<uint32_t>> sent; // to, from, tag
    std::deque<Call> sends, receives;
    for (int i = 0; i < 60; ++i) {
      const int from = static_cast<int>(group.random()() % group.size());
      const int to =
          (from + 1 + static_cast<int>(group.random()() % (group.size() - 1))) %
          group.size();
      const int tag = static_cast<int>(group.random()() % 3);
      Call& call = sends.emplace_back(Kind::send, 1, 0, 1 + tag * 500, i);
      call.op.note.root = to;
      call.op.note.tag = tag;
      sent[{to, from, tag}].push_back(call.input[0][0]);
      group.add(group[from].send(call.op));
    }
    struct Expected {
      int to, from, tag;
    };
    std::vector<Expected> all;
    for (const auto& [key, numbers] : sent) {
      const auto [to, from, tag] = key;
      all.insert(all.end(), numbers.size(), {to, from, tag});
    }
    std::ranges::shuffle(all, group.random());
    for (const auto& [to, from, tag] : all) {
      Call& call = receives.emplace_back(Kind::receive, 0, 1, 1 + tag * 500, 0);
      call.op.note.root = tag == 2 ? kAnySource : from; // all of this tag from any rank
      call.op.note.tag = tag;
      group.add(group[to].receive(call.op));
    }
    if (auto error = group.run(); !error.empty()) return error;
    for (size_t i = 0; i < all.size();
        ++i) { // those of a rank in the order of its calls
      auto& numbers = sent[{all[i].to, *receives[i].op.source, all[i].tag}];
      if (numbers.empty() || numbers[0] != receives[i].output[0][0])
        return "a wrong message from rank " + to_string(*receives[i].op.source);
      numbers.erase(numbers.begin());
    }
  }
  return "";
}

// A receive takes the message of its tag, although one of another tag has come before. The
// other is kept, and the send of a third waits with its sender.
std::string kept() {
  Group group(2);
  std::deque<Call> calls;
  for (const int tag : {1, 2, 3}) {
    Call& call = calls.emplace_back(Kind::send, 1, 0, 100, tag);
    call.op.note.root = 1;
    call.op.note.tag = tag;
    group.add(group[0].send(call.op));
  }
  const auto receive = [&](int tag) {
    Call& call = calls.emplace_back(Kind::receive, 0, 1, 100, 0);
    call.op.note.root = 0;
    call.op.note.tag = tag;
    group.add(group[1].receive(call.op));
    const auto error = group.run();
    return error +
        (call.output[0] == calls[tag - 1].input[0] ? "" : " another message");
  };
  std::string all = receive(2);
  all += "; " + receive(1);
  return all + "; " + receive(3);
}

// Two ranks, of which the second calls something else.
std::string differ(Kind one, size_t numbers, Kind other, size_t other_numbers) {
  Group group(2);
  std::deque<Call> calls = calls_of(one, 2, 0, numbers);
  std::deque<Call> others = calls_of(other, 2, 0, other_numbers);
  if (is_message(one)) calls[0].op.note.root = 1;
  group.add(begin(group[0], calls[0].op));
  group.add(begin(group[1], others[1].op));
  return group.run();
}

// The message of a receive that disagrees stays with its sender: while the group fails, no
// other receive takes its data for a head.
std::string disagreements() {
  std::set<std::string> errors;
  for (int round = 0; round < 100; ++round) {
    Group group(2);
    group.random().discard(round);
    std::deque<Call> calls;
    Call& sent = calls.emplace_back(Kind::send, 1, 0, 100, 0);
    sent.op.note.root = 1;
    sent.op.note.tag = 1;
    group.add(group[0].send(sent.op));
    for (const int tag : {2, 1, 2, 2}) {
      Call& call = calls.emplace_back(Kind::receive, 0, 1, 50, 0);
      call.op.note.root = 0;
      call.op.note.tag = tag;
      group.add(group[1].receive(call.op));
    }
    errors.insert(group.run());
  }
  std::string all;
  for (const auto& error : errors) all += error;
  return all;
}

// The ranks that an exchange of rank 0 waits for, when no other one has called: each once,
// although a send to it and a receive from it wait.
std::string missing() {
  Group group(4);
  auto calls = calls_of(Kind::barrier, 4, 0, 0);
  Steps steps = group[0].Transport::collective(calls[0].op);
  steps.advance();
  std::string all;
  for (const int rank : steps.missing()) all += to_string(rank) + " ";
  return all;
}

// A send that has come before its receive, whose size is another one: begin() itself says
// so, when it has the transfer already.
class Early final : public Messages {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  int host(int) const override { return 0; }
  void begin(Transfer& transfer) override {
    queue_.push_back(&transfer);
    transfer.require_size(100);
  }
  void forget(Transfer& transfer) override { std::erase(queue_, &transfer); }
  size_t waiting() const { return queue_.size(); }

 private:
  std::deque<Transfer*> queue_;
};

std::string early() {
  Early net;
  std::byte expected[50];
  try {
    Transfer received = net.receive(1, expected);
  } catch (const std::exception& error) {
    return error.what() + ("; " + to_string(net.waiting())) + " wait";
  }
  return "begins";
}

std::string name_of(
    Kind kind, Dtype dtype, Op op, const std::string& named, uint8_t even = 0) {
  Wire wire;
  End net(wire, 0, 8);
  Call call(kind, 8, 1, 100, 0);
  call.op.note.dtype = dtype;
  call.op.note.op = op;
  call.op.note.even = even;
  return Choice(named).of(call.op, net).name;
}

std::string run(const std::string& name) {
  using enum Kind;
  if (name == "collectives") return collectives();
  if (name == "messages") return messages();
  if (name == "kept") return kept();
  if (name == "other kinds") return differ(all_reduce, 10, reduce, 10);
  if (name == "other sizes") return differ(all_reduce, 10, all_reduce, 11);
  if (name == "a monitored barrier") return differ(barrier, 0, monitored_barrier, 0);
  if (name == "pieces") return differ(all_to_all, 10, all_to_all, 11);
  if (name == "messages of other sizes") return differ(send, 10, receive, 11);
  if (name == "disagreements") return disagreements();
  if (name == "missing") return missing();
  if (name == "an early message of another size") return early();
  if (name == "chosen") {
    const auto coarse = Dtype::float8_e5m2, wide = Dtype::float32;
    return name_of(all_reduce, wide, Op::sum, "") + " " +
        name_of(all_reduce, wide, Op::sum, "broadcast=chain,all_reduce=ring") + " " +
        name_of(all_reduce, coarse, Op::sum, "all_reduce=ring") + " " +
        name_of(all_reduce, coarse, Op::max, "all_reduce=ring") + " " +
        name_of(all_to_all, wide, Op::none, "all_to_all=bruck") + " " +
        name_of(all_to_all, wide, Op::none, "all_to_all=bruck", 1);
  }
  return Choice(name), "an unknown name";
}

} // namespace

int main(int, char** words) {
  try {
    std::cout << run(words[1]) << "\n";
  } catch (const std::exception& error) {
    std::cout << error.what() << "\n";
  }
}

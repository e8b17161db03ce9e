#pragma once

#include <list>
#include <memory>
#include <set>

#include "transport.hpp"

namespace frame {

class Messages;
enum class Way : uint8_t { send, receive };

// The channels: collectives have the first, and the second for steps side by side that
// send to the same ranks; messages of programs have the third. A transport may have more
// for itself.
constexpr int kPrograms = 2, kChannels = 3;

// [transfer]
// A message on its way to another rank, or from it. It begins when it is made. Until it
// has ended, its bytes must stay, and belong to those who move them.
class Transfer final : public Awaited {
 public:
  Transfer(Messages& messages, Way way, int other, Bytes bytes);
  Transfer(const Transfer&) = delete;
  ~Transfer();

  bool ready() override;
  std::vector<int> missing() const override { return {other}; }

  // Of a receive whose message has this size.
  void require_size(size_t size) const;

  Messages& messages;
  const Way way;
  const int other, channel; // as those who move it count them
  const Bytes bytes;
  bool ended = false; // set by those who move it
};
// [/transfer]

// Memory for steps in between. The simulator has some that does not exist.
class Memory {
 public:
  explicit Memory(size_t bytes)
      : owner_(std::make_unique_for_overwrite<std::byte[]>(bytes)),
        bytes_(owner_.get(), bytes) {}
  explicit Memory(Bytes of_others) : bytes_(of_others) {}

  operator Bytes() const { return bytes_; }
  Bytes first(size_t size) const { return bytes_.first(size); }
  Bytes block(size_t index, size_t size) const { return part(bytes_, index, size); }

 private:
  std::unique_ptr<std::byte[]> owner_;
  Bytes bytes_;
};

// Messages between the ranks of a group: all that an algorithm for a collective needs.
// Those from one rank to another arrive in their order on each channel, and a channel
// does not wait for another. A send may wait until its receive has begun, so that an
// algorithm begins both before it waits for one of them.
class Messages {
 public:
  virtual ~Messages() = default;

  // [interface]
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The number of a rank's host. Ranks of one host share it, and all ranks see the same.
  virtual int host(int rank) const = 0;

  // Begins a transfer, and does not wait. Set its `ended` here or in progress(), when
  // its bytes may be used again, and not on a thread of the library. Throw, here or
  // there, if the size of a receive is not that of the message: see
  // Transfer::require_size().
  virtual void begin(Transfer&) = 0;
  // Gives up a transfer that has not ended, because the group has failed or ends, or whose
  // begin() has thrown. After the return, nothing may touch its bytes.
  virtual void forget(Transfer&) = 0;
  // [/interface]

  Transfer send(int to, Bytes bytes) { return Transfer(*this, Way::send, to, bytes); }
  Transfer receive(int from, Bytes bytes) {
    return Transfer(*this, Way::receive, from, bytes);
  }

  // Only these and the functions of an Operation touch bytes, so that the simulator can
  // do without bytes, and knows how long they take.
  virtual Memory memory(size_t bytes) { return Memory(bytes); }
  virtual void copy(Bytes to, Bytes from) { frame::copy(to, from); }

  // Called when steps ask for the end of a transfer that has not ended.
  virtual void look() {}

  // A rank of these, and their channel, among the messages of the whole group.
  virtual int number(int rank) const { return rank; }
  virtual int channel() const { return 0; }
};

// Most algorithms are first written for a power of two of ranks, and then run on others.
inline int number_of(const Messages& messages, int rank) {
  if (rank >= 0 && rank < messages.size()) return messages.number(rank);
  throw std::logic_error("there is no rank " + std::to_string(rank) + " among " +
      std::to_string(messages.size()) + " ranks");
}

inline Transfer::Transfer(Messages& messages, Way way, int other, Bytes bytes)
    : messages(messages),
      way(way),
      other(number_of(messages, other)),
      channel(messages.channel()),
      bytes(bytes) {
  if (other == messages.rank())
    throw std::logic_error("rank " + std::to_string(this->other) +
        (way == Way::send ? " sends to itself" : " receives from itself"));
  try {
    messages.begin(*this);
  } catch (...) {
    messages.forget(*this); // which may have it already: no destructor will run
    throw;
  }
}
inline bool Transfer::ready() {
  if (!ended) messages.look();
  return ended;
}
inline void Transfer::require_size(size_t size) const {
  if (size == bytes.size()) return;
  throw std::runtime_error("the ranks do not agree: rank " + std::to_string(other) +
      " sends " + std::to_string(size) + " bytes to rank " +
      std::to_string(messages.number(messages.rank())) + ", which expects " +
      std::to_string(bytes.size()));
}
inline Transfer::~Transfer() {
  if (!ended) messages.forget(*this);
}

// [send-receive]
// A send and a receive that go on side by side.
class SendReceive final : public Awaited {
 public:
  SendReceive(Messages& net, int to, Bytes sent, int from, Bytes received)
      : sent_(net, Way::send, to, sent), received_(net, Way::receive, from, received) {}

  bool ready() override { return sent_.ready() && received_.ready(); }
  std::vector<int> missing() const override {
    if (sent_.ended || sent_.other == received_.other) return received_.missing();
    if (received_.ended) return sent_.missing();
    return {sent_.other, received_.other};
  }

 private:
  Transfer sent_, received_;
};
// [/send-receive]

// Any number of transfers that go on side by side.
class Transfers final : public Awaited {
 public:
  explicit Transfers(Messages& net) : net_(net) {}

  void send(int to, Bytes bytes) { all_.emplace_back(net_, Way::send, to, bytes); }
  void receive(int from, Bytes bytes) {
    all_.emplace_back(net_, Way::receive, from, bytes);
  }

  bool ready() override {
    while (!all_.empty() && all_.front().ready()) all_.pop_front();
    return all_.empty();
  }
  std::vector<int> missing() const override {
    std::set<int> ranks; // once, though a send to it and a receive may both wait
    for (const Transfer& each : all_) {
      if (!each.ended) ranks.insert(each.other);
    }
    return {ranks.begin(), ranks.end()};
  }

 private:
  Messages& net_;
  std::list<Transfer> all_; // without those at the front that have ended
};

// [part]
// Some of the ranks, which count themselves from 0, or all on another channel.
class Part final : public Messages {
 public:
  Part(Messages& all, std::vector<int> ranks, int channel = 0)
      : all_(all),
        ranks_(std::move(ranks)),
        rank_(static_cast<int>(std::ranges::find(ranks_, all.rank()) - ranks_.begin())),
        channel_(channel) {}

  int rank() const override { return rank_; } // size() if it is none of them
  int size() const override { return static_cast<int>(ranks_.size()); }
  int host(int rank) const override { return all_.host(ranks_[rank]); }
  void begin(Transfer& transfer) override { all_.begin(transfer); }
  void forget(Transfer& transfer) override { all_.forget(transfer); }
  void look() override { all_.look(); }
  Memory memory(size_t bytes) override { return all_.memory(bytes); }
  void copy(Bytes to, Bytes from) override { all_.copy(to, from); }
  int number(int rank) const override { return all_.number(ranks_[rank]); }
  int channel() const override { return all_.channel() + channel_; }

 private:
  Messages& all_;
  const std::vector<int> ranks_;
  const int rank_, channel_;
};
// [/part]

// [helpers]
// A rank, counted around the ring of all.
inline int around(int rank, int size) { return (rank % size + size) % size; }

// Bytes cut into shares for the ranks, which are whole elements of any type. The last
// ones are smaller, or empty.
class Shares {
 public:
  Shares(Bytes bytes, int count)
      : bytes_(bytes),
        count_(count),
        size_(((bytes.size() + count - 1) / count + 15) / 16 * 16) {}

  size_t size() const { return size_; } // of the largest
  Bytes operator[](int index) const { // counted around the ring
    return part(bytes_, around(index, count_), size_);
  }
  Bytes range(int first, int end) const { // several that lie side by side
    const size_t start = std::min(first * size_, bytes_.size());
    return bytes_.subspan(start, std::min(end * size_, bytes_.size()) - start);
  }
  std::vector<Bytes> list() const {
    std::vector<Bytes> all;
    for (int index = 0; index < count_; ++index) all.push_back((*this)[index]);
    return all;
  }

 private:
  Bytes bytes_;
  int count_;
  size_t size_;
};

// The size of the chunks of so many bytes: with more of them, more ranks work at the same
// time, and with larger ones, less of it is overhead.
inline size_t chunk_of(size_t bytes) {
  constexpr size_t kSmallest = 4 << 10, kLargest = 128 << 10;
  return std::clamp(bytes / 16 / 16 * 16, kSmallest, kLargest);
}

// Combines two; the target may be either one.
inline void combine(const Operation& op, Bytes target, Bytes first, Bytes second) {
  const Bytes both[] = {first, second};
  op.combine(target, both);
}
// Begins a reduction with the input of this rank, which AVG divides.
inline void begin_reduction(const Operation& op, Bytes target, Bytes input) {
  op.reduce(target, {&input, 1});
}
// [/helpers]

} // namespace frame

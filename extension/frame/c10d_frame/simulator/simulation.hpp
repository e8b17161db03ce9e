#pragma once

#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

#include "frame/messages.hpp"

namespace simulator {

using frame::Bytes, frame::Memory, frame::Messages, frame::Steps, frame::Transfer;
using frame::Way;
using std::to_string;
using Time = int64_t; // in picoseconds, whole, so that every machine counts the same

// [machine]
// What the simulation knows of the machines: hosts with some ranks each, and a card that
// the ranks of a host share. All times are in picoseconds.
struct Machine {
  int ranks_per_host = 8;
  Time latency = 5'000'000; // from host to host: 5 us
  Time per_byte = 20; // of a card, in each direction: 400 Gbit/s
  Time local_latency = 1'000'000; // between ranks of a host: 1 us
  Time local_per_byte = 50; // of a rank that sends to one of its host: 20 GB/s
  Time per_message = 200'000; // of a processor, for a send and for a receive: 0.2 us
  Time per_combined_byte = 50; // of a processor
  Time per_copied_byte = 25;
  // A message of so many bytes or more waits until its receive has begun. With 0, all do,
  // and steps that rely on anything else deadlock.
  size_t waits_from = SIZE_MAX;

  int host(int rank) const { return rank / ranks_per_host; }
  bool waits(size_t bytes) const { return bytes >= waits_from; }
};
// [/machine]

struct Counts {
  int64_t messages = 0, bytes = 0, messages_between_hosts = 0, bytes_between_hosts = 0;
  int64_t events = 0;
};

class Rank;

// A message in flight, from the moment when its send or its receive begins.
struct Flight {
  enum Stage : uint8_t { waits, enters, crosses, arrives, has_arrived };

  Rank *from = nullptr, *to = nullptr;
  Transfer *send = nullptr, *receive = nullptr; // null: not begun, or ended
  Bytes bytes; // of the one that has begun first
  Way first = Way::send;
  int64_t number = 0; // among the transfers of its rank
  Time begun = 0;
  Stage stage = waits;
  bool is_whole = false; // both have begun
};

// Messages from one rank to another on one channel that lack their send, or receive.
struct Halves {
  std::vector<Flight*> list;
  size_t first = 0;

  bool empty() const { return first == list.size(); }
  Flight* front() const { return list[first]; }
  void pop() {
    if (++first < list.size()) return;
    list.clear();
    first = 0;
  }
};

class Simulation;

// One rank: its clock, its messages, and the steps that it runs.
class Rank final : public Messages {
 public:
  Rank(Simulation& all, int rank) : all_(all), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override;
  int host(int rank) const override;
  void begin(Transfer& transfer) override;
  void forget(Transfer& transfer) override;
  Memory memory(size_t bytes) override;
  void copy(Bytes to, Bytes from) override;

  const Machine& machine() const;
  bool has_bytes() const;
  // Takes the processor for so many bytes.
  void work(size_t bytes, Time per_byte) {
    clock += static_cast<Time>(bytes) * per_byte;
  }
  Time clock = 0; // how far this rank is

 private:
  friend class Simulation;

  Simulation& all_;
  const int rank_;
  Steps steps_;
  Time port_ = 0; // until when it sends to a rank of its host
  int64_t begun_ = 0; // transfers
  std::unordered_map<uint64_t, Halves> halves_; // to this rank, by sender and channel
};

// Runs the steps of many ranks in one process, in virtual time. Whatever happens is an
// event, and the earliest is the next. Nothing depends on the machine that runs this.
class Simulation {
 public:
  // Without bytes, all memory is at addresses that no processor accepts, so that steps
  // that touch it themselves end the process. With bytes, they are copied as late as a
  // transport may do it, and each send waits for its receive.
  Simulation(const Machine& given, int ranks, bool with_bytes)
      : machine(given), with_bytes(with_bytes) {
    if (with_bytes) machine.waits_from = 0;
    for (int rank = 0; rank < ranks; ++rank) ranks_.emplace_back(*this, rank);
    cards_.resize(machine.host(ranks - 1) + 1);
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  Rank& rank(int rank) { return ranks_[rank]; }

  // [run]
  // Runs one program on all ranks to its end, and returns the time at which the last one
  // has ended. Throws, with the reason, if that never happens.
  template <class Program>
  Time run(const Program& program) {
    for (Rank& rank : ranks_) rank.steps_ = program(rank);
    for (Rank& rank : ranks_) advance(rank, 0);
    while (!events_.empty()) {
      const Time now = events_.begin()->first;
      auto& flights = events_.begin()->second;
      for (size_t i = 0; i < flights.size(); ++i) happen(*flights[i], now); // may add
      counts.events += static_cast<int64_t>(flights.size());
      events_.erase(events_.begin());
    }
    check_the_end();
    return std::ranges::max_element(ranks_, {}, &Rank::clock)->clock;
  }
  // [/run]

  Bytes no_bytes(size_t size) { // but an address
    const Bytes bytes(reinterpret_cast<std::byte*>(next_address_), size);
    next_address_ += size;
    return bytes;
  }

  Machine machine;
  const bool with_bytes;
  Counts counts;

 private:
  friend class Rank;

  struct Card { // until when it is busy
    Time sends = 0, receives = 0;
  };

  bool is_near(const Rank& one, const Rank& other) const {
    return machine.host(one.rank_) == machine.host(other.rank_);
  }
  Card& card(const Rank& rank) { return cards_[machine.host(rank.rank_)]; }

  void add(Flight& flight, Flight::Stage stage, Time when) {
    flight.stage = stage;
    events_[when].push_back(&flight);
  }

  // [happen]
  void happen(Flight& flight, Time now) {
    const Time size = static_cast<Time>(flight.bytes.size());
    if (flight.stage == Flight::enters) {
      const bool near = is_near(*flight.from, *flight.to);
      Time& busy = near ? flight.from->port_ : card(*flight.from).sends;
      const Time start = std::max(now, busy);
      busy = start + size * (near ? machine.local_per_byte : machine.per_byte);
      if (near) add(flight, Flight::arrives, busy + machine.local_latency);
      if (!near) add(flight, Flight::crosses, start + machine.latency);
      if (machine.waits(flight.bytes.size())) return;
      std::exchange(flight.send, nullptr)->ended = true;
      advance(*flight.from, now);
    } else if (flight.stage == Flight::crosses) { // its first byte is at the other card
      Time& busy = card(*flight.to).receives;
      busy = std::max(now, busy) + size * machine.per_byte;
      add(flight, Flight::arrives, busy);
    } else {
      flight.stage = Flight::has_arrived;
      if (flight.is_whole) arrive(flight, now);
    }
  }
  // [/happen]

  void arrive(Flight& flight, Time now) {
    Rank &from = *flight.from, &to = *flight.to;
    Transfer* const receive = std::exchange(flight.receive, nullptr);
    Transfer* const send = std::exchange(flight.send, nullptr);
    if (with_bytes) frame::copy(receive->bytes, send->bytes);
    unused_.push_back(&flight);
    to.clock = std::max(to.clock, now) + machine.per_message;
    receive->ended = true;
    if (send != nullptr) send->ended = true;
    if (&to != running_) advance(to, now);
    if (send != nullptr) advance(from, now);
  }

  void advance(Rank& rank, Time now) {
    rank.clock = std::max(rank.clock, now);
    running_ = &rank;
    try {
      while (rank.steps_.advance()) continue;
    } catch (const std::exception& error) {
      const bool none = rank.begun_ == 0;
      fail("rank " + to_string(rank.rank_) + " fails " +
          (none ? "before its first transfer"
                : "after the begin of its transfer " + to_string(rank.begun_)) +
          ": " + error.what());
    }
    running_ = nullptr;
    if (!given_up_.empty()) fail(given_up_);
  }

  [[noreturn]] void fail(const std::string& reason) {
    is_over_ = true;
    for (Rank& rank : ranks_) rank.steps_ = Steps();
    throw std::runtime_error(reason);
  }

  void count(const Rank& from, const Rank& to, size_t size) {
    const bool between = !is_near(from, to);
    ++counts.messages;
    counts.bytes += static_cast<int64_t>(size);
    counts.messages_between_hosts += between;
    counts.bytes_between_hosts += between ? static_cast<int64_t>(size) : 0;
  }

  Flight& new_flight() {
    if (unused_.empty()) return flights_.emplace_back();
    Flight& flight = *unused_.back();
    unused_.pop_back();
    return flight = Flight();
  }

  // [deadlock]
  // No event is left: every rank has ended, or waits for ever.
  void check_the_end() {
    const auto waiting =
        std::ranges::count_if(ranks_, [](Rank& rank) { return !rank.steps_.done(); });
    std::vector<const Flight*> halves;
    for (Rank& rank : ranks_) {
      for (const auto& [key, of_pair] : rank.halves_) {
        const auto begin = of_pair.list.begin() + of_pair.first;
        halves.insert(halves.end(), begin, of_pair.list.end());
      }
    }
    if (halves.empty() && waiting == 0) return;
    std::ranges::sort(halves, {},
        [](const Flight* half) { return std::tuple(waiter(*half), half->number); });
    std::string text = waiting > 0 ? "deadlock: " + to_string(waiting) + " of " +
            to_string(size()) + " ranks wait for ever"
                                   : "no rank receives these messages";
    for (const Flight* half : std::span(halves).first(std::min(halves.size(), kNamed)))
      text += "\n  " + describe(*half);
    if (halves.size() > kNamed)
      text += "\n  and " + to_string(halves.size() - kNamed) + " more";
    fail(text);
  }

  static int waiter(const Flight& half) {
    return (half.first == Way::send ? half.from : half.to)->rank_;
  }
  static std::string describe(const Flight& half) {
    const bool sends = half.first == Way::send;
    const int other = (sends ? half.to : half.from)->rank_;
    return "rank " + to_string(waiter(half)) + (sends ? " sends " : " receives ") +
        to_string(half.bytes.size()) +
        (sends ? " bytes to rank " : " bytes from rank ") + to_string(other) +
        " (its transfer " + to_string(half.number) + ")";
  }
  // [/deadlock]

  static constexpr size_t kNamed = 16;

  std::deque<Rank> ranks_; // they stay where they are
  std::vector<Card> cards_; // of the hosts
  std::map<Time, std::vector<Flight*>> events_; // in regular steps, many at one time
  std::deque<Flight> flights_;
  std::vector<Flight*> unused_;
  Rank* running_ = nullptr;
  std::string given_up_;
  bool is_over_ = false;
  uintptr_t next_address_ = uintptr_t(1) << 62;
};

inline int Rank::size() const { return all_.size(); }
inline const Machine& Rank::machine() const { return all_.machine; }
inline bool Rank::has_bytes() const { return all_.with_bytes; }
inline int Rank::host(int rank) const { return machine().host(rank); }

// [begin]
inline void Rank::begin(Transfer& transfer) {
  const bool sends = transfer.way == Way::send;
  const size_t size = transfer.bytes.size();
  Rank& other = all_.rank(transfer.other);
  Rank &from = sends ? *this : other, &to = sends ? other : *this;
  ++begun_;
  if (sends) clock += all_.machine.per_message;
  if (sends) all_.count(from, to, size);
  const auto key = static_cast<uint64_t>(transfer.channel) << 32 | from.rank_;
  Halves& halves = to.halves_[key];
  const bool is_second = !halves.empty() && halves.front()->first != transfer.way;
  Flight& flight = is_second ? *halves.front() : all_.new_flight();
  (sends ? flight.send : flight.receive) = &transfer;
  if (is_second) {
    halves.pop();
    flight.is_whole = true;
    if (flight.bytes.size() != size) {
      throw std::runtime_error("the ranks do not agree: this one " +
          std::string(sends ? "sends " : "expects ") + to_string(size) +
          " bytes, and " + Simulation::describe(flight));
    }
  } else {
    flight.from = &from;
    flight.to = &to;
    flight.first = transfer.way;
    flight.number = begun_;
    flight.bytes = transfer.bytes;
    flight.begun = clock;
    halves.list.push_back(&flight);
  }
  const bool waits = all_.machine.waits(size);
  if (waits ? is_second : sends)
    all_.add(flight, Flight::enters, waits ? std::max(clock, flight.begun) : clock);
  else if (is_second && flight.stage == Flight::has_arrived)
    all_.arrive(flight, clock);
}
// [/begin]

inline void Rank::forget(Transfer& transfer) {
  if (all_.is_over_ || !all_.given_up_.empty()) return;
  all_.given_up_ = "rank " + to_string(rank_) + " gives up a message " +
      (transfer.way == Way::send ? "to rank " : "from rank ") +
      to_string(transfer.other) + " that has not ended";
}

inline Memory Rank::memory(size_t bytes) {
  return all_.with_bytes ? Memory(bytes) : Memory(all_.no_bytes(bytes));
}

inline void Rank::copy(Bytes to, Bytes from) {
  if (to.data() != from.data()) work(from.size(), all_.machine.per_copied_byte);
  if (all_.with_bytes) frame::copy(to, from);
}

} // namespace simulator

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "keys.hpp"
#include "note.hpp"
#include "steps.hpp"
#include "time.hpp"

namespace frame {

constexpr int kEveryone = -1, kNobody = -2; // where a rank could stand
// From the first rank that leaves to the last, in most programs. Rank 0, which often hosts
// the store, waits so long: then no rank finds the store gone.
constexpr milliseconds kTogether{500};

// One operation as a transport sees it. It stays where it is until the steps of the
// operation have been destroyed.
struct Operation {
  Note note;
  // Input and output: one piece, or one for each rank. They may be the same memory.
  //
  //                   in                     out
  //   broadcast       one, on the root       one, on the others
  //   all_reduce      one                    one
  //   reduce          one                    one, on the root
  //   all_gather      one                    one for each rank
  //   gather          one                    one for each rank, on the root
  //   scatter         for each, on the root  one
  //   reduce_scatter  one for each rank      one
  //   all_to_all      one for each rank      one for each rank
  //   send, receive   one, or none           none, or one
  Pieces in, out;
  // Combines the sources, each at least as long as the target, in their order. The
  // target may be the first of them, or either one of two. All are whole elements:
  // multiples of 16 bytes fit every dtype. A library that reduces itself looks at the
  // note's dtype and op. For AVG, reduce() divides each source before it adds. To combine
  // two at a time, call it for the input alone, and then combine(), which does not divide;
  // combines_in_steps() says for which types that rounds too much.
  std::function<void(Bytes target, Pieces sources)> reduce, combine;
  Blobs* packed = nullptr; // of a sparse all_reduce: receives the input of each rank
  std::shared_ptr<std::atomic<int>> source; // of a receive: write the sender here
  // Keeps the memory alive: copy it where a library may write after the steps have gone.
  std::shared_ptr<const void> owner;
};

// A pause of a thread that has waited for so long, and is to look less and less often.
inline microseconds pause_after(
    Clock::duration waited, microseconds shortest, microseconds longest) {
  return std::clamp(
      std::chrono::duration_cast<microseconds>(waited) / 4, shortest, longest);
}

// Returns whether done(), at the latest when the time is over. The longer it takes, the
// less often it asks, so that many ranks do not keep the store busy: all together at most a
// thousand times in a second.
template <class Done>
bool poll_until(const Done& done, Clock::time_point limit, int ranks = 1) {
  constexpr microseconds kFirstPause{100};
  const microseconds longest = milliseconds(std::max(100, ranks));
  const auto begin = Clock::now();
  for (auto now = begin; !done(); now = Clock::now()) {
    if (now > limit) return false;
    const auto pause = pause_after(now - begin, kFirstPause, longest);
    sleep_until(std::min(now + pause, limit + kFirstPause));
  }
  return true;
}

// A process of the group. Those with the same home can share memory; their ranks have the
// same number for the host, which counts from 0 in the order of the ranks.
struct Member {
  int process = 0;
  std::string home;
  int host = 0;
};

// The place of a rank in its group. Each rank makes its transport when all have come.
struct Place {
  int rank = 0, size = 1;
  Names names;
  std::shared_ptr<Keys> keys; // of this group; the transport may use them to its end
  Clock::time_point deadline; // for the transport's constructor
  std::vector<Member> members{}; // by rank

  // Waits for keys that other ranks set to connect, and returns their values. Throws at the
  // deadline, and as soon as a rank has failed, which would not set its keys.
  std::vector<std::string> await(const Keys::Names& wanted) const {
    const auto are_set = [&] {
      if (keys->has(wanted)) return true;
      const bool failed = keys->has({kFailed});
      // A rank may have set its keys since, and failed after that.
      if (failed && !keys->has(wanted))
        throw std::runtime_error("another rank cannot connect");
      return failed;
    };
    if (!poll_until(are_set, deadline, size))
      throw std::runtime_error("other ranks are late");
    std::vector<std::string> values;
    for (const auto& value : keys->get(wanted))
      values.emplace_back(value.begin(), value.end());
    return values;
  }
  static constexpr const char* kFailed = "cannot connect"; // a key of the rendezvous
};

// How often in a row nothing could advance, and since when.
struct Idle {
  int64_t looks = 0;
  Clock::time_point since;
};

// Lets threads sleep until another thread has something for them.
class Bell {
 public:
  virtual ~Bell() = default;
  virtual void ring() {
    const std::lock_guard lock(mutex_);
    ++rings_;
    changed_.notify_all();
  }
  uint64_t rings() const {
    const std::lock_guard lock(mutex_);
    return rings_;
  }
  // Waits for more rings than these, or for the limit; returns how many there are.
  uint64_t wait(uint64_t heard, Clock::time_point limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, limit, [&] { return rings_ != heard; });
    return rings_;
  }

 protected:
  mutable std::mutex mutex_;
  Condition changed_;
  uint64_t rings_ = 0;
};

// The way to move bytes between the ranks of a group. Below this interface nothing knows
// PyTorch, above it nothing knows how bytes move.
//
// Threads: the constructor and joined() run on the thread that creates the group, without
// Python's lock, and so does announce() if the engine cannot start its own. Any thread
// may call wake(), and each thread that drives calls rest(). One thread at a time makes
// all other calls, so a transport needs no lock of its own. If can_block(), it is always
// the same thread, as some libraries want it.
//
// To wait, steps suspend: they `co_await`, and the engine asks again. Three kinds of
// transports fit:
//
// The c10d Store: exchange, send and receive set keys and await those of others. To ask
// takes a server, which may not answer, so can_block() stays true.
//
// Shared memory: can_block() is false, because steps only look at memory. Collectives are
// coroutines of their own, small operations run at_once(); rest() sleeps on a futex, and wake()
// rings it.
//
// A library such as MPI: each method posts nonblocking requests, made of note.tag, root,
// dtype and op, and awaits their end. A call that tests an MPI request may hang, so a
// thread of its own makes all calls of MPI, and rings. Then can_block() is false. Requests
// that cannot be cancelled keep `owner`.
class Transport {
 public:
  explicit Transport(Place place) : place_(std::move(place)) {}
  virtual ~Transport() = default;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  const Names& names() const { return place_.names; }
  Keys& keys() const { return *place_.keys; }

  // [interface]
  // Whether a call may wait for another process. Then a thread of the engine makes all
  // calls, and a hang in one of them still ends at the deadline.
  virtual bool can_block() const { return true; }

  // Called once, when all ranks have made their transport, and have read what they need
  // to connect. Must not throw: the others begin.
  virtual void joined() {}

  // Shows bytes of any size to others: to all the same, or each rank its own piece, or
  // none. Gets those of one rank, of kEveryone or of kNobody into received[rank]. Waits
  // for the notes of all ranks and compares them.
  virtual Steps exchange(const Note&, Pieces shown, int from, Blobs& received) = 0;

  // Collectives run one after another, in the same order on all ranks. Replace one kind
  // after another by something faster than an exchange.
  virtual Steps collective(const Operation&);

  // Runs an operation of an idle group to its end, if it is small and the other ranks
  // come at once: on the thread of the call, without a coroutine. It is asked only if
  // can_block() is false. The operation has no owner, so nobody may use its tensors after
  // the return. If it returns false or throws, the frame begins the same operation again,
  // as a coroutine.
  virtual bool at_once(const Operation&) { return false; }

  // Messages begin in the order of calls and go on side by side. One is received by the
  // first receive that waits for its tag and sender (note.root), or for kAnySource. A
  // send ends when its message has been received, or is kept for the receiver.
  virtual Steps send(const Operation&) = 0;
  virtual Steps receive(const Operation&) = 0;

  // Called once before operations are asked whether they can advance, so that many that
  // go on side by side cost one question: reads what has come for any of them, such as
  // that of one epoll_wait. Never waits; the group fails with what it throws.
  virtual void progress() {}

  // Why the group cannot go on, as another rank has announced. Asked every 50 ms while
  // an operation waits. So is lost(), for the ranks that it waits for (empty: any other):
  // why it can no longer get what it needs. Data that had come before counts.
  virtual std::optional<std::string> failure() { return std::nullopt; }
  virtual std::optional<std::string> lost(const std::vector<int>& /* missing */) {
    return std::nullopt;
  }
  // Tells the others why they cannot go on, unless they know.
  virtual void announce(const std::string& /* reason */) {}
  // The last steps, which get two seconds. If the end is orderly, they wait until the
  // others have what they need of this rank. Close connections here: the destructor runs
  // when the last Work has gone, on any thread, or never.
  virtual Steps leave(bool /* orderly */) { return {}; }
  // [/interface]

  // Called when nothing could advance, by several threads if the transport cannot block.
  // Waits a while, or until the limit or wake(). May look() once more, whether anything
  // advances, and returns what that says. The default polls a server, with naps that grow
  // with the time that it has waited, and with the ranks: all together look at most 500
  // times in a second, if they have waited for long.
  using Look = std::function<bool()>;
  virtual bool rest(const Idle& idle, Clock::time_point limit, const Look& /* look */) {
    const auto now = Clock::now();
    const auto longest = std::max<microseconds>(kLongestNap, size() * milliseconds(2));
    const auto nap = pause_after(now - idle.since, size() * kShortestNap, longest);
    heard_ = bell_->wait(heard_, std::min(limit, now + nap));
    return false;
  }
  virtual void wake() { bell_->ring(); }

  // After announce(): whether no other rank can get a result that it would not get if it
  // had been told. Until then, for at most two seconds, no wait of this rank raises the
  // reason. Must not throw.
  virtual bool has_told() { return true; }

 protected:
  // Other threads may ring it, also when the transport is gone.
  const std::shared_ptr<Bell>& bell() const { return bell_; }

  // Checks the size: equal notes say that sizes are equal, except in all_to_all, where
  // each pair of ranks has its own.
  void require_size(Bytes target, size_t bytes, int from) const {
    if (bytes == target.size()) return;
    throw std::runtime_error("the ranks do not agree: " + names().who(from) +
        " sends " + std::to_string(bytes) + " bytes to " + names().who(rank()) +
        ", which expects " + std::to_string(target.size()));
  }

 private:
  static constexpr microseconds kShortestNap{25}, kLongestNap{20'000};

  const Place place_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  std::atomic<uint64_t> heard_ = 0;
};

// [collective]
// Any collective from one exchange: a rank reads all that its outputs are made of.
inline Steps Transport::collective(const Operation& op) {
  const bool of_root = op.note.kind == Kind::broadcast || op.note.kind == Kind::scatter;
  const int from = op.out.empty() ? kNobody : of_root ? op.note.root : kEveryone;
  Blobs received(size());
  co_await exchange(op.note, op.in, from, received);
  if (op.out.empty()) co_return;
  std::vector<Bytes> sources; // copies, because an output may be the memory of an input
  for (int rank = 0; rank < size(); ++rank) {
    if (from != kEveryone && from != rank) continue;
    const Bytes target = op.out[op.out.size() == 1 ? 0 : rank];
    require_size(target, received[rank].size(), rank);
    if (!op.reduce) copy(target, received[rank]);
    sources.emplace_back(received[rank]);
  }
  // In the order of the ranks, so that every rank has the same rounding.
  if (op.reduce) op.reduce(op.out[0], sources);
}
// [/collective]

inline Steps begin(Transport& transport, const Operation& operation) {
  const Note& note = operation.note;
  if (note.kind == Kind::send) return transport.send(operation);
  if (note.kind == Kind::receive) return transport.receive(operation);
  if (operation.packed == nullptr) return transport.collective(operation);
  return transport.exchange(note, operation.in, kEveryone, *operation.packed);
}

} // namespace frame

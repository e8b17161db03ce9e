#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "keys.hpp"
#include "note.hpp"
#include "steps.hpp"

namespace frame {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kEveryone = -1, kNobody = -2; // where a rank could stand

// One operation as a transport sees it: memory, and what becomes of it. It stays where it
// is until the steps of the operation have been destroyed.
struct Operation {
  Note note;
  // Input and output: one piece, or one for each rank, as the method below says. They
  // may be the same memory.
  Pieces in, out;
  // Combines the sources, each as long as the target, in their order. The target may be
  // the first of them. A library that reduces itself looks at the note's dtype and op.
  std::function<void(Bytes target, std::span<const Bytes> sources)> reduce;
  Blobs* packed = nullptr; // of a sparse all_reduce: receives the input of each rank
  std::shared_ptr<std::atomic<int>> source; // of a receive: write the sender here
  // Keeps the memory alive: copy it where a library may write after the steps have gone.
  std::shared_ptr<const void> owner;
};

// What a transport gets to begin with. Each rank makes its own, when all have come.
struct Place {
  int rank = 0, size = 1;
  Names names;
  std::shared_ptr<Keys> keys; // of this group; the transport may use them to its end
  Clock::time_point deadline; // for the transport's constructor
};

// The way to move bytes between the ranks of a group. Below this line nothing knows
// PyTorch, above it nothing knows how bytes move. The engine makes all calls but wake()
// from one thread at a time: it drives. How three kinds of transports fit:
//
// - The c10d Store: exchange, send and receive set keys, and await those of others by
//   asking again. Asking takes a server, so can_block() stays true: only the engine's
//   own thread drives. All collectives come from Exchanging.
// - Shared memory: can_block() is false, so whoever waits drives. Each collective is a
//   coroutine of its own that awaits counters and reduces the slots of its peers in
//   place; rest() spins, yields, then sleeps on a futex, and wake() rings it.
// - A library such as MPI: each method posts nonblocking requests, made of note.tag,
//   root, dtype and op, and awaits their test. can_block() is true: only one thread
//   calls the library, and a hang in there still fails at the deadline. Requests that
//   cannot be cancelled keep `owner`.
class Transport {
 public:
  explicit Transport(Place place) : place_(std::move(place)) {}
  virtual ~Transport() = default;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  const Names& names() const { return place_.names; }
  Keys& keys() const { return *place_.keys; }

  // Whether a call may wait for another process, or a library hang: then only one
  // thread of the engine makes calls, and another one keeps the deadlines.
  virtual bool can_block() const { return true; }

  // Collectives run one after another, in the same order on all ranks. Each waits for
  // all ranks, or at least for those whose data it needs.
  virtual Steps barrier(const Operation&) = 0;
  virtual Steps broadcast(const Operation&) = 0; // in on the root, out elsewhere
  virtual Steps all_reduce(const Operation&) = 0; // one in, one out
  virtual Steps reduce(const Operation&) = 0; // out on the root
  virtual Steps all_gather(const Operation&) = 0; // one in, out for each rank
  virtual Steps gather(const Operation&) = 0; // out for each rank on the root
  virtual Steps scatter(const Operation&) = 0; // in for each rank on the root
  virtual Steps reduce_scatter(const Operation&) = 0; // in for each rank, one out
  virtual Steps all_to_all(const Operation&) = 0; // both for each rank

  // Shows bytes of any size to others: to all the same, or each rank its own piece, or
  // none. Gets those of one rank, of kEveryone or of kNobody into received[rank].
  virtual Steps exchange(const Note&, Pieces shown, int from, Blobs& received) = 0;

  // Messages begin in the order of calls and go on side by side. One is received by the
  // first receive that waits for its tag and sender (note.root), or for kAnySource. A
  // send ends when its message has been received.
  virtual Steps send(const Operation&) = 0;
  virtual Steps receive(const Operation&) = 0;

  // Why the group cannot go on, as another rank has announced. Asked every 50 ms while
  // an operation waits; so is lost(), for the ranks that it waits for: why none of
  // these can still come. Data that had come before counts.
  virtual std::optional<std::string> failure() { return std::nullopt; }
  virtual std::optional<std::string> lost(const std::vector<int>& /* missing */) {
    return std::nullopt;
  }
  // Tells the others why they cannot go on.
  virtual void announce(const std::string& /* reason */) {}
  // The last steps, which get two seconds. If the end is `orderly`, they wait until the
  // others have what they need of this rank.
  virtual Steps leave(bool /* orderly */) { return {}; }

  // Called when nothing could advance, `idle` times in a row: waits a while, or until
  // wake(), which any thread may call. By default for transports that nothing rings.
  virtual void rest(int idle) {
    std::unique_lock lock(mutex_);
    const auto nap = std::min(microseconds(50) * (1 << std::min(idle, 6)), kLongestNap);
    woken_.wait_for(lock, nap, [this] { return wake_; });
    wake_ = false;
  }
  virtual void wake() {
    const std::lock_guard lock(mutex_);
    wake_ = true;
    woken_.notify_one();
  }

 private:
  static constexpr microseconds kLongestNap{2000};

  const Place place_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
};

// The steps of any operation.
inline Steps begin(Transport& transport, const Operation& operation) {
  switch (operation.note.kind) {
    case Kind::barrier:
    case Kind::monitored_barrier: return transport.barrier(operation);
    case Kind::broadcast: return transport.broadcast(operation);
    case Kind::all_reduce:
      if (operation.packed == nullptr) return transport.all_reduce(operation);
      return transport.exchange(
          operation.note, operation.in, kEveryone, *operation.packed);
    case Kind::reduce: return transport.reduce(operation);
    case Kind::all_gather: return transport.all_gather(operation);
    case Kind::gather: return transport.gather(operation);
    case Kind::scatter: return transport.scatter(operation);
    case Kind::reduce_scatter: return transport.reduce_scatter(operation);
    case Kind::all_to_all: return transport.all_to_all(operation);
    case Kind::send: return transport.send(operation);
    case Kind::receive: return transport.receive(operation);
  }
  throw std::logic_error("unknown operation");
}

} // namespace frame

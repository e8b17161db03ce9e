#pragma once

#include "transport.hpp"

namespace frame {

// All collectives from one exchange. A transport that derives from this has to move
// bytes in exchange, send and receive, and can then replace one collective after another
// by a faster one. Every exchange waits for the notes of all ranks and compares them.
class Exchanging : public Transport {
 public:
  using Transport::Transport;

  Steps barrier(const Operation& op) override {
    const Pieces nothing;
    Blobs received;
    co_await exchange(op.note, nothing, kNobody, received);
  }

  Steps broadcast(const Operation& op) override {
    const int from = rank() == op.note.root ? kNobody : op.note.root;
    Blobs received(size());
    co_await exchange(op.note, op.in, from, received);
    if (from != kNobody) take(op.out[0], received, from);
  }

  Steps all_gather(const Operation& op) override { return gather(op); }

  Steps gather(const Operation& op) override {
    Blobs received(size());
    co_await exchange(op.note, op.in, op.out.empty() ? kNobody : kEveryone, received);
    for (size_t from = 0; from < op.out.size(); ++from) take(op.out[from], received, from);
  }

  Steps scatter(const Operation& op) override {
    Blobs received(size());
    co_await exchange(op.note, op.in, op.note.root, received);
    take(op.out[0], received, op.note.root);
  }

  Steps all_to_all(const Operation& op) override { return gather(op); }

  Steps all_reduce(const Operation& op) override { return reduce(op); }

  Steps reduce_scatter(const Operation& op) override { return reduce(op); }

  Steps reduce(const Operation& op) override {
    Blobs received(size());
    co_await exchange(op.note, op.in, op.out.empty() ? kNobody : kEveryone, received);
    if (op.out.empty()) co_return;
    // Of rank 0, rank 1, ...: so every rank has the same rounding. Its own input is a
    // copy, too, because the target may be the same memory.
    Pieces sources;
    for (int from = 0; from < size(); ++from) {
      fit(op.out[0], received, from);
      sources.emplace_back(received[from]);
    }
    op.reduce(op.out[0], sources);
  }

 private:
  void take(Bytes target, const Blobs& received, int from) const {
    fit(target, received, from);
    copy(target, received[from]);
  }

  // Equal notes say that the sizes are equal, except in all_to_all, where each pair of
  // ranks has its own.
  void fit(Bytes target, const Blobs& received, int from) const {
    if (received[from].size() == target.size()) return;
    throw std::runtime_error("the ranks do not agree: " + names().who(from) + " sends " +
        std::to_string(received[from].size()) + " bytes to " + names().who(rank()) +
        ", which expects " + std::to_string(target.size()));
  }
};

} // namespace frame

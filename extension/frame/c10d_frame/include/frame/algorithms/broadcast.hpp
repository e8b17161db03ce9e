#pragma once

#include <bit>

#include "all_gather.hpp"

namespace frame::broadcast {

// The same on all ranks; the root's input, and the output of the others.
inline Bytes data_of(const Operation& op) {
  return op.in.empty() ? op.out[0] : op.in[0];
}

// [binomial]
// Whoever has the data sends it on, so that twice as many have it after each step.
// Ranks count themselves from the root; the sender to one has all but its lowest bit.
inline Steps binomial(Messages& net, const Operation& op) {
  const int size = net.size(), root = op.note.root;
  const int mine = around(net.rank() - root, size);
  const int all = static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)));
  const int bit = mine == 0 ? all : mine & -mine;
  const auto rank = [&](int number) { return around(root + number, size); };
  if (mine != 0) {
    Transfer received = net.receive(rank(mine - bit), data_of(op));
    co_await received;
  }
  Transfers sent(net);
  for (int child = bit / 2; child > 0; child /= 2) {
    if (mine + child < size) sent.send(rank(mine + child), data_of(op));
  }
  co_await sent;
}
// [/binomial]

// [chain]
// The chunks go from rank to rank, and all ranks work at the same time.
inline Steps chain(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank(), root = op.note.root;
  const int next = around(me + 1, size), previous = around(me - 1, size);
  const Bytes data = data_of(op);
  const size_t chunk = chunk_of(data.size());
  Transfers sent(net);
  for (size_t i = 0; i < parts(data.size(), chunk); ++i) {
    const Bytes piece = part(data, i, chunk);
    if (me != root) {
      Transfer received = net.receive(previous, piece);
      co_await received;
    }
    if (next != root) sent.send(next, piece);
  }
  co_await sent;
}
// [/chain]

// [scatter-gather]
// Each rank gets a share, down the tree of binomial(); then the shares go around the
// ring, so that the root sends twice the data, and not once for each step.
inline Steps scatter_gather(Messages& net, const Operation& op) {
  const int size = net.size(), root = op.note.root;
  const int mine = around(net.rank() - root, size);
  const int all = static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)));
  const int bit = mine == 0 ? all : mine & -mine;
  const auto rank = [&](int number) { return around(root + number, size); };
  const Shares share(data_of(op), size);
  if (mine != 0) {
    const Bytes ours = share.range(mine, std::min(mine + bit, size));
    Transfer received = net.receive(rank(mine - bit), ours);
    co_await received;
  }
  Transfers sent(net);
  for (int child = bit / 2; child > 0; child /= 2) {
    const int first = mine + child, end = std::min(first + child, size);
    if (first < size) sent.send(rank(first), share.range(first, end));
  }
  co_await sent;
  for (int step = 0; step < size - 1; ++step) {
    SendReceive both(net, rank(mine + 1), share[mine - step], rank(mine - 1),
        share[mine - step - 1]);
    co_await both;
  }
}
// [/scatter-gather]

} // namespace frame::broadcast

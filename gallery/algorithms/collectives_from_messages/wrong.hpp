// Three algorithms with a bug. Each is right in some cases.
#pragma once

#include "frame/algorithms/algorithms.hpp"

namespace wrong {

using namespace frame;

// [sends-first]
inline Steps sends_first(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  const auto piece = [&](int rank) { return op.out[around(rank, size)]; };
  net.copy(piece(me), op.in[0]);
  for (int step = 0; step < size - 1; ++step) {
    Transfer sent = net.send(around(me + 1, size), piece(me - step));
    co_await sent; // for a receive that its rank begins later
    Transfer received = net.receive(around(me - 1, size), piece(me - step - 1));
    co_await received;
  }
}
inline const Added kSendsFirst{{Kind::all_gather, "sends_first", sends_first}};
// [/sends-first]

// [to-itself]
inline Steps to_all(Messages& net, const Operation& op) {
  net.copy(op.out[net.rank()], op.in[0]);
  Transfers all(net);
  for (int rank = 0; rank < net.size(); ++rank) { // this one, too
    all.send(rank, op.in[0]);
    all.receive(rank, op.out[rank]);
  }
  co_await all;
}
inline const Added kToAll{{Kind::all_gather, "to_all", to_all}};
// [/to-itself]

// The ring, for shares of one size.
inline Steps equal_ring(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  const int next = around(me + 1, size), previous = around(me - 1, size);
  const Shares share(op.out[0], size);
  const Memory memory = net.memory(share.size());
  begin_reduction(op, op.out[0], op.in[0]);
  // [sizes]
  for (int step = 0; step < size - 1; ++step) {
    const Bytes mine = share[me - step - 1];
    SendReceive both(net, next, share[me - step], previous, memory);
    co_await both;
    combine(op, mine, mine, memory);
  }
  // [/sizes]
  for (int step = 0; step < size - 1; ++step) {
    SendReceive both(net, next, share[me + 1 - step], previous, share[me - step]);
    co_await both;
  }
}
inline const Added kEqualRing{{Kind::all_reduce, "equal_ring", equal_ring}};

} // namespace wrong

#pragma once

#include "../messages.hpp"

namespace frame::all_gather {

// [ring]
// Every piece goes once around the ring.
inline Steps ring(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  const int next = around(me + 1, size), previous = around(me - 1, size);
  const auto piece = [&](int rank) { return op.out[around(rank, size)]; };
  net.copy(piece(me), op.in[0]);
  for (int step = 0; step < size - 1; ++step) {
    SendReceive both(net, next, piece(me - step), previous, piece(me - step - 1));
    co_await both;
  }
}
// [/ring]

// [bruck]
// A rank has twice as many pieces after each step: those of the ranks from its own on.
inline Steps bruck(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  const size_t bytes = op.in[0].size();
  const Memory memory = net.memory(size * bytes);
  const auto pieces = [&](int first, int count) {
    return Bytes(memory).subspan(first * bytes, count * bytes);
  };
  net.copy(pieces(0, 1), op.in[0]);
  for (int have = 1; have < size; have *= 2) {
    const int more = std::min(have, size - have);
    SendReceive both(net, around(me - have, size), pieces(0, more),
        around(me + have, size), pieces(have, more));
    co_await both;
  }
  for (int i = 0; i < size; ++i) net.copy(op.out[around(me + i, size)], pieces(i, 1));
}
// [/bruck]

} // namespace frame::all_gather

#pragma once

#include "../messages.hpp"

namespace frame::all_to_all {

// [direct]
// All at once: one step, in which each rank sends to all others.
inline Steps direct(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  Transfers all(net);
  for (int step = 1; step < size; ++step) {
    const int to = around(me + step, size), from = around(me - step, size);
    all.send(to, op.in[to]);
    all.receive(from, op.out[from]);
  }
  net.copy(op.out[me], op.in[me]);
  co_await all;
}
// [/direct]

// [pairwise]
// In each step, a rank sends to one rank, and receives from another.
inline Steps pairwise(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  net.copy(op.out[me], op.in[me]);
  for (int step = 1; step < size; ++step) {
    const int to = around(me + step, size), from = around(me - step, size);
    SendReceive both(net, to, op.in[to], from, op.out[from]);
    co_await both;
  }
}
// [/pairwise]

// [bruck]
// A piece that must go `i` ranks further goes in a step for each bit of `i`, together with
// all others that have this bit. All pieces of all ranks must have one size.
inline Steps bruck(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  const size_t bytes = op.in[0].size();
  const size_t half = (size + 1) / 2; // the most pieces that have a bit
  const Memory memory = net.memory(size * bytes); // piece i has to go i ranks further
  const Memory sent = net.memory(half * bytes), received = net.memory(half * bytes);
  for (int i = 0; i < size; ++i)
    net.copy(memory.block(i, bytes), op.in[around(me + i, size)]);
  for (int bit = 1; bit < size; bit *= 2) {
    int count = 0;
    for (int i = 0; i < size; ++i) {
      if ((i & bit) != 0) net.copy(sent.block(count++, bytes), memory.block(i, bytes));
    }
    SendReceive both(net, around(me + bit, size), sent.first(count * bytes),
        around(me - bit, size), received.first(count * bytes));
    co_await both;
    count = 0;
    for (int i = 0; i < size; ++i) {
      if ((i & bit) != 0)
        net.copy(memory.block(i, bytes), received.block(count++, bytes));
    }
  }
  for (int i = 0; i < size; ++i)
    net.copy(op.out[around(me - i, size)], memory.block(i, bytes));
}
// [/bruck]

} // namespace frame::all_to_all

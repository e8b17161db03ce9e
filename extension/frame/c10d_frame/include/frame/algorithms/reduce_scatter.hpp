#pragma once

#include "../messages.hpp"

namespace frame::reduce_scatter {

// [ring]
// The piece of each rank goes once around the ring, is added up on the way, and arrives
// where it belongs.
inline Steps ring(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  const int next = around(me + 1, size), previous = around(me - 1, size);
  const auto input = [&](int number) { return op.in[around(me + number, size)]; };
  const size_t largest = std::ranges::max_element(op.in, {}, &Bytes::size)->size();
  const Memory memory = net.memory(largest), other_memory = net.memory(largest);
  Bytes sum = memory, theirs = other_memory;
  begin_reduction(op, sum.first(input(-1).size()), input(-1));
  for (int step = 1; step < size; ++step) {
    const Bytes sent = input(-step), own = input(-step - 1);
    const size_t bytes = own.size();
    SendReceive both(net, next, sum.first(sent.size()), previous, theirs.first(bytes));
    co_await both;
    begin_reduction(op, sum.first(bytes), own);
    combine(op, theirs.first(bytes), theirs.first(bytes), sum.first(bytes));
    std::swap(sum, theirs);
  }
  net.copy(op.out[0], sum.first(op.out[0].size()));
}
// [/ring]

// [pairwise]
// In each step, a rank sends one rank its piece, and adds up what another one sends.
inline Steps pairwise(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  const size_t bytes = op.out[0].size();
  const Memory sum = net.memory(bytes), memory = net.memory(bytes);
  const Bytes theirs = memory;
  begin_reduction(op, sum, op.in[me]);
  for (int step = 1; step < size; ++step) {
    const int to = around(me + step, size), from = around(me - step, size);
    SendReceive both(net, to, op.in[to], from, theirs);
    co_await both;
    begin_reduction(op, theirs, theirs);
    combine(op, sum, sum, theirs);
  }
  net.copy(op.out[0], sum); // the last: it may be the memory of an input
}
// [/pairwise]

// [direct]
// Adds up all at once, in the order of the ranks, and so rounds once.
inline Steps direct(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  const size_t bytes = op.out[0].size();
  const Memory memory = net.memory(size * bytes);
  std::vector<Bytes> sources;
  Transfers all(net);
  for (int rank = 0; rank < size; ++rank) {
    sources.push_back(memory.block(rank, bytes));
    if (rank == me) net.copy(sources[me], op.in[me]);
    if (rank == me) continue;
    all.send(rank, op.in[rank]);
    all.receive(rank, sources[rank]);
  }
  co_await all;
  op.reduce(op.out[0], sources);
}
// [/direct]

} // namespace frame::reduce_scatter

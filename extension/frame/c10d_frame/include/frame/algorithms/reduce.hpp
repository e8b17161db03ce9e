#pragma once

#include "../messages.hpp"

namespace frame::reduce {

// [binomial]
// The tree of a broadcast, upwards: half of the ranks are left after each step.
inline Steps binomial(Messages& net, const Operation& op) {
  const int size = net.size(), root = op.note.root;
  const int mine = around(net.rank() - root, size);
  const size_t bytes = op.in[0].size();
  const Memory own = net.memory(op.out.empty() ? bytes : 0), memory = net.memory(bytes);
  const Bytes sum = op.out.empty() ? own : op.out[0], theirs = memory;
  begin_reduction(op, sum, op.in[0]);
  for (int bit = 1; bit < size; bit *= 2) {
    if ((mine & bit) != 0) {
      Transfer sent = net.send(around(root + mine - bit, size), sum);
      co_await sent;
      co_return;
    }
    if (mine + bit >= size) continue;
    Transfer received = net.receive(around(root + mine + bit, size), theirs);
    co_await received;
    combine(op, sum, sum, theirs);
  }
}
// [/binomial]

// [direct]
// The root adds up all at once, in the order of the ranks, and so rounds once.
inline Steps direct(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank(), root = op.note.root;
  const size_t bytes = op.in[0].size();
  const Memory memory = net.memory(me == root ? size * bytes : 0);
  std::vector<Bytes> sources;
  Transfers all(net);
  if (me != root) all.send(root, op.in[0]);
  for (int rank = 0; rank < size && me == root; ++rank) {
    sources.push_back(memory.block(rank, bytes));
    if (rank == me) net.copy(sources[me], op.in[0]);
    if (rank != me) all.receive(rank, sources[rank]);
  }
  co_await all;
  if (me == root) op.reduce(op.out[0], sources);
}
// [/direct]

} // namespace frame::reduce

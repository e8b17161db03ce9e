#pragma once

#include "../messages.hpp"

namespace frame {

namespace barrier {

// [barrier]
// After each step, a rank knows that twice as many ranks have come.
inline Steps dissemination(Messages& net, const Operation& /* op */) {
  const int size = net.size(), me = net.rank();
  for (int known = 1; known < size; known *= 2) {
    SendReceive both(net, around(me + known, size), {}, around(me - known, size), {});
    co_await both;
  }
}
// [/barrier]

} // namespace barrier

namespace gather {

// [gather]
inline Steps direct(Messages& net, const Operation& op) {
  const int root = op.note.root;
  Transfers all(net);
  if (net.rank() != root) all.send(root, op.in[0]);
  // The first, because the input may be the memory of another output.
  if (net.rank() == root) net.copy(op.out[root], op.in[0]);
  for (int rank = 0; rank < net.size() && net.rank() == root; ++rank) {
    if (rank != root) all.receive(rank, op.out[rank]);
  }
  co_await all;
}
// [/gather]

} // namespace gather

namespace scatter {

// [scatter]
inline Steps direct(Messages& net, const Operation& op) {
  const int root = op.note.root;
  Transfers all(net);
  if (net.rank() != root) all.receive(root, op.out[0]);
  for (int rank = 0; rank < net.size() && net.rank() == root; ++rank) {
    if (rank != root) all.send(rank, op.in[rank]);
  }
  co_await all;
  // The last, because the output may be the memory of an input.
  if (net.rank() == root) net.copy(op.out[0], op.in[root]);
}
// [/scatter]

} // namespace scatter

} // namespace frame

#pragma once

#include "frame/algorithms/algorithms.hpp"

namespace mine {

using namespace frame;

// [grid]
// The ranks stand in a grid. Each row adds up its tensors, of which each rank keeps one
// share. Each column adds up a share of all rows, and then each row collects the shares.
inline Steps grid(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  int columns = 1; // as many as rows, or more
  while (columns * columns < size || size % columns != 0) ++columns;
  std::vector<int> row, column; // of this rank
  for (int rank = 0; rank < size; ++rank) {
    if (rank / columns == me / columns) row.push_back(rank);
    if (rank % columns == me % columns) column.push_back(rank);
  }
  Part in_row(net, row), in_column(net, column);
  const auto inputs = Shares(op.in[0], columns).list();
  const auto outputs = Shares(op.out[0], columns).list();
  const Pieces share(&outputs[in_row.rank()], 1);

  Operation scatter = op;
  scatter.in = inputs;
  scatter.out = share;
  co_await reduce_scatter::ring(in_row, scatter);
  const Operation sum = all_reduce::on_sums(op, share, share);
  co_await all_reduce::ring(in_column, sum);
  const Operation gather = all_reduce::on_sums(op, share, outputs);
  co_await all_gather::ring(in_row, gather);
}
// [/grid]

// [added]
inline const Added kGrid({Kind::all_reduce, "grid", grid});
// [/added]

} // namespace mine

#pragma once

#include "grid.hpp"

namespace mine {

// [solution]
inline Steps grid_if_large(Messages& net, const Operation& op) {
  const bool is_small = op.note.bytes <= 64 * 1024;
  return is_small ? all_reduce::doubling(net, op) : grid(net, op);
}

inline const Added kGridIfLarge({Kind::all_reduce, "grid_if_large", grid_if_large});
// [/solution]

} // namespace mine

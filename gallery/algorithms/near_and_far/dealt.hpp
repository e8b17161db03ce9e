// Near-first halving for ranks that a launcher has dealt to the hosts in turn.
#pragma once

#include <numeric>

#include "frame/algorithms/algorithms.hpp"

namespace dealt {

using namespace frame;

// [dealt]
// The first rank of each host, then the second of each, and so on.
inline std::vector<int> in_turn(const Messages& net) {
  std::map<int, std::vector<int>> hosts;
  for (int rank = 0; rank < net.size(); ++rank) hosts[net.host(rank)].push_back(rank);
  std::vector<int> ranks;
  for (size_t place = 0; std::ssize(ranks) < net.size(); ++place) {
    for (const auto& [host, its] : hosts) {
      if (place < its.size()) ranks.push_back(its[place]);
    }
  }
  return ranks;
}

inline Steps near_first(Messages& net, const Operation& op) {
  Part all(net, in_turn(net));
  co_await all_reduce::halving_near(all, op);
}
inline const Added kNearFirst{{Kind::all_reduce, "dealt", near_first}};
// [/dealt]

// [solution]
inline Steps by_host(Messages& net, const Operation& op) {
  std::vector<int> ranks(net.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return net.host(rank); });
  Part all(net, std::move(ranks));
  co_await all_reduce::halving_near(all, op);
}
// [/solution]

inline Steps dealt_by_host(Messages& net, const Operation& op) {
  Part all(net, in_turn(net));
  co_await by_host(all, op);
}
inline const Added kByHost{{Kind::all_reduce, "dealt_by_host", dealt_by_host}};

} // namespace dealt

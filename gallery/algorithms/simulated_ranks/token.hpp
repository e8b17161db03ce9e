#pragma once

#include "frame/algorithms/algorithms.hpp"

namespace mine {

using namespace frame;

// [token]
inline Steps token(Messages& net, const Operation&) {
  const int size = net.size(), me = net.rank();
  Transfer received = net.receive(around(me - 1, size), {});
  co_await received;
  Transfer sent = net.send(around(me + 1, size), {});
  co_await sent;
}
// [/token]

inline const Added kToken({Kind::barrier, "token", token});

} // namespace mine

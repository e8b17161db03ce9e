// A barrier in two steps, and its registration.
#pragma once

#include "frame/algorithms/algorithms.hpp"

// [solution]
inline frame::Steps central(frame::Messages& net, const frame::Operation&) {
  frame::Transfers come(net), go(net);
  for (int rank = 1; rank < net.size() && net.rank() == 0; ++rank)
    come.receive(rank, {});
  if (net.rank() != 0) come.send(0, {});
  co_await come;
  for (int rank = 1; rank < net.size() && net.rank() == 0; ++rank) go.send(rank, {});
  if (net.rank() != 0) go.receive(0, {});
  co_await go;
}
inline const frame::Added kCentral{{frame::Kind::barrier, "central", central}};
// [/solution]

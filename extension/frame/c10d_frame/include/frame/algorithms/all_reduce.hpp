#pragma once

#include <bit>
#include <map>

#include "all_gather.hpp"
#include "broadcast.hpp"
#include "reduce.hpp"
#include "reduce_scatter.hpp"

namespace frame::all_reduce {

// [ring]
// Each rank talks to its neighbours only. A share goes once around the ring and is added
// up on the way, and its sum goes around once more.
inline Steps ring(Messages& net, const Operation& op) {
  const int size = net.size(), me = net.rank();
  const int next = around(me + 1, size), previous = around(me - 1, size);
  const Shares share(op.out[0], size);
  const Memory memory = net.memory(share.size());
  begin_reduction(op, op.out[0], op.in[0]);
  for (int step = 0; step < size - 1; ++step) {
    const Bytes mine = share[me - step - 1], theirs = memory.first(mine.size());
    SendReceive both(net, next, share[me - step], previous, theirs);
    co_await both;
    combine(op, mine, mine, theirs);
  }
  for (int step = 0; step < size - 1; ++step) {
    SendReceive both(net, next, share[me + 1 - step], previous, share[me - step]);
    co_await both;
  }
}
// [/ring]

// [folded]
// Runs steps that need a power of two of ranks on as many as there are. Each of the others
// gives its input to a neighbour before, and gets the result from it.
using Core = Steps(Messages&, const Operation&);

inline Steps folded(Messages& net, const Operation& op, Core* core) {
  const int size = static_cast<int>(std::bit_floor(static_cast<unsigned>(net.size())));
  const int me = net.rank(), extra = net.size() - size;
  const Bytes data = op.out[0];
  begin_reduction(op, data, op.in[0]);
  if (extra == 0) {
    co_await core(net, op);
    co_return;
  }
  const bool is_paired = me < 2 * extra;
  if (is_paired && me % 2 == 1) {
    Transfer sent = net.send(me - 1, data);
    co_await sent;
    Transfer received = net.receive(me - 1, data);
    co_await received;
    co_return;
  }
  if (is_paired) {
    const Memory theirs = net.memory(data.size());
    Transfer received = net.receive(me + 1, theirs);
    co_await received;
    combine(op, data, data, theirs);
  }
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) ranks.push_back(i < extra ? 2 * i : i + extra);
  Part some(net, std::move(ranks));
  co_await core(some, op);
  if (is_paired) {
    Transfer sent = net.send(me + 1, data);
    co_await sent;
  }
}
// [/folded]

// [doubling]
// After each step, a rank has the sum of twice as many ranks. All add up in the order of
// the ranks, so that all have the same bits.
inline Steps doubling_core(Messages& net, const Operation& op) {
  const Bytes sum = op.out[0];
  const Memory theirs = net.memory(sum.size());
  for (int distance = 1; distance < net.size(); distance *= 2) {
    const int partner = net.rank() ^ distance;
    SendReceive both(net, partner, sum, partner, theirs);
    co_await both;
    if (partner < net.rank()) combine(op, sum, theirs, sum);
    if (partner > net.rank()) combine(op, sum, sum, theirs);
  }
}

inline Steps doubling(Messages& net, const Operation& op) {
  return folded(net, op, doubling_core);
}
// [/doubling]

// [halving]
// In each step, two ranks share what both have, and each adds up its half. At the end,
// each has the sum of one share; then the same steps back bring all shares together.
inline Steps halving_core(Messages& net, const Operation& op, bool near_first) {
  const int size = net.size(), me = net.rank();
  const Memory memory = net.memory(Shares(op.out[0], 2).size());
  Bytes mine = op.out[0];
  std::vector<Bytes> given;
  const auto partner = [&](int step) {
    return me ^ (near_first ? 1 << step : size >> (step + 1));
  };
  const int steps = std::countr_zero(static_cast<unsigned>(size));
  for (int step = 0; step < steps; ++step) {
    const Shares half(mine, 2);
    const bool is_upper = partner(step) < me;
    given.push_back(half[is_upper ? 0 : 1]);
    mine = half[is_upper ? 1 : 0];
    const Bytes theirs = memory.first(mine.size());
    SendReceive both(net, partner(step), given[step], partner(step), theirs);
    co_await both;
    combine(op, mine, mine, theirs);
  }
  for (int step = steps - 1; step >= 0; --step) {
    SendReceive both(net, partner(step), mine, partner(step), given[step]);
    co_await both;
    mine = {
        std::min(mine.data(), given[step].data()), mine.size() + given[step].size()};
  }
}

// The largest halves go to the rank that is farthest away, often on another host,
inline Steps halving(Messages& net, const Operation& op) {
  return folded(net, op, [](Messages& some, const Operation& same) {
    return halving_core(some, same, /*near_first=*/false);
  });
}
// or to the nearest one.
inline Steps halving_near(Messages& net, const Operation& op) {
  return folded(net, op, [](Messages& some, const Operation& same) {
    return halving_core(some, same, /*near_first=*/true);
  });
}
// [/halving]

// [tree]
// Chunk after chunk goes up a tree to rank 0 and is added up on the way. Its sum comes
// down again, while other chunks still go up.
struct Tree {
  explicit Tree(const Messages& net) : parent((net.rank() - 1) / 2) {
    for (int child = 2 * net.rank() + 1; child <= 2 * net.rank() + 2; ++child) {
      if (child < net.size()) children.push_back(child);
    }
  }
  int parent; // of any rank but 0
  std::vector<int> children;
};

inline Steps up(Messages& net, const Operation& op, size_t& passed) {
  const Tree tree(net);
  const Bytes data = op.out[0];
  const size_t size = chunk_of(data.size());
  const Memory memory = net.memory(2 * size);
  for (; passed < parts(data.size(), size); ++passed) {
    const Bytes sum = part(data, passed, size);
    Transfers received(net);
    for (size_t i = 0; i < tree.children.size(); ++i)
      received.receive(tree.children[i], memory.block(i, size).first(sum.size()));
    co_await received;
    for (size_t i = 0; i < tree.children.size(); ++i)
      combine(op, sum, sum, memory.block(i, size).first(sum.size()));
    if (net.rank() == 0) continue;
    Transfer sent = net.send(tree.parent, sum);
    co_await sent;
  }
}

inline Steps down(Messages& net, const Operation& op, const size_t& passed) {
  const Tree tree(net);
  const Bytes data = op.out[0];
  const size_t size = chunk_of(data.size());
  Transfers sent(net);
  for (size_t i = 0; i < parts(data.size(), size); ++i) {
    const Bytes sum = part(data, i, size);
    Until has_passed([&] { return passed > i; });
    co_await has_passed;
    if (net.rank() != 0) {
      Transfer received = net.receive(tree.parent, sum);
      co_await received;
    }
    for (const int child : tree.children) sent.send(child, sum);
  }
  co_await sent;
}

inline Steps tree(Messages& net, const Operation& op) {
  begin_reduction(op, op.out[0], op.in[0]);
  size_t passed = 0; // chunks that this rank has sent up
  Together both(up(net, op, passed), down(net, op, passed));
  co_await both;
}
// [/tree]

// [direct]
// All at once: each rank adds up its share of all ranks, in their order, and so rounds
// once. Then it sends the sum to all.
inline Steps direct(Messages& net, const Operation& op) {
  const int me = net.rank();
  const auto inputs = Shares(op.in[0], net.size()).list();
  const auto outputs = Shares(op.out[0], net.size()).list();
  Operation sums = op;
  sums.in = inputs;
  sums.out = {&outputs[me], 1};
  co_await reduce_scatter::direct(net, sums);
  Transfers all(net);
  for (int rank = 0; rank < net.size(); ++rank) {
    if (rank == me) continue;
    all.send(rank, outputs[me]);
    all.receive(rank, outputs[rank]);
  }
  co_await all;
}
// [/direct]

// An operation within another one, on sums of inputs, which AVG has divided.
inline Operation on_sums(const Operation& op, Pieces in, Pieces out) {
  Operation inner = op;
  inner.reduce = op.combine;
  inner.note.root = 0;
  inner.in = in;
  inner.out = out;
  return inner;
}

// [hosts]
// The ranks of this host, and those that have the same place on the other hosts.
struct Hosts {
  explicit Hosts(const Messages& net) {
    std::map<int, std::vector<int>> hosts;
    for (int rank = 0; rank < net.size(); ++rank) hosts[net.host(rank)].push_back(rank);
    mine = hosts[net.host(net.rank())];
    const size_t place = std::ranges::find(mine, net.rank()) - mine.begin();
    for (const auto& [host, ranks] : hosts) {
      leaders.push_back(ranks[0]);
      if (place < ranks.size()) peers.push_back(ranks[place]);
      are_even = are_even && ranks.size() == mine.size();
    }
  }
  std::vector<int> mine, peers, leaders;
  bool are_even = true; // equally many ranks on each
};
// [/hosts]

// [two-level]
// The first rank of each host has the sum of its host. These ranks add up their sums, and
// each gives the result to its host.
inline Steps two_level(Messages& net, const Operation& op) {
  const Hosts hosts(net);
  Part near(net, hosts.mine), leaders(net, hosts.leaders);
  const bool leads = near.rank() == 0;
  Operation inside = op, outside = on_sums(op, op.out, op.out);
  inside.note.root = 0;
  if (!leads) inside.out = {};
  co_await reduce::binomial(near, inside);
  if (leads) co_await doubling(leaders, outside);
  (leads ? outside.out : outside.in) = {};
  co_await broadcast::binomial(near, outside);
}
// [/two-level]

// [two-level-shares]
// Each rank of a host has the sum of its share of its host. The ranks with the same share
// add up their sums, and then each host brings its shares together.
inline Steps two_level_shares(Messages& net, const Operation& op) {
  const Hosts hosts(net);
  if (!hosts.are_even) {
    co_await two_level(net, op);
    co_return;
  }
  Part near(net, hosts.mine), peers(net, hosts.peers);
  const auto inputs = Shares(op.in[0], near.size()).list();
  const auto outputs = Shares(op.out[0], near.size()).list();
  const Pieces mine(&outputs[near.rank()], 1);
  Operation sums = op;
  sums.in = inputs;
  sums.out = mine;
  co_await reduce_scatter::pairwise(near, sums);
  const Operation across = on_sums(op, mine, mine),
                  together = on_sums(op, mine, outputs);
  co_await halving_near(peers, across);
  co_await all_gather::ring(near, together);
}
// [/two-level-shares]

} // namespace frame::all_reduce

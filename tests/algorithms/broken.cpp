// Algorithms that are wrong, each in its own way. Prints what the check says of one.

#include <iostream>

#include "simulator/check.hpp"

using namespace frame;

namespace {

int next(const Messages& net) { return around(net.rank() + 1, net.size()); }
int previous(const Messages& net) { return around(net.rank() - 1, net.size()); }

// Each rank waits for a message before it sends one.
Steps receives_first(Messages& net, const Operation& op) {
  Transfer received = net.receive(previous(net), op.out[0]);
  co_await received;
  Transfer sent = net.send(next(net), op.out[0]);
  co_await sent;
}

// Each rank waits until its message has been received before it receives one.
Steps sends_first(Messages& net, const Operation& op) {
  Transfer sent = net.send(next(net), op.out[0]);
  co_await sent;
  Transfer received = net.receive(previous(net), op.out[0]);
  co_await received;
}

Steps does_not_receive(Messages& net, const Operation&) {
  if (net.rank() != 0) co_return;
  Transfer sent = net.send(1, {});
  co_await sent;
}

Steps talks_to_itself(Messages& net, const Operation& op) {
  Transfer sent = net.send(net.rank(), op.out[0]);
  co_await sent;
}

// As if the number of ranks were even.
Steps talks_to_nobody(Messages& net, const Operation& op) {
  Transfer sent = net.send(net.rank() ^ 1, op.out[0]);
  co_await sent;
}

Steps differs_in_sizes(Messages& net, const Operation& op) {
  const size_t size = net.rank() == 1 ? 8 : 16;
  SendReceive both(
      net, next(net), op.out[0].first(size), previous(net), op.out[0].last(16));
  co_await both;
}

Steps does_not_wait(Messages& net, const Operation& op) {
  const Memory memory = net.memory(op.out[0].size());
  SendReceive both(net, next(net), op.out[0], previous(net), memory);
  co_return;
}

// Adds up before the message has come.
Steps adds_early(Messages& net, const Operation& op) {
  begin_reduction(op, op.out[0], op.in[0]);
  const Memory theirs = net.memory(op.out[0].size());
  std::ranges::fill(Bytes(theirs), std::byte(1));
  const int partner = net.rank() ^ 1;
  SendReceive both(net, partner, op.out[0], partner, theirs);
  combine(op, op.out[0], op.out[0], theirs);
  co_await both;
}

// AVG would divide twice.
Steps divides_twice(Messages& net, const Operation& op) {
  begin_reduction(op, op.out[0], op.in[0]);
  co_await all_reduce::ring(net, op);
}

// Ranks add up in different orders.
Steps in_any_order(Messages& net, const Operation& op) {
  begin_reduction(op, op.out[0], op.in[0]);
  const Memory theirs = net.memory(op.out[0].size());
  const int partner = net.rank() ^ 1;
  SendReceive both(net, partner, op.out[0], partner, theirs);
  co_await both;
  combine(op, op.out[0], op.out[0], theirs);
}

// Two steps side by side receive from one rank, on one channel.
Steps mixes_channels(Messages& net, const Operation& op) {
  std::vector<int> all(net.size());
  for (int rank = 0; rank < net.size(); ++rank) all[rank] = rank;
  Part second(net, std::move(all), /*channel=*/0);
  Operation one = op, other = op;
  one.in = one.out = op.out;
  other.in = other.out = op.out;
  Together both(all_reduce::doubling(net, one), all_reduce::tree(second, other));
  co_await both;
}

const Algorithm kBroken[] = {
    {Kind::all_reduce, "receives first", receives_first},
    {Kind::all_reduce, "sends first", sends_first},
    {Kind::barrier, "does not receive", does_not_receive},
    {Kind::all_reduce, "talks to itself", talks_to_itself},
    {Kind::all_reduce, "talks to nobody", talks_to_nobody},
    {Kind::all_reduce, "differs in sizes", differs_in_sizes},
    {Kind::all_reduce, "does not wait", does_not_wait},
    {Kind::all_reduce, "adds early", adds_early},
    {Kind::all_reduce, "divides twice", divides_twice},
    {Kind::all_reduce, "in any order", in_any_order},
    {Kind::all_reduce, "mixes channels", mixes_channels},
};

} // namespace

// broken NAME RANKS BYTES ORDERED: one of these, or "none" for all that are right
int main(int, char** words) {
  const std::string name = words[1];
  const auto run = [&](const Algorithm& algorithm) {
    simulator::Task task{algorithm.kind, std::stoul(words[3])};
    task.ordered = words[4] == std::string("ordered");
    simulator::simulate(algorithm, {}, std::stoi(words[2]), task, true);
  };
  try {
    for (const Algorithm& algorithm : kBroken) {
      if (name == algorithm.name) run(algorithm);
    }
    for (const Algorithm& algorithm : kAlgorithms) {
      if (name == "none") run(algorithm);
    }
    std::cout << "all right\n";
  } catch (const std::exception& error) {
    std::cout << error.what() << "\n";
  }
}

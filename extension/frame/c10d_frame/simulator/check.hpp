#pragma once

#include "frame/algorithms/algorithms.hpp"
#include "job.hpp"

namespace simulator {

using frame::Algorithm;

struct Outcome {
  Time time = 0;
  Counts counts;
  bool is_chosen = false; // a transport would run this algorithm
};

// [simulate]
// Runs an algorithm on all ranks, with bytes or without. Throws if it does not end, or if
// a result is wrong.
inline Outcome simulate(const Algorithm& algorithm, const Machine& machine, int ranks,
    const Task& task, bool with_bytes) {
  Simulation simulation(machine, ranks, with_bytes);
  std::deque<Job> jobs; // they stay where they are
  for (int rank = 0; rank < ranks; ++rank)
    jobs.emplace_back(simulation.rank(rank), task);
  try {
    const Time time = simulation.run(
        [&](Rank& rank) { return algorithm.run(rank, jobs[rank.rank()].operation()); });
    for (const Job& job : jobs) {
      if (with_bytes) job.check(jobs[0]);
    }
    const auto& chosen =
        frame::Choice().of(jobs[0].operation(), simulation.rank(0)).name;
    return {time, simulation.counts, std::string(chosen) == algorithm.name};
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string(frame::name(task.kind)) + " " +
        algorithm.name + " of " + to_string(task.bytes) + " bytes with " +
        to_string(ranks) + " ranks, " + to_string(machine.ranks_per_host) +
        " on a host: " + error.what());
  }
}
// [/simulate]

// [check]
// Runs an algorithm with real bytes: all numbers of ranks up to 17, and 33, some sizes,
// 1 to 4 ranks on a host. Returns the number of runs.
inline int check(const Algorithm& algorithm) {
  int runs = 0;
  for (int ranks = 1; ranks <= 33; ranks += ranks == 17 ? 16 : 1) {
    for (const size_t bytes : {0, 8, 100, 2000, 20000}) {
      for (int per_host = 1; per_host <= 4; ++per_host, ++runs) {
        Machine machine;
        machine.ranks_per_host = per_host;
        Task task{algorithm.kind, bytes};
        task.root = runs % ranks;
        task.in_place = per_host % 2 == 0;
        task.even = algorithm.kind != Kind::all_to_all || algorithm.needs_even;
        simulate(algorithm, machine, ranks, task, true);
        if (algorithm.kind != Kind::all_reduce) continue;
        task.ordered = true;
        simulate(algorithm, machine, ranks, task, true);
        ++runs;
      }
    }
  }
  return runs;
}
// [/check]

} // namespace simulator

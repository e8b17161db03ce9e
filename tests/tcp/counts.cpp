// Runs every algorithm over sockets, and compares what is sent with what the simulator counts.
// Prints the cases that differ, and how many there were.

#include <iostream>
#include <thread>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simulator/check.hpp"
#include "tcp_collectives/src/sockets.hpp"
#include "values.hpp"

using namespace tcp_collectives;
using frame::Messages, frame::Steps;
using simulator::Counts, simulator::Job, simulator::Machine, simulator::Task;

namespace {

std::atomic<int64_t> kernel_bytes = 0; // that the kernel has taken from all ranks

// The sockets of a rank. It counts what an algorithm sends, and says on which hosts ranks are.
class Counted final : public Messages {
 public:
  Counted(Sockets& net, const Machine& machine) : net_(net), machine_(machine) {}

  int rank() const override { return net_.rank(); }
  int size() const override { return net_.size(); }
  int host(int rank) const override { return machine_.host(rank); }
  void begin(Transfer& transfer) override {
    if (transfer.way == Way::send) {
      const auto size = static_cast<int64_t>(transfer.bytes.size());
      const bool between = host(rank()) != host(transfer.other);
      ++counts.messages;
      counts.bytes += size;
      counts.messages_between_hosts += between;
      counts.bytes_between_hosts += between ? size : 0;
    }
    net_.begin(transfer);
  }
  void forget(Transfer& transfer) override { net_.forget(transfer); }

  Counts counts;

 private:
  Sockets& net_;
  const Machine& machine_;
};

void run(Sockets& net, Steps steps) {
  while (!steps.done()) {
    net.progress();
    while (steps.advance()) continue;
    pollfd entry{net.file(), POLLIN, 0};
    if (!steps.done()) ::poll(&entry, 1, 1000);
  }
}

// Calls a function for each rank, in a thread of its own.
void in_threads(int ranks, const std::function<void(int)>& function) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(function, rank);
  for (auto& thread : threads) thread.join();
}

std::string text(const Counts& counts, int64_t in_kernel) {
  std::ostringstream text;
  text << counts.messages << " messages of " << counts.bytes << " bytes, "
       << counts.messages_between_hosts << " of " << counts.bytes_between_hosts
       << " between hosts, and " << in_kernel << " bytes in the kernel";
  return text.str();
}

// The sockets of all ranks, which are in this process.
class Group {
 public:
  explicit Group(int ranks) : sockets_(ranks) {
    const auto keys = std::make_shared<Values>();
    in_threads(ranks, [&](int rank) {
      const auto deadline = Clock::now() + std::chrono::minutes(1);
      sockets_[rank].emplace(Place{rank, ranks, {"tcp", "0", {}}, keys, deadline,
                                 std::vector<frame::Member>(ranks)},
          "lo");
    });
  }

  // Compares an algorithm with its simulation, and prints how they differ.
  void compare(
      const frame::Algorithm& algorithm, const Machine& machine, const Task& task) {
    const int ranks = static_cast<int>(sockets_.size());
    const auto simulated =
        simulator::simulate(algorithm, machine, ranks, task, false).counts;
    const auto of_sizes = simulated.messages * static_cast<int64_t>(sizeof(uint64_t));
    const auto expected = text(simulated, simulated.bytes + of_sizes);
    kernel_bytes = 0;
    const Counts counts = run_really(algorithm, machine, task);
    if (const auto found = text(counts, kernel_bytes); found != expected) {
      std::cout << name(algorithm.kind) << " " << algorithm.name << ", " << ranks
                << " ranks, " << task.bytes << " bytes: " << found << "; simulated "
                << expected << "\n";
    }
  }

 private:
  // Returns what all ranks send, and checks their results.
  Counts run_really(
      const frame::Algorithm& algorithm, const Machine& machine, const Task& task) {
    const int ranks = static_cast<int>(sockets_.size());
    simulator::Simulation memory(machine, ranks, /*with_bytes=*/true);
    std::deque<Job> jobs;
    std::deque<Counted> nets;
    for (int rank = 0; rank < ranks; ++rank) {
      jobs.emplace_back(memory.rank(rank), task);
      nets.emplace_back(*sockets_[rank], machine);
    }
    in_threads(ranks, [&](int rank) {
      run(*sockets_[rank], algorithm.run(nets[rank], jobs[rank].operation()));
    });
    Counts all;
    for (int rank = 0; rank < ranks; ++rank) {
      jobs[rank].check(jobs[0]);
      const Counts& of_rank = nets[rank].counts;
      all.messages += of_rank.messages;
      all.bytes += of_rank.bytes;
      all.messages_between_hosts += of_rank.messages_between_hosts;
      all.bytes_between_hosts += of_rank.bytes_between_hosts;
    }
    return all;
  }

  std::vector<std::optional<Sockets>> sockets_;
};

} // namespace

// In the place of that of the C library.
extern "C" ssize_t sendmsg(int file, const msghdr* message, int flags) {
  const auto sent = syscall(SYS_sendmsg, file, message, flags);
  if (sent > 0) kernel_bytes += sent;
  return sent;
}

int main() {
  int cases = 0;
  for (const int ranks : {3, 4}) {
    Group group(ranks);
    for (const auto& algorithm : frame::algorithms()) {
      for (const size_t bytes : {1000, 1 << 20}) {
        for (int per_host = 1; per_host <= 2; ++per_host, ++cases) {
          Machine machine;
          machine.ranks_per_host = per_host;
          group.compare(algorithm, machine, Task{algorithm.kind, bytes});
        }
      }
    }
  }
  std::cout << cases << " cases\n";
}

#pragma once

#include <climits>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "memory.hpp"

namespace shm_collectives {

using std::to_string;

// [home]
// What processes must have in common in order to share memory: the running
// kernel, the user, and the processes that they can see.
inline std::string home() {
  char host[HOST_NAME_MAX + 1] = "?";
  gethostname(host, sizeof(host) - 1);
  std::string boot;
  if (!(std::ifstream("/proc/sys/kernel/random/boot_id") >> boot)) boot = std::strerror(errno);
  char space[64] = "?";
  const auto length = readlink("/proc/self/ns/pid", space, sizeof(space));
  return "user " + to_string(geteuid()) + ", host " + host + ", boot " + boot + ", " +
      std::string(space, length > 0 ? length : 1);
}
// [/home]

// Where the ranks of a new group meet.
//
// [keys-of-a-meeting]
// The store may still hold keys of an earlier group of the same name. A key
// counts only if it contains a number that was drawn for this meeting:
//
//   member/<rank>: the rank's own number
//
//   answer/<number of a rank>: the number of rank 0, and where the memory is
//
//   mapped/<number of 0>/<rank>: "yes", or why the rank cannot map the memory
//
//   begin/<number of 0>: "yes", or why there is no group
// [/keys-of-a-meeting]
class Meeting {
 public:
  Meeting(c10d::Store& store, int rank, const Layout& layout, milliseconds timeout,
      const std::string& group, std::vector<uint64_t> global_ranks) : store_(store), rank_(rank),
      layout_(layout), timeout_(timeout), global_ranks_(std::move(global_ranks)),
      what_("Backend shm: " + who(rank, global_ranks_) + " of " + to_string(layout.ranks) +
      " cannot join group \"" + group + "\": ") {}

  // Returns the memory that the ranks share when all of them have mapped it;
  // throws, on every rank that has come, if they do not all come in time or
  // cannot share memory.
  Memory meet() {
    try {
      return rank_ == 0 ? host() : join();
    } catch (const c10::DistNetworkError& error) {
      refuse_if(std::string("the store is lost: ") + error.what_without_backtrace());
      throw;
    }
  }

 private:
  // [host]
  Memory host() {
    number_ = random_number();
    std::string problem = try_memory([&] { return Memory::create(layout_, stoull(number_)); });
    if (memory_) memory_->enter(0);
    set(mapped(0), kYes);
    const std::string answer = number_ + " " + to_string(getpid()) + " " +
        to_string(memory_ ? memory_->descriptor() : -1) + " " + home();
    std::vector<std::string> answered(layout_.ranks);
    await([&] {
      for (const int rank : missing()) {
        // An old number is answered, too; nobody reads that.
        const std::string number = get(member(rank));
        if (std::exchange(answered[rank], number) != number) set("answer/" + number, answer);
      }
      return missing().empty() || !get(begin()).empty(); // or a rank has given up
    });
    problem = joined(problem.empty() ? "" : who(0, global_ranks_) + " " + problem, late(missing()));
    for (int rank = 1; rank < ranks(); ++rank) {
      const std::string text = get(mapped(rank));
      if (text != kYes) problem = joined(problem, text);
      forget(member(rank));
    }
    agree(problem);
    memory_->close_descriptor();
    return std::move(*memory_);
  }
  // [/host]

  Memory join() {
    // [announce]
    const std::string mine = random_number();
    set(member(rank_), mine);
    if (!await([&] { return !get("answer/" + mine).empty(); })) refuse_if(late({0}));
    std::istringstream answer(get("answer/" + mine));
    forget("answer/" + mine);
    pid_t process = 0;
    int descriptor = -1;
    std::string host;
    std::getline(answer >> number_ >> process >> descriptor >> std::ws, host);
    // [/announce]

    // [refuse]
    const std::string first = who(0, global_ranks_);
    std::string problem;
    if (home() != host) {
      problem = "it is (" + home() + "), " + first + " is (" + host + ")";
    } else if (descriptor >= 0) { // or rank 0 will say what it lacks
      problem = try_memory(
          [&] { return Memory::open(process, descriptor, layout_, stoull(number_)); });
      if (memory_) memory_->enter(rank_);
    }
    if (!problem.empty()) {
      problem = who(rank_, global_ranks_) + " cannot share memory with " + first + ": " + problem +
          "; ranks of different hosts, containers or users can use gloo";
    }
    set(mapped(rank_), problem.empty() ? kYes : problem);
    // [/refuse]
    const auto host_process = Process::find(process);
    const bool in_time =
        await([&] { return !get(begin()).empty() || (memory_ && host_process->ended()); });
    std::string reason = first + " has died (process " + to_string(process) + ")";
    if (!in_time) {
      const auto absent = missing();
      reason = late(absent.empty() ? std::vector{0} : absent);
    }
    agree(reason);
    return std::move(*memory_);
  }

  static constexpr const char* kYes = "yes";

  int ranks() const { return static_cast<int>(layout_.ranks); }
  std::string member(int rank) const { return "member/" + to_string(rank); }
  std::string begin() const { return "begin/" + number_; }
  std::string mapped(int rank) const { return "mapped/" + number_ + "/" + to_string(rank); }

  static std::string random_number() {
    std::random_device random;
    return to_string(uint64_t{random()} << 32 | random());
  }

  static std::string joined(const std::string& one, const std::string& other) {
    return one + (one.empty() || other.empty() ? "" : "; ") + other;
  }

  // [agree]
  // Says whether there is a group. The first answer decides for all ranks: later
  // ones are not stored.
  void agree(const std::string& problem) {
    const std::string decided =
        store_.compareSet("shm/" + begin(), "", problem.empty() ? kYes : problem);
    refuse_if(decided == kYes ? "" : decided);
  }
  // [/agree]

  // [store]
  void set(const std::string& key, const std::string& text) { store_.set("shm/" + key, text); }
  // Nothing if there is no such key: Store::get would keep other threads, which
  // may be meeting other ranks, from using the store.
  std::string get(const std::string& key) {
    return store_.check({"shm/" + key}) ? store_.get_to_str("shm/" + key) : "";
  }
  // [/store]
  void forget(const std::string& key) {
    try {
      store_.deleteKey("shm/" + key);
    } catch (const std::exception&) { // some stores cannot delete
    }
  }

  // [await]
  // Asks again and again; false if the time is over.
  template <class Done>
  bool await(const Done& done) const {
    for (microseconds pause(100);; pause = std::min(2 * pause, microseconds(5000))) {
      if (done()) return true;
      if (Clock::now() > deadline_) return false;
      std::this_thread::sleep_for(pause);
    }
  }
  // [/await]

  // Returns what went wrong: the others are told before it is thrown.
  template <class Make>
  std::string try_memory(const Make& make) {
    try {
      memory_.emplace(make());
      return "";
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
  }

  std::vector<int> missing() {
    std::vector<int> missing;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (get(mapped(rank)).empty()) missing.push_back(rank);
    }
    return missing;
  }

  std::string late(const std::vector<int>& missing) const {
    std::string names;
    for (const int rank : missing) names += (names.empty() ? "" : ", ") + who(rank, global_ranks_);
    const auto time = to_string(timeout_.count()) + " ms";
    return names.empty() ? "" : names + " did not come within " + time;
  }

  void refuse_if(const std::string& problem) const {
    if (!problem.empty()) C10_THROW_ERROR(DistStoreError, what_ + problem);
  }

  c10d::Store& store_;
  const int rank_;
  const Layout layout_;
  const milliseconds timeout_;
  const Clock::time_point deadline_ = in(timeout_);
  const std::vector<uint64_t> global_ranks_;
  const std::string what_;
  std::string number_; // that of rank 0
  std::optional<Memory> memory_;
};

} // namespace shm_collectives

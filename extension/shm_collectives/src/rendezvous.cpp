#include "rendezvous.hpp"

#include <algorithm>
#include <climits>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <c10/util/Exception.h>

namespace shm_collectives {

namespace {

constexpr const char* kYes = "yes";

// [home]
// What processes must have in common in order to share memory: the running
// kernel, the user, and the processes that they can see.
std::string home() {
  char host[HOST_NAME_MAX + 1] = "?";
  gethostname(host, sizeof(host) - 1);
  std::string boot = "?";
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64] = "?";
  const auto length = readlink("/proc/self/ns/pid", space, sizeof(space));
  return "user " + std::to_string(geteuid()) + ", host " + host + ", boot " +
      boot + ", " + std::string(space, std::max<ssize_t>(length, 1));
}
// [/home]

std::string random_number() {
  std::random_device random;
  return std::to_string(uint64_t{random()} << 32 | random());
}

// [meeting]
// The store may still hold keys of an earlier group of the same name. A key
// counts only if it contains a number that was drawn for this meeting:
//
//   member/<rank>              the rank's own number
//   answer/<number of a rank>  rank 0: its number, and where the memory is
//   mapped/<number of 0>/<rank>  "yes", or why the rank cannot map the memory
//   begin/<number of 0>        rank 0: "yes", or why there is no group
class Meeting {
 public:
  Meeting(c10d::Store& store, int rank, const Layout& layout, milliseconds timeout,
      const std::string& group) : store_(store), rank_(rank), layout_(layout), timeout_(timeout),
      deadline_(Clock::now() + timeout),
      what_("Backend shm: rank " + std::to_string(rank) + " of " +
      std::to_string(layout.ranks) + " cannot join group \"" + group + "\": ") {}

  Memory host() {
    number_ = random_number();
    Memory memory;
    std::string problem; // the others are told before it is thrown
    try {
      memory = Memory::create(layout_, std::stoull(number_));
      memory.member(0).process = getpid();
    } catch (const c10::Error& error) {
      problem = std::string("rank 0 ") + error.what_without_backtrace() + "; ";
    }
    store_.set(mapped(0), kYes);
    const std::string answer = number_ + " " + std::to_string(getpid()) + " " +
        std::to_string(memory.descriptor()) + " " + home();

    std::vector<std::string> answered(layout_.ranks);
    await([&] {
      const auto missing = those_missing();
      for (const int rank : missing) {
        const std::string member = "shm/member/" + std::to_string(rank);
        if (store_.check({member})) {
          // An old number is answered, too; nobody reads that.
          const std::string number = store_.get_to_str(member);
          if (std::exchange(answered[rank], number) != number) {
            store_.set("shm/answer/" + number, answer);
          }
        }
      }
      return missing.empty();
    });

    problem += late(those_missing());
    for (int rank = 1; rank < static_cast<int>(layout_.ranks); ++rank) {
      if (store_.check({mapped(rank)})) {
        const std::string text = store_.get_to_str(mapped(rank));
        problem += text == kYes ? "" : text + "; ";
      }
      forget("shm/member/" + std::to_string(rank));
    }
    store_.set("shm/begin/" + number_, problem.empty() ? kYes : problem);
    refuse_if(problem);
    memory.close_descriptor();
    return memory;
  }

  Memory join() {
    const std::string mine = random_number();
    store_.set("shm/member/" + std::to_string(rank_), mine);
    const std::string answer_key = "shm/answer/" + mine;
    if (!await([&] { return store_.check({answer_key}); })) refuse_if(late({0}));
    std::istringstream answer(store_.get_to_str(answer_key));
    forget(answer_key);
    pid_t process = 0;
    int descriptor = -1;
    std::string host_home;
    answer >> number_ >> process >> descriptor >> std::ws;
    std::getline(answer, host_home);

    Memory memory;
    std::string problem;
    if (descriptor < 0) {
      // Rank 0 has no memory to share, and will say so.
    } else if (home() != host_home) {
      problem = "it is (" + home() + "), rank 0 is (" + host_home + ")";
    } else {
      try {
        memory = Memory::open(process, descriptor, layout_, std::stoull(number_));
        memory.member(rank_).process = getpid();
      } catch (const c10::Error& error) {
        problem = error.what_without_backtrace();
      }
    }
    if (!problem.empty()) {
      problem = "rank " + std::to_string(rank_) + " cannot share memory with rank 0: " + problem +
          "; ranks of different hosts, containers or users can use gloo";
    }
    store_.set(mapped(rank_), problem.empty() ? kYes : problem);

    const std::string begin = "shm/begin/" + number_;
    if (!await([&] { return store_.check({begin}); })) refuse_if(late(those_missing()));
    const std::string verdict = store_.get_to_str(begin);
    refuse_if(verdict == kYes ? "" : verdict);
    return memory;
  }

 private:
  std::string mapped(int rank) const {
    return "shm/mapped/" + number_ + "/" + std::to_string(rank);
  }

  std::vector<int> those_missing() {
    std::vector<int> missing;
    for (int rank = 0; rank < static_cast<int>(layout_.ranks); ++rank) {
      if (!store_.check({mapped(rank)})) missing.push_back(rank);
    }
    return missing;
  }

  // Asks again and again: Store::wait would keep other threads, which may be
  // meeting other ranks, from using the store.
  bool await(const std::function<bool()>& done) const {
    for (microseconds pause(100);; pause = std::min(2 * pause, kLongest)) {
      if (done()) return true;
      if (Clock::now() > deadline_) return false;
      std::this_thread::sleep_for(pause);
    }
  }

  std::string late(const std::vector<int>& missing) const {
    std::string names;
    for (const int rank : missing) {
      names += (names.empty() ? "rank " : ", rank ") + std::to_string(rank);
    }
    return names.empty() ? "" : names + " did not come within " +
        std::to_string(timeout_.count()) + " ms; ";
  }

  void refuse_if(const std::string& problem) const {
    if (!problem.empty()) C10_THROW_ERROR(DistStoreError, what_ + problem);
  }

  // Some stores cannot delete.
  void forget(const std::string& key) {
    try {
      store_.deleteKey(key);
    } catch (const std::exception&) {
    }
  }

  static constexpr microseconds kLongest{5000};

  c10d::Store& store_;
  const int rank_;
  const Layout layout_;
  const milliseconds timeout_;
  const Clock::time_point deadline_;
  const std::string what_;
  std::string number_; // that of rank 0
};
// [/meeting]

} // namespace

Memory meet(c10d::Store& store, int rank, const Layout& layout, milliseconds timeout,
    const std::string& group) {
  Meeting meeting(store, rank, layout, timeout, group);
  return rank == 0 ? meeting.host() : meeting.join();
}

} // namespace shm_collectives

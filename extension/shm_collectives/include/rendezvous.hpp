#pragma once

#include <charconv>
#include <climits>
#include <fstream>
#include <optional>
#include <random>
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
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!(file >> boot)) boot = std::strerror(errno);
  char space[64] = "?";
  const auto length = readlink("/proc/self/ns/pid", space, sizeof(space));
  return "user " + to_string(geteuid()) + ", host " + host + ", boot " + boot + ", " +
      std::string(space, length > 0 ? length : 1);
}
// [/home]

// Text of the store, which may come from a stranger: one line of at most 200
// printable characters.
inline std::string quoted(const std::string& text) {
  std::string line = text.substr(0, std::min<size_t>(text.find('\n'), 200));
  for (char& c : line) {
    if (c < ' ' || c > '~') c = '?';
  }
  return '"' + line + '"';
}

// [address]
// The address of a rank: a number that it has drawn for this meeting, its process, the
// descriptor of the memory (-1 if it has none), and its home.
struct Address {
  uint64_t number = 0;
  pid_t process = 0;
  int descriptor = -1;
  std::string home;

  std::string text() const {
    return to_string(number) + " " + to_string(process) + " " + to_string(descriptor) +
        " " + home;
  }
  // Nothing if the text is something else.
  static std::optional<Address> parse(const std::string& text) {
    Address it;
    const char *at = text.data(), *end = at + text.size();
    const auto read = [&](auto& value) {
      const auto [next, error] = std::from_chars(at, end, value);
      at = next == end ? end : next + 1;
      return error == std::errc() && next != end && *next == ' ';
    };
    const bool good = read(it.number) && read(it.process) && read(it.descriptor);
    it.home.assign(at, end);
    return good && it.process > 0 ? std::optional(it) : std::nullopt;
  }
};
// [/address]

// The rendezvous of the ranks of a new group.
//
// [keys-of-a-meeting]
// The store may still hold keys of an earlier group of the same name. A key
// counts only if it contains a number that was drawn for this meeting:
//
//   member/<rank>: the address of the rank, which contains its number
//
//   answer/<number of a rank>: the address of rank 0
//
//   refused/<number of 0>/<rank>: why the rank cannot begin, if it cannot
//
// Everything else is in the memory, where no stranger can write: who is there,
// and whether the group begins.
// [/keys-of-a-meeting]
class Meeting {
 public:
  Meeting(c10d::Store& store, int rank, const Layout& layout, milliseconds timeout,
      const std::string& group, std::vector<uint64_t> global_ranks)
      : store_(store),
        rank_(rank),
        layout_(layout),
        timeout_(timeout),
        global_ranks_(std::move(global_ranks)),
        what_("Backend shm: " + who(rank, global_ranks_) + " of " +
            to_string(layout.ranks) + " cannot join group \"" + group + "\": ") {}

  // Returns the memory that the ranks share when all of them have mapped it;
  // throws, on every rank that has come, if they do not all come in time or
  // cannot share memory.
  // [meet]
  Memory meet() {
    const std::string mine = problem_of([&] { return rank_ == 0 ? host() : join(); });
    const std::string problem = agree(mine);
    if (!problem.empty()) {
      problem_of([&] { return refuse(problem); }); // the store may be lost
      C10_THROW_ERROR(DistStoreError, what_ + problem);
    }
    memory_->close_descriptor();
    return std::move(*memory_);
  }
  // [/meet]

 private:
  struct Guest { // another rank, seen from rank 0
    std::string text; // its address, once it has come
    std::shared_ptr<const Process> process; // if it is of the same home
    std::string problem; // that keeps it from beginning
  };

  // Returns why this rank cannot begin; so does join().
  // [host]
  std::string host() {
    const Address mine = create_memory();
    std::vector<Guest> guests(ranks());
    const bool in_time = await([&] {
      bool all_there = true, all_answered = true, refused = !memory_, dead = false;
      for (int rank = 1; rank < ranks(); ++rank) {
        Guest& guest = guests[rank];
        dead = attend(rank, guest, mine) || dead;
        all_there = all_there && is_there(rank);
        all_answered = all_answered && !guest.text.empty();
        refused = refused || !guest.problem.empty();
      }
      return dead || all_there || is_settled() || (refused && all_answered);
    });
    // [/host]
    std::string problem = memory_ ? "" : no_memory_;
    std::vector<int> absent;
    for (int rank = 1; rank < ranks(); ++rank) {
      problem = joined(problem, guests[rank].problem);
      if (!in_time && !is_there(rank) && guests[rank].problem.empty()) {
        absent.push_back(rank);
      }
      forget(member(rank));
    }
    return joined(problem, late(absent));
  }

  Address create_memory() {
    number_ = random_number();
    no_memory_ = problem_of([&] {
      memory_.emplace(Memory::create(layout_, number_));
      memory_->enter(0);
      return "";
    });
    if (!memory_) refuse(no_memory_ = who(0, global_ranks_) + " " + no_memory_);
    return {number_, getpid(), memory_ ? memory_->descriptor() : -1, home()};
  }

  // Learns what keeps a rank from beginning. Returns whether it has died.
  bool attend(int rank, Guest& guest, const Address& mine) {
    if (!is_there(rank)) welcome(rank, guest, mine);
    const bool dead = guest.process && guest.process->ended();
    if (dead) guest.problem = died(rank, guest.process->id());
    return dead;
  }

  // Answers a rank as soon as it has come.
  void welcome(int rank, Guest& guest, const Address& mine) {
    const std::string text = get(member(rank));
    if (text.empty()) return;
    if (text != guest.text) {
      const auto its = Address::parse(text);
      const bool near = its && its->home == mine.home;
      guest = {text, near ? Process::find(its->process) : nullptr, ""};
      if (!its) guest.problem = malformed(member(rank), text);
      if (its && !near) guest.problem = apart(rank, its->home, mine.home);
      // An old number is answered, too; no rank reads that answer.
      if (its) set(answer(its->number), mine.text());
    }
    if (guest.problem.empty()) guest.problem = said(refused(rank));
  }

  std::string join() {
    // [announce]
    const Address mine{random_number(), getpid(), -1, home()};
    set(member(rank_), mine.text());
    if (!await([&] { return !get(answer(mine.number)).empty(); })) {
      set(member(rank_), ""); // nobody shall wait for this rank
      return late({0});
    }
    const std::string text = get(answer(mine.number));
    forget(answer(mine.number));
    const auto parsed = Address::parse(text);
    if (!parsed) return malformed(answer(mine.number), text);
    const Address& host = *parsed;
    number_ = host.number;
    // [/announce]

    // [refuse]
    if (host.home != mine.home) return apart(rank_, mine.home, host.home);
    const std::string first = who(0, global_ranks_);
    const std::string problem = problem_of([&] { return open_memory(host); });
    if (!memory_) { // perhaps rank 0 has none, or has given up
      const std::string reason = said(refused(0));
      if (!reason.empty()) return reason;
      return who(rank_, global_ranks_) + " cannot share memory with " + first + ": " +
          problem;
    }
    // [/refuse]
    if (!memory_->enter(rank_)) {
      memory_.reset();
      return "another process is this rank already";
    }
    const auto host_process = Process::find(host.process);
    const bool in_time = await(
        [&] { return missing().empty() || is_settled() || host_process->ended(); });
    if (missing().empty()) return "";
    return in_time ? died(0, host.process) : late(missing());
  }

  std::string open_memory(const Address& host) {
    memory_.emplace(Memory::open(host.process, host.descriptor, layout_, number_));
    return "";
  }

  int ranks() const { return static_cast<int>(layout_.ranks); }
  std::string member(int rank) const { return "member/" + to_string(rank); }
  std::string answer(uint64_t number) const { return "answer/" + to_string(number); }
  std::string refused(int rank) const {
    return "refused/" + to_string(number_) + "/" + to_string(rank);
  }

  static uint64_t random_number() {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
  }

  static std::string joined(const std::string& one, const std::string& other) {
    return one + (one.empty() || other.empty() ? "" : "; ") + other;
  }

  // [agree]
  // Returns why there is no group, or nothing if there is one. The first decision
  // counts for all ranks. It is in the memory, so a rank that has mapped that needs
  // no store any more.
  std::string agree(const std::string& problem) const {
    if (!memory_) return problem;
    if (problem.empty()) {
      memory_->begin();
    } else {
      memory_->fail(rank_, kMeeting, problem);
    }
    // if it has failed since, an operation says so
    if (memory_->header().state >= kBegun) return "";
    if (!memory_->header().explained) return "another rank has given up";
    return memory_->header().reason;
  }
  // [/agree]

  bool is_there(int rank) const { return memory_ && memory_->entered(rank); }
  bool is_settled() const { return memory_ && memory_->header().state != kMeeting; }

  // [store]
  void set(const std::string& key, const std::string& text) {
    store_.set("shm/" + key, text);
  }
  // Nothing if there is no such key: Store::get would keep other threads of this
  // process from using the store.
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

  static std::string malformed(const std::string& key, const std::string& text) {
    return "the key " + key +
        " should contain \"<number> <process> <descriptor> <home>\", but "
        "contains " +
        quoted(text);
  }

  std::string said(const std::string& key) {
    const std::string text = get(key);
    return text.empty() ? "" : "the key " + key + " says " + quoted(text);
  }

  // Tells the ranks that have not mapped the memory.
  std::string refuse(const std::string& problem) {
    if (number_ != 0 && (rank_ == 0 || !memory_)) set(refused(rank_), problem);
    return "";
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

  // Returns the problem that a function returns or throws: the others are told
  // before it is thrown again.
  template <class Function>
  static std::string problem_of(const Function& function) {
    try {
      return function();
    } catch (const c10::DistNetworkError& error) {
      return std::string("the store is lost: ") + error.what_without_backtrace();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
  }

  std::string apart(int rank, const std::string& its, const std::string& of_0) const {
    const std::string first = who(0, global_ranks_);
    return who(rank, global_ranks_) + " cannot share memory with " + first +
        ": it is " + quoted(its) + ", " + first + " is " + quoted(of_0) +
        "; ranks of different hosts, containers or users can use gloo";
  }

  std::vector<int> missing() const {
    std::vector<int> missing;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!is_there(rank)) missing.push_back(rank);
    }
    return missing;
  }

  std::string died(int rank, pid_t process) const {
    return who(rank, global_ranks_) + " has died (process " + to_string(process) + ")";
  }

  std::string late(const std::vector<int>& missing) const {
    std::string names;
    for (const int rank : missing) {
      names += (names.empty() ? "" : ", ") + who(rank, global_ranks_);
    }
    const auto time = to_string(timeout_.count()) + " ms";
    return names.empty() ? "" : names + " did not come within " + time;
  }

  c10d::Store& store_;
  const int rank_;
  const Layout layout_;
  const milliseconds timeout_;
  const Clock::time_point deadline_ = in(timeout_);
  const std::vector<uint64_t> global_ranks_;
  const std::string what_;
  uint64_t number_ = 0; // that of rank 0
  std::optional<Memory> memory_;
  std::string no_memory_; // why rank 0 could not create it
};

} // namespace shm_collectives

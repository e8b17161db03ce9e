#pragma once

#include <map>
#include <optional>
#include <random>

#include <c10/util/Exception.h>

#include "host.hpp"
#include "pending.hpp"
#include "store_keys.hpp"
#include "threads.hpp"

namespace frame {

// [keys-of-a-meeting]
// The start of a group: all ranks begin, or each raises an error that says why. The store
// may still hold keys of an earlier group of the same name, also of one that was killed. So
// only the lobby has a fixed name; the others contain a number drawn for this start:
//
//   lobby: a line for each rank that has come, its number; and after that, the number of
//   rank 0, whose keys all use from then on
//
//   <number of 0>/<round>: a line for each rank, "ready" and its number, or why it cannot
//   begin; in the first round also its process and which host and container this is
//
//   <number of 0>/<round>/verdict: "ready", or why there is no group
//
// There are two rounds: all have come, and all have made their transport.
// [/keys-of-a-meeting]
class Rendezvous {
 public:
  Rendezvous(
      const StorePtr& store, int rank, int size, Names names, milliseconds timeout)
      : store_(store),
        rank_(rank),
        size_(size),
        timeout_(timeout),
        names_(std::move(names)) {}

  // [meet]
  // Returns the transport that connect(place) makes on this rank.
  template <class Connect>
  std::unique_ptr<Transport> meet(const Connect& connect) {
    std::unique_ptr<Transport> transport;
    auto problem = problem_of([&] {
      find_keys();
      return agree("came", problem_of([&] { // others must learn why it cannot say this
        return ready_ + " " + std::to_string(getpid()) + " " + home();
      }));
    });
    if (problem == kReady) {
      const auto mine = problem_of([&] {
        transport = connect({rank_, size_, names_, keys_, deadline_, members()});
        return ready_;
      });
      problem = problem_of([&] {
        if (mine != ready_) keys_->set_text(Place::kFailed, mine);
        return agree("made", mine);
      });
      // Without the store, a rank still knows its own reason.
      const bool unsaid = mine != ready_ && problem.find(mine) == std::string::npos;
      if (unsaid) problem = mine + "; " + problem;
    }
    if (problem != kReady) {
      C10_THROW_ERROR(DistStoreError,
          "Backend " + names_.backend + ": " + names_.who(rank_) + " of " +
              std::to_string(size_) + " cannot join group \"" + names_.group +
              "\": " + problem);
    }
    join(*transport);
    return transport;
  }
  // [/meet]

 private:
  // Finds the keys of this group, with the number of rank 0 as their prefix.
  void find_keys() {
    const auto lobby = names_.backend + "/" + std::to_string(size_) + "/";
    lobby_.emplace(StoreKeys::open(store_, lobby, deadline_));
    auto number = rank_ == 0 ? mine_ : "";
    const auto found = [&] {
      if (number.empty()) number = answer();
      return !number.empty();
    };
    if (!poll_until(found, deadline_, size_)) {
      lobby_->erase(kLobby); // the lines of failed starts must not pile up
      throw std::runtime_error(late({0}));
    }
    keys_ = std::make_shared<StoreKeys>(lobby_->below(number + "/"));
  }

  // The number of rank 0, once it stands behind that of this rank. If another rank has
  // erased the list meanwhile, this one adds its line again.
  std::string answer() {
    bool here = false;
    std::string number;
    for (const auto& line : lobby_->lines(kLobby, size_)) {
      here |= line.text == mine_;
      if (here && line.rank == 0) number = line.text;
    }
    if (!here) lobby_->add_line(kLobby, {rank_, mine_});
    return number;
  }

  // Rank 0 answers all who have come, those of an earlier start, too, who do not read it.
  void welcome() {
    const auto lines = lobby_->lines(kLobby, size_);
    if (lines.empty() || lines.back().text == mine_) return;
    lobby_->add_line(kLobby, {0, mine_});
  }

  // What each rank has said in a round. If two processes are one rank, the first counts.
  std::map<int, std::string> said(const std::string& round) const {
    std::map<int, std::string> said;
    for (const auto& line : keys_->lines(round, size_))
      said.emplace(line.rank, line.text);
    return said;
  }

  // [agree]
  // Returns the same on all ranks: "ready", or why there is no group. Rank 0 looks who has
  // come, and decides when all have. A rank whose time is over decides, too; the first
  // verdict counts, because a rank may come when another one has just given up.
  std::string agree(const std::string& round, const std::string& mine) {
    const auto verdict = round + "/verdict";
    enter(round, mine);
    const auto all_have_come = [&] {
      if (std::ssize(said(round)) == size_) return true;
      welcome();
      return false;
    };
    const auto decided = [&] {
      return (rank_ == 0 && all_have_come()) || keys_->has({verdict});
    };
    poll_until(decided, deadline_, size_);
    auto text = keys_->text(verdict);
    if (text.empty()) text = keys_->set_first(verdict, judge(round));
    problem_of([&] { // the verdict counts, even if the store is lost from here on
      if (text == kReady && came_.empty()) came_ = said(round);
      if (text == kReady) keys_->erase_published();
      if (rank_ == 0) lobby_->erase(kLobby);
      end_round(round);
      return "";
    });
    return text;
  }
  // [/agree]

  // The others have begun, and would wait for a rank that cannot.
  void join(Transport& transport) const {
    try {
      transport.joined();
    } catch (...) {
      const auto reason = text_of(std::current_exception());
      quietly(
          [&] { transport.announce(names_.who(rank_) + " cannot begin: " + reason); });
      throw;
    }
  }

  // The processes of all ranks, as each has said when it came.
  std::vector<Member> members() const {
    std::vector<Member> members;
    std::map<std::string, int> hosts;
    for (const auto& [rank, text] : came_) {
      members.push_back(member_of(text));
      const int next = static_cast<int>(hosts.size());
      members.back().host = hosts.emplace(members.back().home, next).first->second;
    }
    if (std::ssize(members) < size_)
      throw std::runtime_error("the store does not say which processes the ranks are");
    return members;
  }

  static Member member_of(const std::string& text) {
    Words words("came", text.substr(text.find(' ') + 1), "two numbers, and a host");
    words.number<uint64_t>(); // drawn for this start
    const auto process = words.number<pid_t>();
    return {process, words.rest()};
  }

  // Why there is no group, or "ready".
  std::string judge(const std::string& round) const {
    const auto said = this->said(round);
    std::vector<int> missing;
    std::string reasons;
    for (int rank = 0; rank < size_; ++rank) {
      if (!said.contains(rank)) missing.push_back(rank);
    }
    for (const auto& [rank, text] : said) {
      if (text.starts_with(kReady)) continue;
      reasons += (reasons.empty() ? "" : "; ") + names_.who(rank) + ": " + text;
    }
    if (missing.empty()) return reasons.empty() ? kReady : reasons;
    return late(missing) + twice(round) + (reasons.empty() ? "" : "; ") + reasons;
  }

  // The ranks that two processes are: one of these may be the rank that is missing.
  std::string twice(const std::string& round) const {
    std::map<int, std::string> first;
    std::string text;
    for (const auto& line : keys_->lines(round, size_)) {
      const auto& known = first.emplace(line.rank, line.text).first->second;
      const bool both = known.starts_with(kReady) && line.text.starts_with(kReady);
      if (known == line.text || !both) continue; // or it says why it cannot begin
      text += "; " + names_.who(line.rank) + " has joined twice (processes " +
          std::to_string(member_of(known).process) + " and " +
          std::to_string(member_of(line.text).process) + ")";
    }
    return text;
  }

  // The last rank that knows the verdict erases the keys of the round. Rank 0 waits for
  // those who have come: it often hosts the store, and its program may end after this.
  void end_round(const std::string& round) const {
    const auto verdict = round + "/verdict", read = round + "/read";
    if (keys_->add(read, 1) == size_) {
      keys_->erase(round);
      keys_->erase(read);
      keys_->erase(verdict); // the last, because rank 0 waits for it
    } else if (rank_ == 0) {
      const auto here = std::ssize(said(round));
      const auto all_know = [&] {
        return !keys_->has({verdict}) || (here < size_ && keys_->count(read) >= here);
      };
      poll_until(all_know, in(kLastMoments));
    }
  }

  void enter(const std::string& round, const std::string& text) const {
    keys_->add_line(round, {rank_, text});
    if (said(round)[rank_] != text) {
      throw std::runtime_error("another process is this rank already");
    }
  }

  std::string late(const std::vector<int>& ranks) const {
    std::string text;
    for (const int rank : ranks) text += (text.empty() ? "" : ", ") + names_.who(rank);
    return text + " did not come within " + std::to_string(timeout_.count()) + " ms";
  }

  // The text that a function returns or throws.
  template <class Function>
  static std::string problem_of(const Function& function) {
    try {
      return function();
    } catch (const std::system_error& error) {
      const bool threads = error.code() == std::errc::resource_unavailable_try_again;
      return threads ? shortage_of_threads(error) : error.what();
    } catch (...) {
      const auto text = text_of(std::current_exception());
      // Others would take such a text for that of a rank that is ready.
      return text.starts_with(kReady) ? '"' + text + '"' : text;
    }
  }

  static std::string draw() {
    std::random_device random;
    return std::to_string(uint64_t{random()} << 32 | random());
  }

  static constexpr const char* kReady = "ready";
  static constexpr const char* kLobby = "lobby";

  const StorePtr store_;
  const int rank_, size_;
  const milliseconds timeout_;
  const Clock::time_point deadline_ = in(timeout_);
  const Names names_;
  const std::string mine_ = draw(), ready_ = std::string(kReady) + " " + mine_;
  std::optional<StoreKeys> lobby_; // for ranks that do not know the number of rank 0
  std::shared_ptr<StoreKeys> keys_; // of this group
  std::map<int, std::string> came_; // what each rank has said in the first round
};

} // namespace frame

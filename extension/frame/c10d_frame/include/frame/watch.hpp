#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "host.hpp"
#include "transport.hpp"

namespace frame {

// Tells which other ranks have died: the kernel knows the processes of this host, and ranks
// of other hosts count in the store. What it finds goes to end(), which takes the mutex.
struct Liveness {
  using End = std::function<void(int rank, const std::string& how)>;

  Liveness(const Place& place, milliseconds heartbeat, End end)
      : place(place), heartbeat(heartbeat), end(std::move(end)) {
    for (int rank = 0; rank < place.size; ++rank) {
      const auto& [process, home, host] = place.members[rank];
      if (host != place.members[place.rank].host)
        far[rank] = {{}, Clock::now()};
      else if (process != getpid())
        near[rank] = {process, Process::find(process), std::nullopt};
    }
    if (needs_store()) place.keys->add(beats_of(place.rank), 0);
  }

  // For any thread.
  bool needs_store() const { return !far.empty(); }

  // For the thread that drives: ends those whose processes have ended this long ago.
  void look_at_processes(milliseconds ago) {
    const auto now = Clock::now();
    for (auto& [rank, one] : near) {
      if (!one.process->ended()) continue;
      if (!one.ended) one.ended = now;
      if (now - *one.ended < ago) continue;
      end(rank, " has died (process " + std::to_string(one.id) + ")");
    }
  }

  // The following is for the thread of the watch, because the store may not answer.
  bool must_count(Clock::time_point now) const {
    return needs_store() && now >= next_beat;
  }

  // [beats]
  // Two requests of each rank in a quarter of the heartbeat, for all ranks it cannot see.
  void count_beats(Clock::time_point now) {
    next_beat = now + heartbeat / 4;
    place.keys->add(beats_of(place.rank), 1);
    Keys::Names names;
    for (const auto& [rank, heard] : far) names.push_back(beats_of(rank));
    all_beat = all_beat || place.keys->has(names); // get() would wait for late ranks
    if (!all_beat) return;
    const auto beats = place.keys->get(names);
    for (size_t i = 0; auto& [rank, heard] : far) {
      const auto& its = beats[i++];
      if (its != heard.beats) heard = {its, now};
      if (now - heard.since < heartbeat) continue;
      end(rank,
          " has not been heard from for " + std::to_string(heartbeat.count()) +
              " ms (its host or the network may be down)");
    }
  }
  // [/beats]

  bool is_dead(int rank) const {
    const auto close = near.find(rank);
    if (close != near.end()) return close->second.process->ended();
    const auto distant = far.find(rank);
    return distant != far.end() && Clock::now() - distant->second.since > heartbeat;
  }

  void erase_beats() const {
    for (int rank = 0; rank < place.size; ++rank) place.keys->erase(beats_of(rank));
  }

 private:
  static std::string beats_of(int rank) { return "beats/" + std::to_string(rank); }

  const Place& place;
  const milliseconds heartbeat;
  const End end;
  struct Neighbour {
    pid_t id;
    std::shared_ptr<const Process> process;
    std::optional<Clock::time_point> ended; // since when the thread that drives knows
  };
  std::map<int, Neighbour> near;
  bool all_beat = false; // all ranks that this host cannot see have begun
  struct Distant { // the last beat of a rank that this host cannot see
    Keys::Value beats;
    Clock::time_point since;
  };
  std::map<int, Distant> far;
  Clock::time_point next_beat;
};

// What a watch shares with its thread, which keeps it if the store holds up the thread.
struct WatchState {
  using Lock = std::unique_lock<std::mutex>;

  WatchState(const Place& place, milliseconds heartbeat, std::shared_ptr<Bell> bell)
      : place(place),
        heartbeat(std::clamp(checked(heartbeat), kTicks * every, kLongest)),
        bell(std::move(bell)),
        ends(place.size),
        liveness(
            this->place, this->heartbeat, [this](int rank, const std::string& how) {
              const std::lock_guard lock(mutex);
              end(rank, how);
            }) {}

  void watch() {
    Lock lock(mutex);
    while (!has_left) {
      changed.wait_for(
          lock, every, [&] { return leaves || announcement || is_wanted; });
      const auto now = Clock::now();
      const bool counts = liveness.must_count(now);
      const bool asks = is_asked || is_wanted || counts || now - answered > kIdle;
      if (!asks && !announcement && !leaves) continue;
      is_asked = false;
      const bool ring = std::exchange(is_wanted, false) || leaves;
      if (store_is_lost) {
        announcement.reset(); // nobody can read it
        has_left = leaves;
        if (ring) bell->ring();
        continue;
      }
      use_store(lock, now, counts);
      if (ring || failure) bell->ring();
    }
  }

  // Without the mutex, because the store may not answer.
  void use_store(Lock& lock, Clock::time_point now, bool counts) {
    const auto reason = std::exchange(announcement, std::nullopt);
    const bool last = leaves, with_all = together;
    unanswered = now;
    lock.unlock();
    bool lost = false;
    try {
      ask(reason);
      if (counts && !last) liveness.count_beats(now);
      if (last) say_goodbye(with_all);
    } catch (const std::exception&) {
      lost = true; // for ever: a client does not connect again
    }
    lock.lock();
    has_left = last;
    store_is_lost = lost;
    if (lost) return;
    unanswered.reset();
    answered = now;
    if (reason) told = Clock::now();
  }

  // Makes one request, unless it has something to say.
  void ask(const std::optional<std::string>& reason) {
    const auto lines = place.keys->lines(kNews, place.size);
    if (lines.size() == news && !reason) return;
    news = lines.size();
    std::vector<int> left;
    std::string failed; // as the first one says
    for (const auto& [rank, text] : lines) {
      if (text == kLeaves && rank != place.rank) left.push_back(rank);
      if (text != kLeaves && text != kKnows && failed.empty()) failed = text;
    }
    const bool is_first = failed.empty() && reason;
    if (is_first) failed = *reason;
    if (!failed.empty() && !std::exchange(knows, true))
      tell(is_first ? failed : kKnows);
    const std::lock_guard lock(mutex);
    if (!failed.empty()) failure = failed;
    for (const int rank : left) end(rank, kLeft);
  }

  void tell(const std::string& text) {
    place.keys->add_line(kNews, {place.rank, text});
  }

  // [goodbye]
  // Rank 0 often hosts the store, and its process may end after this. So it waits: until
  // all have left, or, if the group has failed, until those who live know why.
  void say_goodbye(bool together) {
    auto& keys = *place.keys;
    tell(kLeaves);
    if (keys.add("leavers", 1) == place.size) return erase_keys();
    if (place.rank != 0) return;
    const auto may_go = [&] { return !keys.has({"leavers"}) || (knows && all_know()); };
    poll_until(may_go, Clock::now() + (knows || together ? kLastWords : kTogether));
  }
  // [/goodbye]

  bool all_know() const {
    std::vector<bool> know(place.size);
    for (const auto& line : place.keys->lines(kNews, place.size))
      know[line.rank] = true;
    for (int rank = 0; rank < place.size; ++rank) {
      if (!know[rank] && !liveness.is_dead(rank)) return false;
    }
    return true;
  }

  void erase_keys() {
    liveness.erase_beats();
    place.keys->erase(kNews);
    place.keys->erase("leavers"); // the last, because rank 0 waits for it
  }

  // A rank that leaves says so before its process ends, so the thread looks into the
  // store once more.
  void look_at_processes() { liveness.look_at_processes(every * 3 / 2); }

  // The mutex is held in the following.
  void end(int rank, const std::string& how) {
    if (ends[rank].empty()) ends[rank] = how;
  }

  bool is_up_to_date() {
    const auto now = Clock::now();
    const bool silent = unanswered && now - *unanswered > kIdle;
    if (now - answered <= counts_for || silent || store_is_lost) return true;
    if (!std::exchange(is_wanted, true)) changed.notify_all();
    return false;
  }

  bool has_told() const {
    const auto now = Clock::now();
    if (told) return now - *told > counts_for;
    return store_is_lost || now - announced.value_or(now) > kIdle;
  }

  // A rank that no longer hears of those on other hosts cannot wait for them.
  std::optional<std::string> loss_of_store() const {
    if (!liveness.needs_store() || !unanswered) return std::nullopt;
    if (Clock::now() - *unanswered < heartbeat) return std::nullopt;
    return "the store has not answered for " + std::to_string(heartbeat.count()) +
        " ms, so it is not known which ranks of other hosts live (the process that "
        "hosts the store, its host or the network may be down)";
  }

  std::optional<std::string> lost(const std::vector<int>& missing) const {
    for (const int rank : missing) {
      if (!ends[rank].empty()) return place.names.who(rank) + ends[rank];
    }
    if (!missing.empty()) return std::nullopt;
    // A receive from any rank waits for each that has not left.
    int left = 0;
    for (int rank = 0; rank < place.size; ++rank) {
      left += ends[rank] == kLeft;
      if (!ends[rank].empty() && ends[rank] != kLeft) {
        return place.names.who(rank) + ends[rank];
      }
    }
    if (left == 0 || left < place.size - 1) return std::nullopt;
    return "all other ranks have left the group (they destroyed or lost it)";
  }

  static constexpr const char *kNews = "news", *kLeaves = "left", *kKnows = "knows";
  static constexpr const char* kLeft = " has left the group (it destroyed or lost it)";
  static constexpr milliseconds kIdle{1000};
  // Of rank 0, at the end. Others learn of a failure in kIdle, and leave() has two
  // seconds.
  static constexpr milliseconds kLastWords{1500};

  // A rank counts at a tick, and another one looks at one of its own. If one comes late,
  // the heartbeat must still be longer; so that of a large group is, whatever is given.
  static milliseconds checked(milliseconds heartbeat) {
    if (heartbeat >= kTicks * kTick) return heartbeat;
    throw std::invalid_argument("a heartbeat of " + std::to_string(heartbeat.count()) +
        " ms is too short: ranks count, and look, every " +
        std::to_string(kTick.count()) + " ms, so it must be at least " +
        std::to_string((kTicks * kTick).count()) + " ms");
  }
  static constexpr milliseconds kTick{100};
  static constexpr int kTicks = 8; // in a heartbeat

  const Place place;
  // All ranks together ask at most a thousand times in a second.
  const milliseconds every{std::max<int64_t>(kTick.count(), place.size)};
  const milliseconds heartbeat;
  const milliseconds counts_for = 2 * every;
  const std::shared_ptr<Bell> bell;

  mutable std::mutex mutex; // guards these
  Condition changed;
  bool is_asked = false, is_wanted = false; // the store: within a tick, or at once
  bool leaves = false, together = false, has_left = false;
  bool store_is_lost = false;
  Clock::time_point answered = Clock::now();
  std::optional<Clock::time_point> unanswered; // when the store was asked, in vain
  std::optional<std::string> announcement, failure;
  std::optional<Clock::time_point> announced, told; // when: called for, and written
  std::vector<std::string> ends; // how each rank has ended; empty: it has not

  Liveness liveness;
  // Of the watch's thread:
  size_t news = 0; // how many lines it has read
  bool knows = false; // whether it has read that the group has failed
};

// [watch]
// Knows which ranks of a group live, for a transport whose library does not say. The
// kernel tells for ranks on this host; others must go on counting in the store. A thread
// asks the store, because it may not answer.
//
//   beats/<rank>: a counter that increases as long as the rank lives
//
//   news: a line for each rank that has left, that says why the group cannot go on, or
//   that has read that
//
//   leavers: how many ranks have left; the last one erases these keys
// [/watch]
class Watch {
 public:
  // Rings when the group has failed, when the store has answered to is_up_to_date(), and
  // when this rank has left.
  Watch(const Place& place, milliseconds heartbeat, std::shared_ptr<Bell> bell)
      : state_(std::make_shared<WatchState>(place, heartbeat, std::move(bell))) {
    Thread([state = state_] { state->watch(); }).detach();
  }
  ~Watch() { leave(false); }

  std::optional<std::string> failure() const {
    const std::lock_guard lock(state_->mutex);
    state_->is_asked = true;
    return state_->failure ? state_->failure : state_->loss_of_store();
  }
  // Whether the store has been asked for a failure of late; if not, it is asked now.
  bool is_up_to_date() const {
    const std::lock_guard lock(state_->mutex);
    return state_->is_up_to_date();
  }
  // The last step of a call. What others have sent before they failed may be here all the
  // same: a call of a rank that is late must not succeed on it alone.
  Steps confirm() const {
    Until known([this] { return is_up_to_date(); },
        [this] { return std::vector{state_->place.rank}; });
    co_await known;
    if (const auto reason = failure()) throw std::runtime_error(*reason);
  }
  // For how long an answer of the store counts as up to date.
  milliseconds counts_for() const { return state_->counts_for; }
  std::optional<std::string> lost(const std::vector<int>& missing) const {
    state_->look_at_processes();
    const std::lock_guard lock(state_->mutex);
    return state_->lost(missing);
  }
  void announce(const std::string& reason) {
    const std::lock_guard lock(state_->mutex);
    if (state_->announced) return;
    state_->announced = Clock::now();
    state_->announcement = reason;
    state_->changed.notify_all();
  }
  // Whether confirm() fails on all ranks: none counts an answer of the store from before
  // the announcement. True also when the store has not taken that in time.
  bool has_told() const {
    const std::lock_guard lock(state_->mutex);
    return state_->has_told();
  }
  // If all ranks leave together, rank 0 can wait for them longer.
  void leave(bool together) {
    const std::lock_guard lock(state_->mutex);
    state_->leaves = true;
    state_->together |= together;
    state_->changed.notify_all();
  }
  bool has_left() const {
    const std::lock_guard lock(state_->mutex);
    return state_->has_left;
  }

 private:
  const std::shared_ptr<WatchState> state_;
};

} // namespace frame

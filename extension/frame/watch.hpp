#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "host.hpp"
#include "transport.hpp"

namespace frame {

// [watch]
// Knows which ranks of a group live, for a transport whose library does not say. The
// kernel tells for ranks on this host; others must go on counting in the store. A thread
// asks the store, because it may not answer.
//
//   home/<rank>: its process, and which host and container this is
//
//   beats/<rank>: a counter that increases as long as the rank lives
//
//   failed: why the group cannot go on
//
//   left/<rank>: the rank has left the group
// [/watch]
class Watch {
 public:
  // Rings when the group has failed, and when this rank has left.
  Watch(const Place& place, milliseconds heartbeat, std::shared_ptr<Bell> bell)
      : state_(std::make_shared<State>(place, heartbeat, std::move(bell))) {
    place.keys->set_text(
        "home/" + std::to_string(place.rank), std::to_string(getpid()) + " " + home());
  }
  ~Watch() { leave(); }

  // When all ranks have set their homes.
  void start() {
    state_->find_homes();
    std::thread([state = state_] { state->watch(); }).detach();
  }

  std::optional<std::string> failure() const {
    const std::lock_guard lock(state_->mutex);
    state_->is_asked = true;
    return state_->failure;
  }
  std::optional<std::string> lost(const std::vector<int>& missing) const {
    state_->look_at_processes();
    const std::lock_guard lock(state_->mutex);
    return state_->lost(missing);
  }
  void announce(const std::string& reason) {
    const std::lock_guard lock(state_->mutex);
    state_->announcement = reason;
    state_->changed.notify_all();
  }
  void leave() {
    const std::lock_guard lock(state_->mutex);
    state_->leaves = true;
    state_->changed.notify_all();
  }
  bool has_left() const {
    const std::lock_guard lock(state_->mutex);
    return state_->has_left;
  }

 private:
  static constexpr milliseconds kEvery{100};

  // The thread keeps it if the store holds up the thread.
  struct State {
    using Lock = std::unique_lock<std::mutex>;

    State(const Place& place, milliseconds heartbeat, std::shared_ptr<Bell> bell)
        : place(place), heartbeat(heartbeat), bell(std::move(bell)), ends(place.size) {}

    void find_homes() {
      const auto mine = home_of(place.rank);
      for (int rank = 0; rank < place.size; ++rank) {
        const auto [process, home] = home_of(rank);
        if (home != mine.second) {
          far[rank] = {0, Clock::now()};
        } else if (process != mine.first) {
          near[rank] = {process, Process::find(process), std::nullopt};
        }
      }
    }

    std::pair<pid_t, std::string> home_of(int rank) const {
      const auto text = place.keys->text("home/" + std::to_string(rank));
      return {std::stoi(text), text.substr(text.find(' '))};
    }

    void watch() {
      Lock lock(mutex);
      while (!has_left) {
        changed.wait_for(lock, kEvery, [&] { return leaves || announcement; });
        const auto reason = std::exchange(announcement, std::nullopt);
        const bool asks = std::exchange(is_asked, false) || reason;
        const bool last = leaves;
        lock.unlock();
        try {
          if (asks) ask(reason);
          if (last) place.keys->set_text("left/" + std::to_string(place.rank), "left");
          if (!last && !far.empty()) count_beats();
        } catch (const std::exception&) {
          // Without the store, operations end at their deadlines.
        }
        lock.lock();
        has_left = last;
        if (has_left || failure) bell->ring();
      }
    }

    void ask(const std::optional<std::string>& reason) {
      auto& keys = *place.keys;
      const auto failed = keys.text("failed");
      if (failed.empty() && reason) keys.set_text("failed", *reason);
      for (int rank = 0; rank < place.size; ++rank) {
        if (rank != place.rank) end_if_left(rank);
      }
      const std::lock_guard lock(mutex);
      if (!failed.empty()) failure = failed;
    }

    // [beats]
    void count_beats() {
      const auto now = Clock::now();
      if (now < next_beat) return;
      next_beat = now + heartbeat / 4;
      place.keys->add("beats/" + std::to_string(place.rank), 1);
      for (auto& [rank, heard] : far) {
        const auto beats = place.keys->add("beats/" + std::to_string(rank), 0);
        if (beats != heard.first) heard = {beats, now};
        if (now - heard.second < heartbeat) continue;
        end_if_left(rank);
        end(rank,
            " has not been heard from for " + std::to_string(heartbeat.count()) +
                " ms (its host or the network may be down)");
      }
    }
    // [/beats]

    void end_if_left(int rank) {
      if (place.keys->has({"left/" + std::to_string(rank)})) end(rank, kLeft);
    }

    // A rank that leaves says so before its process ends, so the thread looks into the
    // store once more.
    void look_at_processes() {
      const auto now = Clock::now();
      for (auto& [rank, one] : near) {
        if (!one.process->ended()) continue;
        if (!one.ended) one.ended = now;
        if (now - *one.ended < kEvery * 3 / 2) continue;
        end(rank, " has died (process " + std::to_string(one.id) + ")");
      }
    }

    void end(int rank, const std::string& how) {
      const std::lock_guard lock(mutex);
      if (ends[rank].empty()) ends[rank] = how;
    }

    // The mutex is held.
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

    static constexpr const char* kLeft =
        " has left the group (it destroyed or lost it)";

    const Place place;
    const milliseconds heartbeat;
    const std::shared_ptr<Bell> bell;

    mutable std::mutex mutex; // guards these
    std::condition_variable changed;
    bool is_asked = false, leaves = false, has_left = false;
    std::optional<std::string> announcement, failure;
    std::vector<std::string> ends; // how each rank has ended; empty: it has not

    struct Neighbour {
      pid_t id;
      std::shared_ptr<const Process> process;
      std::optional<Clock::time_point> ended; // since when that is known
    };
    std::map<int, Neighbour> near; // of the thread that drives
    // Of the watch's thread: the last beat of each rank that this host cannot see.
    std::map<int, std::pair<int64_t, Clock::time_point>> far;
    Clock::time_point next_beat;
  };

  const std::shared_ptr<State> state_;
};

} // namespace frame

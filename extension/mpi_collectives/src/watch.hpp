#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "frame/host.hpp"
#include "frame/transport.hpp"

namespace mpi_collectives {

using frame::milliseconds;

// Knows which ranks of a group are alive, because MPI does not say. Of ranks on this
// host, the kernel tells; the others must go on counting in the store. A thread of its
// own asks, because the store may not answer.
//
//   home/<rank>: its process, and where that can be seen
//   beats/<rank>: a counter, which a rank that lives increases
//   failed: why the group cannot go on
//   left: how many ranks have left the group; left/<rank>: this one
class Watch {
 public:
  Watch(const frame::Place& place, milliseconds heartbeat)
      : state_(std::make_shared<State>(place, heartbeat)) {
    place.keys->set_text("home/" + std::to_string(place.rank),
        std::to_string(getpid()) + " " + frame::home());
  }
  ~Watch() { leave(); }

  // When all ranks have come.
  void start() {
    state_->find_homes();
    std::thread([state = state_] { state->watch(); }).detach();
  }

  std::optional<std::string> failure() const {
    const std::lock_guard lock(state_->mutex);
    return state_->failure;
  }
  std::optional<std::string> lost(const std::vector<int>& missing) const {
    const std::lock_guard lock(state_->mutex);
    return state_->lost_of(missing);
  }
  void announce(const std::string& reason) {
    const std::lock_guard lock(state_->mutex);
    state_->announcement = reason;
    state_->changed.notify_all();
  }
  void leave() {
    const std::lock_guard lock(state_->mutex);
    state_->leaving = true;
    state_->changed.notify_all();
  }

 private:
  static constexpr milliseconds kEvery{100};

  struct State {
    State(const frame::Place& place, milliseconds heartbeat)
        : place(place), heartbeat(heartbeat), lost(place.size), beats(place.size) {}

    void find_homes() {
      const auto mine = home_of(place.rank);
      for (int rank = 0; rank < place.size; ++rank) {
        if (rank == place.rank) continue;
        const auto [process, home] = home_of(rank);
        if (home != mine.second) {
          beats[rank].since = frame::Clock::now();
          far.push_back(rank);
        } else if (process != getpid()) {
          near[rank] = {process, frame::Process::find(process)};
        }
      }
    }

    std::pair<pid_t, std::string> home_of(int rank) {
      const auto text = place.keys->text("home/" + std::to_string(rank));
      const size_t space = text.find(' ');
      return {std::stoi(text), text.substr(space + 1)};
    }

    void watch() {
      std::unique_lock lock(mutex);
      while (true) {
        const bool leaves = leaving;
        const auto reason = std::exchange(announcement, std::nullopt);
        lock.unlock();
        look_at_processes();
        try {
          ask(reason, leaves);
        } catch (const std::exception& error) {
          lock.lock();
          store_lost = error.what();
          lock.unlock();
        }
        if (leaves) return;
        lock.lock();
        changed.wait_for(lock, kEvery, [&] { return leaving || announcement; });
      }
    }

    void look_at_processes() {
      for (const auto& [rank, process] : near) {
        if (process.second->ended()) {
          lose(rank, " has died (process " + std::to_string(process.first) + ")");
        }
      }
    }

    void ask(const std::optional<std::string>& reason, bool leaves) {
      auto& keys = *place.keys;
      const auto me = std::to_string(place.rank);
      const auto failed = keys.text("failed");
      if (failed.empty() && reason) keys.set_text("failed", *reason);
      if (!failed.empty()) {
        const std::lock_guard lock(mutex);
        failure = failed;
      }
      if (leaves) {
        keys.set_text("left/" + me, "left");
        keys.add("left", 1);
        return;
      }
      if (keys.add("left", 0) != known_left) {
        known_left = keys.add("left", 0);
        for (int rank = 0; rank < place.size; ++rank) {
          if (rank == place.rank || !keys.has({"left/" + std::to_string(rank)})) continue;
          lose(rank, " has left the group (it destroyed or lost it)");
        }
      }
      const auto now = frame::Clock::now();
      if (far.empty() || now < next_beat) return;
      next_beat = now + heartbeat / 4;
      keys.add("beats/" + me, 1);
      for (const int rank : far) {
        const auto beat = keys.add("beats/" + std::to_string(rank), 0);
        if (beat != beats[rank].number) beats[rank] = {beat, now};
        if (now - beats[rank].since < heartbeat) continue;
        lose(rank, " has not been heard of for " + std::to_string(heartbeat.count()) +
            " ms (its host or the network may be down)");
      }
    }

    void lose(int rank, const std::string& how) {
      const std::lock_guard lock(mutex);
      if (lost[rank].empty()) lost[rank] = place.names.who(rank) + how;
    }

    // The mutex is held. A receive from any rank waits for each that has not left.
    std::optional<std::string> lost_of(const std::vector<int>& missing) const {
      for (const int rank : missing) {
        if (!lost[rank].empty()) return lost[rank];
      }
      const auto gone = std::ranges::count_if(lost, [](const auto& x) { return !x.empty(); });
      if (missing.empty() && gone > 0 && gone == place.size - 1) {
        return "all other ranks have left the group (they destroyed or lost it)";
      }
      for (size_t rank = 0; rank < lost.size() && missing.empty(); ++rank) {
        if (!lost[rank].empty() && lost[rank].find(" has left") == std::string::npos) return lost[rank];
      }
      return std::nullopt;
    }

    const frame::Place place;
    const milliseconds heartbeat;

    std::mutex mutex; // guards these
    std::condition_variable changed;
    bool leaving = false;
    std::optional<std::string> announcement, failure;
    std::string store_lost;
    std::vector<std::string> lost; // how each rank was lost; empty: it was not

    // Only the thread uses these:
    struct Beats {
      int64_t number = 0;
      frame::Clock::time_point since;
    };
    std::vector<Beats> beats;
    std::vector<int> far; // ranks that this one cannot see
    std::map<int, std::pair<pid_t, std::shared_ptr<const frame::Process>>> near;
    int64_t known_left = 0;
    frame::Clock::time_point next_beat;
  };

  const std::shared_ptr<State> state_;
};

} // namespace mpi_collectives

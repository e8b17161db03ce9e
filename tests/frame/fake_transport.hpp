#pragma once

// The network of a group whose ranks are engines of one process. It moves data as a real
// one does, unless the test holds it, lets calls throw or take long, or lets ranks die. It
// notes what the engines call, and which rules of class Transport they break.

#include <list>
#include <map>
#include <set>

#include "frame/transport.hpp"

namespace test {

using namespace std::chrono_literals;
using frame::Blob, frame::Blobs, frame::Bell, frame::Clock, frame::Condition,
    frame::Kind;
using frame::Note, frame::Operation, frame::Pieces, frame::Steps, frame::milliseconds;

// A gate that threads of a test wait at, asleep.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  Condition changed_;
  bool is_open_ = false;
};

class Network {
 public:
  explicit Network(int size, bool can_block = false)
      : size(size), can_block(can_block), ranks_(size) {}

  const int size;
  const bool can_block;

  // What the test wants. A hook runs inside of a call, as a part of the transport.
  using Hook = std::function<void()>;
  void on(int rank, const std::string& call, Hook hook) {
    const std::lock_guard lock(mutex_);
    ranks_[rank].hooks[call] = std::move(hook);
  }
  void let_throw(int rank, const std::string& call) {
    on(rank, call, [call] { throw std::runtime_error(call + " throws"); });
  }
  // Each call lasts until all other threads sleep, so that those that are not to call
  // meanwhile would do it.
  void slow_down() {
    change([&] { is_slow_ = true; });
  }
  void hold(bool holds = true) { // all data
    change([&] { holds_ = holds; });
  }
  void announce(const std::string& reason) { // as a rank that is not of the test
    change([&] { failure_ = reason; });
  }
  void kill(int rank) {
    change([&] { ranks_[rank].dead = true; });
  }
  void set_at_once(std::function<bool()> ends) { at_once_ = std::move(ends); }
  void stay(int rank, bool stays = true) { // in its last steps
    change([&] { ranks_[rank].stays = stays; });
  }

  // What the engines have done.
  std::vector<std::string> calls(int rank) const {
    const std::lock_guard lock(mutex_);
    return ranks_[rank].calls;
  }
  int count(int rank, const std::string& call) const {
    return static_cast<int>(std::ranges::count(calls(rank), call));
  }
  std::string announced(int rank) const {
    const std::lock_guard lock(mutex_);
    return ranks_[rank].announced;
  }
  std::optional<bool> left(int rank) const { // whether orderly
    const std::lock_guard lock(mutex_);
    return ranks_[rank].left;
  }
  std::set<std::thread::id> threads(int rank) const { // that have made calls
    const std::lock_guard lock(mutex_);
    return ranks_[rank].threads;
  }
  std::string broken() const { // rules of class Transport
    const std::lock_guard lock(mutex_);
    return broken_;
  }

 private:
  friend class FakeTransport;
  struct Message {
    int from, to;
    int64_t tag;
    Blob data;
    bool taken = false;
  };
  struct Shown {
    Note note;
    Blobs pieces;
  };
  struct Rank {
    std::map<std::string, Hook> hooks;
    std::vector<std::string> calls;
    std::set<std::thread::id> threads;
    std::string announced;
    std::optional<bool> left;
    bool dead = false, stays = false;
    std::shared_ptr<Bell> bell;
  };

  template <class Change>
  void change(const Change& change) {
    std::unique_lock lock(mutex_);
    change();
    std::vector<std::shared_ptr<Bell>> bells;
    for (const auto& rank : ranks_) bells.push_back(rank.bell);
    lock.unlock();
    for (const auto& bell : bells) {
      if (bell) bell->ring();
    }
  }

  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  std::map<uint64_t, std::map<int, Shown>> shown_; // by sequence and rank
  std::list<std::shared_ptr<Message>> messages_;
  std::string broken_, failure_;
  std::function<bool()> at_once_ = [] { return false; };
  bool holds_ = false, is_slow_ = false;
};

class FakeTransport final : public frame::Transport {
  // A call of the engine, which must keep the rules.
  class Call {
   public:
    Call(FakeTransport& transport, const std::string& name) : transport_(transport) {
      auto& network = *transport_.network_;
      std::unique_lock lock(network.mutex_);
      auto& rank = network.ranks_[transport_.rank()];
      if (transport_.is_busy_.exchange(true)) break_rule(name, "beside another call");
      if (transport_.has_left_ && name != "last steps" && name != "end of last steps") {
        break_rule(name, "after leave");
      }
      rank.threads.insert(std::this_thread::get_id());
      if (network.can_block && rank.threads.size() > 1) {
        break_rule(name, "on another thread");
      }
      if (name == "leave") transport_.has_left_ = true;
      rank.calls.push_back(name);
      const auto hook = rank.hooks.find(name);
      const auto function = hook == rank.hooks.end() ? nullptr : hook->second;
      const bool is_slow = network.is_slow_;
      lock.unlock();
      try {
        if (is_slow) frame::sleep_until(Clock::now());
        if (function) function();
      } catch (...) {
        transport_.is_busy_ = false;
        throw;
      }
    }
    ~Call() { transport_.is_busy_ = false; }

   private:
    void break_rule(const std::string& name, const std::string& how) const {
      transport_.network_->broken_ +=
          name + " of rank " + std::to_string(transport_.rank()) + " " + how + "; ";
    }
    FakeTransport& transport_;
  };

  // What steps wait for: a look of the engine is a call, and so is their destruction.
  class Wait final : public frame::Awaited {
   public:
    Wait(FakeTransport& transport, std::function<bool()> ready,
        std::function<std::vector<int>()> missing, std::string name = "look")
        : transport_(transport),
          ready_(std::move(ready)),
          missing_(std::move(missing)),
          name_(std::move(name)) {}
    ~Wait() {
      try {
        const Call call(
            transport_, name_ == "last steps" ? "end of last steps" : "end of steps");
      } catch (const std::exception&) { // the hook of a test
      }
    }
    bool ready() override {
      const Call call(transport_, name_);
      const std::lock_guard lock(transport_.network_->mutex_);
      return ready_();
    }
    std::vector<int> missing() const override {
      const std::lock_guard lock(transport_.network_->mutex_);
      return missing_();
    }

   private:
    FakeTransport& transport_;
    const std::function<bool()> ready_;
    const std::function<std::vector<int>()> missing_;
    const std::string name_;
  };

 public:
  FakeTransport(std::shared_ptr<Network> network, frame::Place place)
      : Transport(std::move(place)), network_(std::move(network)) {
    const std::lock_guard lock(network_->mutex_);
    network_->ranks_[rank()].bell = bell();
  }

  bool can_block() const override { return network_->can_block; }

  void joined() override { call_hook("joined"); }

  bool at_once(const Operation& op) override {
    const Call call(*this, "at_once");
    if (!op.out.empty()) return false;
    show(op.note, op.in);
    return network_->at_once_();
  }

  Steps collective(const Operation& op) override {
    const Call call(*this, "collective");
    return Transport::collective(op);
  }

  Steps exchange(const Note& note, Pieces pieces, int from, Blobs& received) override {
    {
      const Call call(*this, "exchange");
    }
    show(note, pieces);
    auto& all = network_->shown_;
    const uint64_t number = note.sequence;
    Wait come(
        *this,
        [&] {
          return !network_->holds_ && static_cast<int>(all[number].size()) == size();
        },
        [&] { return missing(number); });
    co_await come;
    const std::lock_guard lock(network_->mutex_);
    std::vector<Note> notes;
    for (const auto& [rank, shown] : all[number]) notes.push_back(shown.note);
    compare(notes, names());
    for (const auto& [rank, shown] : all[number]) {
      if (shown.pieces.empty() || (from != frame::kEveryone && from != rank)) continue;
      received[rank] = shown.pieces[shown.pieces.size() == 1 ? 0 : this->rank()];
    }
  }

  Steps send(const Operation& op) override {
    {
      const Call call(*this, "send");
    }
    const auto message = std::make_shared<Network::Message>(
        rank(), op.note.root, op.note.tag, Blob(op.in[0].begin(), op.in[0].end()));
    network_->change([&] { network_->messages_.push_back(message); });
    Wait taken(
        *this, [&] { return message->taken; },
        [&] { return std::vector{message->to}; });
    co_await taken;
  }

  Steps receive(const Operation& op) override {
    {
      const Call call(*this, "receive");
    }
    std::shared_ptr<Network::Message> message;
    Wait come(
        *this, [&] { return (message = take(op.note)) != nullptr; },
        [&] {
          const bool any = op.note.root == frame::kAnySource;
          return any ? std::vector<int>() : std::vector{op.note.root};
        });
    co_await come;
    network_->change([&] { message->taken = true; });
    require_size(op.out[0], message->data.size(), message->from);
    frame::copy(op.out[0], message->data);
    *op.source = message->from;
  }

  std::optional<std::string> failure() override {
    const Call call(*this, "failure");
    const std::lock_guard lock(network_->mutex_);
    if (network_->failure_.empty()) return std::nullopt;
    return network_->failure_;
  }

  std::optional<std::string> lost(const std::vector<int>& missing) override {
    const Call call(*this, "lost");
    const std::lock_guard lock(network_->mutex_);
    for (const int rank : missing) {
      if (network_->ranks_[rank].dead) return names().who(rank) + " has died";
      if (network_->ranks_[rank].left) return names().who(rank) + " has left";
    }
    return std::nullopt;
  }

  void announce(const std::string& reason) override {
    const Call call(*this, "announce");
    network_->change([&] {
      network_->ranks_[rank()].announced = reason;
      if (network_->failure_.empty()) network_->failure_ = reason;
    });
  }

  Steps leave(bool orderly) override {
    const Call call(*this, "leave");
    network_->change([&] { network_->ranks_[rank()].left = orderly; });
    return last_steps();
  }

  // Any thread may call it.
  bool rest(const frame::Idle& idle, Clock::time_point limit,
      const Transport::Look& look) override {
    call_hook("rest");
    return Transport::rest(idle, limit, look);
  }

 private:
  // Of a call that is not bound to a thread.
  void call_hook(const std::string& name) {
    std::unique_lock lock(network_->mutex_);
    const auto& hooks = network_->ranks_[rank()].hooks;
    const auto hook = hooks.find(name);
    const auto function = hook == hooks.end() ? nullptr : hook->second;
    lock.unlock();
    if (function) function();
  }

  Steps last_steps() {
    Wait gone(
        *this, [this] { return !network_->ranks_[rank()].stays; },
        [] { return std::vector<int>(); }, "last steps");
    co_await gone;
  }

  void show(const Note& note, Pieces pieces) {
    network_->change([&] {
      auto& shown = network_->shown_[note.sequence][rank()];
      shown.note = note;
      shown.pieces.clear();
      for (const auto piece : pieces) {
        shown.pieces.emplace_back(piece.begin(), piece.end());
      }
    });
  }

  // The network's mutex is held in the following.
  std::vector<int> missing(uint64_t number) const {
    std::vector<int> ranks;
    for (int other = 0; other < size(); ++other) {
      const bool come = network_->shown_[number].contains(other) && !network_->holds_;
      if (!come && other != rank()) ranks.push_back(other);
    }
    return ranks;
  }

  std::shared_ptr<Network::Message> take(const Note& note) const {
    if (network_->holds_) return nullptr;
    auto& all = network_->messages_;
    const auto found = std::ranges::find_if(all, [&](const auto& each) {
      return each->to == rank() && each->tag == note.tag &&
          (note.root == frame::kAnySource || note.root == each->from);
    });
    if (found == all.end()) return nullptr;
    const auto message = *found;
    all.erase(found);
    return message;
  }

  const std::shared_ptr<Network> network_;
  std::atomic<bool> is_busy_ = false;
  bool has_left_ = false; // guarded by the network's mutex
};

} // namespace test

#pragma once

#include <fcntl.h>

#include "file_bell.hpp"
#include "message_transport.hpp"
#include "watch.hpp"

namespace frame {

// The messages of a group, over a library or sockets. A function with a default needs no
// override if the library has no such call.
class Connections : public Messages {
 public:
  // [connections]
  // Moves what can move, and sets `ended` of each transfer that ends. Called before steps
  // ask for the end of transfers, and only while this rank has an open operation, or leaves.
  // So a send has ended when it needs no further call here, and none on a rank that has
  // received it.
  virtual void progress() {}

  // A descriptor that can be read when progress() has work, or -1. Asked once; the frame
  // sleeps on a duplicate. With it, no function may wait for another rank or for the store.
  // Without it, a thread of the frame makes all calls, and naps between them.
  virtual int file() const { return -1; }
  // Called after progress(), before each sleep on the descriptor; returns false if
  // progress() has work again. If not, the descriptor must tell of all that comes, also for
  // transfers that begin after this.
  virtual bool arm() { return true; }

  // Why a rank cannot be reached, if the library knows; its transfers stay open.
  // Called for each rank that an operation waits for, but not while a receive waits for
  // any rank.
  virtual std::optional<std::string> lost(int /* rank */) { return std::nullopt; }
  // The last call; there is none if this rank cannot leave within two seconds.
  virtual void close() {}
  // [/connections]
};

// The transport of a group that has connections. A Watch knows which ranks are alive, and
// tells the others why this one cannot go on.
class ConnectionTransport final : public MessageTransport {
 public:
  // A rank on another host counts as dead if it is not heard from for this time.
  ConnectionTransport(const Place& place, std::shared_ptr<Connections> connections,
      const Choice& choice, milliseconds heartbeat)
      : MessageTransport(place, connections, choice),
        connections_(std::move(connections)),
        file_(duplicate(connections_->file())),
        file_bell_(file_.number() < 0 ? nullptr : std::make_shared<FileBell>()),
        watch_(place, heartbeat, file_bell_ ? file_bell_ : bell()) {}

  // Others may have sent what this call needed, and failed then: the store knows.
  Steps exchange(const Note& note, Pieces shown, int from, Blobs& received) override {
    co_await MessageTransport::exchange(note, shown, from, received);
    co_await watch_.confirm();
  }
  Steps collective(const Operation& op) override {
    co_await MessageTransport::collective(op);
    co_await watch_.confirm();
  }

  bool can_block() const override { return !file_bell_; }
  void progress() override {
    if (closed_) return; // a thread may look once more
    connections_->progress();
    if (arming_ == Arming::asked)
      arming_ = connections_->arm() ? Arming::armed : Arming::busy;
  }

  std::optional<std::string> failure() override { return watch_.failure(); }
  // Before a rank closes its connections it says why, so the store is asked once more.
  std::optional<std::string> lost(const std::vector<int>& missing) override {
    if (const auto reason = watch_.lost(missing)) return reason;
    const auto now = Clock::now();
    for (const int rank : missing) {
      const auto reason = connections_->lost(rank);
      if (!reason) continue;
      if (!lost_since_) lost_since_ = now;
      if (now - *lost_since_ > watch_.counts_for() && watch_.is_up_to_date())
        return reason;
    }
    return std::nullopt;
  }
  void announce(const std::string& reason) override { watch_.announce(reason); }
  bool has_told() override { return watch_.has_told(); }

  Steps leave(bool orderly) override {
    watch_.leave(orderly);
    Until left([this] { return watch_.has_left(); });
    co_await left;
    forget_messages();
    closed_ = true;
    connections_->close(); // now: a program may keep a Work, and with it the transport
  }

  bool rest(const Idle& idle, Clock::time_point limit, const Look& look) override {
    if (!file_bell_) return Transport::rest(idle, limit, look);
    return file_bell_->rest(file_.number(), limit, look, [&] {
      arming_ = Arming::asked;
      const bool moved = look();
      const Arming answer = arming_.exchange(Arming::none);
      // Another thread drives. It may do so for long.
      if (!moved && answer == Arming::asked)
        sleep_until(std::min(limit, Clock::now() + kNap));
      return !moved && answer == Arming::armed;
    });
  }
  void wake() override { file_bell_ ? file_bell_->ring() : Transport::wake(); }

 private:
  static Descriptor duplicate(int file) {
    Descriptor copy(file < 0 ? file : fcntl(file, F_DUPFD_CLOEXEC, 0));
    if (file < 0 || copy.number() >= 0) return copy;
    throw std::runtime_error(
        std::string("cannot duplicate the descriptor to sleep on: ") +
        std::strerror(errno) + " (see the limit, ulimit -n)");
  }

  static constexpr microseconds kNap{50};

  // The question of a thread that is about to sleep, and the library's answer, for which
  // the thread that has the turn asks.
  enum class Arming { none, asked, armed, busy };

  const std::shared_ptr<Connections> connections_;
  const Descriptor file_;
  const std::shared_ptr<FileBell> file_bell_; // null if there is no file
  Watch watch_;
  std::atomic<Arming> arming_ = Arming::none;
  bool closed_ = false;
  std::optional<Clock::time_point> lost_since_; // when a rank was first reported lost
};

} // namespace frame

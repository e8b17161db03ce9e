#pragma once

#include "frame/file_bell.hpp"
#include "frame/message_transport.hpp"
#include "frame/watch.hpp"

#include "sockets.hpp"

namespace tcp_collectives {

using frame::Blobs, frame::Note, frame::Operation, frame::Pieces, frame::Steps;

// Collectives and messages over sockets; threads sleep in the kernel until one is ready.
class TcpTransport final : public frame::MessageTransport {
 public:
  TcpTransport(Place place, const std::string& interface, const std::string& algorithms,
      milliseconds heartbeat)
      : TcpTransport{place, frame::Choice(algorithms),
            std::make_shared<Sockets>(place, interface, algorithms), heartbeat} {}

  // The others may have failed long ago, and have sent before what this call needed.
  Steps exchange(const Note& note, Pieces shown, int from, Blobs& received) override {
    co_await MessageTransport::exchange(note, shown, from, received);
    co_await watch_.confirm();
  }
  Steps collective(const Operation& op) override {
    co_await MessageTransport::collective(op);
    co_await watch_.confirm();
  }

  // [answers]
  bool can_block() const override { return false; }
  void progress() override { sockets_->progress(); }

  std::optional<std::string> failure() override { return watch_.failure(); }
  // Before a rank closes its connections it says why, so the store is asked once more.
  std::optional<std::string> lost(const std::vector<int>& missing) override {
    if (const auto reason = watch_.lost(missing)) return reason;
    const auto now = Clock::now();
    for (const int rank : missing) {
      const auto reason = sockets_->lost(rank);
      if (!reason) continue;
      if (!lost_since_) lost_since_ = now;
      if (now - *lost_since_ > watch_.counts_for() && watch_.is_up_to_date())
        return reason;
    }
    return std::nullopt;
  }
  void announce(const std::string& reason) override { watch_.announce(reason); }

  Steps leave(bool orderly) override {
    watch_.leave(orderly);
    frame::Until left([this] { return watch_.has_left(); });
    co_await left;
    sockets_->close(); // now: a program may keep a Work, and with it the transport
  }

  bool rest(const frame::Idle&, Clock::time_point limit, const Look& look) override {
    return bell_->rest(sockets_->file(), limit, look);
  }
  void wake() override { bell_->ring(); }
  // [/answers]
  bool has_told() override { return watch_.has_told(); }

 private:
  TcpTransport(const Place& place, const frame::Choice& choice,
      std::shared_ptr<Sockets> sockets, milliseconds heartbeat)
      : MessageTransport(place, sockets, choice),
        sockets_(std::move(sockets)),
        watch_(place, heartbeat, bell_) {}

  const std::shared_ptr<Sockets> sockets_;
  const std::shared_ptr<frame::FileBell> bell_ = std::make_shared<frame::FileBell>();
  frame::Watch watch_;
  std::optional<Clock::time_point> lost_since_; // when a connection was found broken
};

} // namespace tcp_collectives

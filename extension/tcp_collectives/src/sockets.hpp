#pragma once

#include <deque>

#include <sys/epoll.h>
#include <sys/uio.h>

#include "frame/connections.hpp"

#include "connect.hpp"

namespace tcp_collectives {

using frame::Transfer, frame::Way;

// Messages over sockets, one for each other rank and channel. A message is its size and its
// bytes. It stays with the kernel, and then with its sender, until a receive has begun.
class Sockets final : public frame::Connections {
 public:
  Sockets(const Place& place, const std::string& interface,
      const std::string& algorithms = "")
      : rank_(place.rank), names_(place.names), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_.number() < 0) throw failed("create an epoll");
    auto connections = Meeting(place, interface, algorithms).connections();
    for (const auto& member : place.members) hosts_.push_back(member.host);
    for (int rank = 0; rank < place.size; ++rank) {
      auto& to_rank = lines_.emplace_back();
      for (auto& socket : connections[rank]) {
        Line& line = to_rank.emplace_back(std::move(socket), rank);
        if (rank == rank_) continue;
        epoll_event event{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = &line}};
        if (epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, line.number(), &event) != 0)
          throw failed("wait for a socket");
      }
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hosts_.size()); }
  int host(int rank) const override { return hosts_[rank]; }
  int file() const override { return epoll_.number(); }

  // [begin]
  void begin(Transfer& transfer) override {
    Line& line = lines_[transfer.other][transfer.channel];
    Queue& queue = transfer.way == Way::send ? line.sends : line.receives;
    queue.messages.push_back({&transfer, transfer.bytes.size()});
    if (queue.messages.size() == 1 && queue.is_ready) line.move(transfer.way);
  }
  // [/begin]

  // The rest of a message that has begun would be taken for the next one.
  void forget(Transfer& transfer) override {
    Line& line = lines_[transfer.other][transfer.channel];
    for (Queue* queue : {&line.sends, &line.receives}) {
      const auto is_this = [&](const Message& each) {
        return each.transfer == &transfer;
      };
      if (std::erase_if(queue->messages, is_this) > 0) line.broken = "its group failed";
    }
  }

  // [progress]
  // Moves all that the kernel lets move.
  void progress() override {
    epoll_event events[64];
    const int count = epoll_wait(epoll_.number(), events, std::size(events), 0);
    for (int i = 0; i < count; ++i) {
      Line& line = *static_cast<Line*>(events[i].data.ptr);
      if (events[i].events & ~EPOLLOUT) line.receives.is_ready = true;
      if (events[i].events & ~(EPOLLIN | EPOLLRDHUP)) line.sends.is_ready = true;
      for (const Way way : {Way::receive, Way::send}) line.move(way);
    }
  }
  // [/progress]

  // The end of all connections. The rest may still be in use: others sleep on the epoll.
  void close() override {
    for (auto& to_rank : lines_) {
      for (Line& line : to_rank) {
        line.socket = Descriptor();
        line.broken = "this rank has closed its connections";
      }
    }
  }

  // Why a rank is lost, if one of its connections is broken.
  std::optional<std::string> lost(int rank) override {
    for (Line& line : lines_[rank]) {
      if (line.broken.empty() && is_unanswered(line.socket))
        line.broken = std::strerror(ETIMEDOUT);
      if (!line.broken.empty()) return names_.who(rank) + " is lost: " + line.broken;
    }
    return std::nullopt;
  }

 private:
  struct Message {
    Transfer* transfer;
    uint64_t size; // goes before its bytes
  };
  struct Queue {
    std::deque<Message> messages;
    size_t moved = 0; // of the first one, with its size
    bool is_ready = false; // the kernel has said so, and not refused since
  };

  // The connection to a rank for a channel.
  struct Line {
    Line(Descriptor given, int rank) : socket(std::move(given)), rank(rank) {}
    int number() const { return socket.number(); }

    // [move]
    void move(Way way) {
      Queue& queue = way == Way::send ? sends : receives;
      while (queue.is_ready && !queue.messages.empty() && broken.empty()) {
        iovec parts[2 * kTogether];
        const size_t count = parts_of(queue, parts);
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = count;
        const auto bytes = way == Way::send
            ? sendmsg(number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT)
            : recvmsg(number(), &message, MSG_DONTWAIT);
        if (bytes > 0) {
          end_messages(queue, way, bytes);
        } else if (bytes < 0 && errno == EAGAIN) {
          queue.is_ready = false;
        } else if (bytes == 0 || errno == EPIPE || errno == ECONNRESET) {
          broken = "it has closed its connection";
        } else if (errno != EINTR) {
          broken = std::strerror(errno);
        }
      }
    }
    // [/move]

    // Several messages at a time, because many are small.
    static size_t parts_of(Queue& queue, iovec* parts) {
      size_t count = 0, moved = queue.moved;
      for (size_t i = 0; i < std::min(queue.messages.size(), kTogether); ++i) {
        Message& message = queue.messages[i];
        const auto bytes = message.transfer->bytes;
        const size_t of_size = std::min(moved, sizeof(message.size));
        const size_t of_bytes = moved - of_size;
        parts[count++] = {reinterpret_cast<std::byte*>(&message.size) + of_size,
            sizeof(message.size) - of_size};
        parts[count++] = {bytes.data() + of_bytes, bytes.size() - of_bytes};
        moved = 0;
      }
      return count;
    }

    static void end_messages(Queue& queue, Way way, size_t bytes) {
      queue.moved += bytes;
      while (!queue.messages.empty()) {
        const Message message = queue.messages.front();
        if (queue.moved < sizeof(message.size)) return;
        // The size that has come may not be the one that is expected.
        if (way == Way::receive) message.transfer->require_size(message.size);
        const size_t whole = sizeof(message.size) + message.transfer->bytes.size();
        if (queue.moved < whole) return;
        queue.moved -= whole;
        queue.messages.pop_front();
        message.transfer->ended = true;
      }
    }

    static constexpr size_t kTogether = 8;

    Descriptor socket;
    const int rank;
    Queue sends, receives;
    std::string broken;
  };

  const int rank_;
  const frame::Names names_;
  const Descriptor epoll_;
  std::vector<int> hosts_;
  std::deque<std::deque<Line>>
      lines_; // by rank and channel; epoll knows where they are
};

} // namespace tcp_collectives

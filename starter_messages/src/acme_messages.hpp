#pragma once

#include <deque>
#include <map>

#include "frame/connections.hpp"

namespace acme_collectives {

using frame::Keys, frame::Transfer, frame::Way;

// Moves messages between the ranks of a group. The frame implements all operations with
// these messages, which go through the c10d store, so the backend is complete from the
// beginning. Let begin(), forget() and progress() call your library in place of the
// store. What each must do: https://SITE/algorithms/sockets.html
class AcmeMessages final : public frame::Connections {
 public:
  // Runs on each rank once all ranks of the group have arrived. Connect them here: publish
  // an address with place.keys->publish, and read those of the others with place.await,
  // which throws at the deadline, or if another rank has failed.
  explicit AcmeMessages(const frame::Place& place) : place_(place) {}

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }
  int host(int rank) const override { return place_.members[rank].host; }

  // Your library begins a nonblocking send or receive here. Through the store, a send ends
  // when the other rank says that it has received the message.
  void begin(Transfer& transfer) override {
    Line& line = lines_[{transfer.other, transfer.channel}];
    if (transfer.way == Way::receive) return line.receives.push_back(&transfer);
    line.sends.push_back(&transfer);
    const auto key = message(rank(), transfer.other, transfer.channel, line.sent++);
    for (size_t piece = 0; piece * kPiece < transfer.bytes.size(); ++piece)
      keys().set(name(key, piece), frame::part(transfer.bytes, piece, kPiece));
    tell(transfer, " " + std::to_string(transfer.bytes.size()));
  }

  // Your library cancels the send or receive here. After the return, it must not touch
  // the bytes. If it cannot cancel, do not call it again before close().
  void forget(Transfer& transfer) override {
    Line& line = lines_[{transfer.other, transfer.channel}];
    std::erase(transfer.way == Way::send ? line.sends : line.receives, &transfer);
  }

  // Your library says here which sends and receives have ended. Through the store, all
  // other ranks add lines to one list of this rank, so one request is enough if there
  // is nothing new.
  void progress() override {
    for (const auto& [from, text] : keys().take_lines(mail(rank()), size())) {
      frame::Words words(mail(rank()), text, "what other ranks have sent");
      Line& line = lines_[{from, words.number<int>()}];
      if (words.more()) {
        line.arrived.push_back(words.number<size_t>());
      } else if (!line.sends.empty()) { // the oldest: messages arrive in order
        line.sends.front()->ended = true;
        line.sends.pop_front();
      }
    }
    for (auto& [from, line] : lines_) {
      while (!line.receives.empty() && !line.arrived.empty()) receive(line);
    }
  }

  // Your library disconnects here.
  void close() override { keys().erase(mail(rank())); }

  // When no function uses the store any longer, override file() and arm() if your library
  // has a descriptor that can be polled, and lost() if it reports lost ranks.

 private:
  // All messages to and from a rank on one channel.
  struct Line {
    std::deque<Transfer*> sends, receives; // that have not ended
    std::deque<size_t> arrived; // the sizes of messages that no receive has taken
    uint64_t sent = 0, received = 0;
  };

  void receive(Line& line) {
    Transfer& transfer = *line.receives.front();
    transfer.require_size(line.arrived.front());
    const auto key = message(transfer.other, rank(), transfer.channel, line.received++);
    for (size_t piece = 0; piece * kPiece < transfer.bytes.size(); ++piece) {
      const auto value = keys().get({name(key, piece)}).at(0);
      frame::copy(
          frame::part(transfer.bytes, piece, kPiece), std::as_bytes(std::span(value)));
      keys().erase(name(key, piece));
    }
    tell(transfer, "");
    line.arrived.pop_front();
    line.receives.pop_front();
    transfer.ended = true;
  }

  // With a size, announces a message to the other rank. Without one, confirms that its
  // message has been received.
  void tell(const Transfer& transfer, const std::string& size) {
    keys().add_line(
        mail(transfer.other), {rank(), std::to_string(transfer.channel) + size});
  }

  Keys& keys() { return *place_.keys; }
  static std::string mail(int rank) { return "mail/" + std::to_string(rank); }
  static std::string message(int from, int to, int channel, uint64_t number) {
    return std::to_string(from) + "-" + std::to_string(to) + "/" +
        std::to_string(channel) + "/" + std::to_string(number);
  }
  static std::string name(const std::string& message, size_t piece) {
    return message + "/" + std::to_string(piece);
  }

  static constexpr size_t kPiece = 4
      << 20; // below 8 MiB, the limit for a value of the store

  const frame::Place place_;
  std::map<std::pair<int, int>, Line> lines_; // by rank and channel
};

} // namespace acme_collectives

#pragma once

#include "messages.hpp"
#include "receives.hpp"

namespace frame {

// Goes before the message of a program, before what exchange() shows, and before the first
// message of a collective to a rank.
struct Head {
  Note note;
  uint64_t bytes = 0;
};

// Any value as the bytes of a message.
template <class T>
Bytes bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// Messages with tags, and receives from any rank. The head of a message says which receive
// it is for. It is read only while a receive waits for its rank, so that the others stay
// with their sender; if it is for none, the message is kept, up to a limit.
class Mailbox final : public Receives {
 public:
  Mailbox(Messages& net, const Names& names)
      : Receives(net.rank(), net.size(), names),
        net_(net, everyone(net), kPrograms),
        inboxes_(net.size()) {}

  // [send]
  Steps send(const Operation& op) {
    const int to = op.note.root;
    Head head{op.note, op.in[0].size()};
    Transfer first = net_.send(to, bytes_of(head)), message = net_.send(to, op.in[0]);
    co_await first;
    co_await message;
  }

  Steps receive(const Operation& op) {
    Receive receive(*this, op);
    co_await receive;
    op.source->store(receive.source);
  }
  // [/send]

 private:
  struct Inbox { // the messages of one rank
    Head head;
    Blob bytes; // of the message that comes, if it will be kept
    std::optional<Transfer> head_comes, message_comes; // end before their memory
    Receive* receive = nullptr; // that the message is for, which comes; null: kept
  };

  static std::vector<int> everyone(const Messages& net) {
    std::vector<int> ranks(net.size());
    for (int rank = 0; rank < net.size(); ++rank) ranks[rank] = rank;
    return ranks;
  }

  bool look() override {
    bool moved = false;
    for (int from = 0; from < net_.size(); ++from) {
      while (from != net_.rank() && advance(from)) moved = true;
    }
    return moved;
  }

  // [advance]
  // Brings the messages of a rank a step further; returns whether it could.
  bool advance(int from) {
    Inbox& inbox = inboxes_[from];
    if (inbox.message_comes) {
      if (!inbox.message_comes->ready()) return false;
      inbox.message_comes.reset();
      if (inbox.receive == nullptr)
        keep(from, inbox.head.note, std::exchange(inbox.bytes, {}));
      else
        inbox.receive->ended = true;
      inbox.receive = nullptr;
      return true;
    }
    if (!inbox.head_comes) {
      if (!awaits(from)) return false;
      inbox.head_comes.emplace(net_, Way::receive, from, bytes_of(inbox.head));
    }
    return inbox.head_comes->ready() && begin(inbox, from);
  }

  // Begins to receive the message whose head has come.
  bool begin(Inbox& inbox, int from) {
    Receive* const receive = take(from, inbox.head.note);
    if (receive == nullptr && is_full(from)) return false;
    inbox.head_comes.reset();
    inbox.receive = receive;
    inbox.bytes.resize(receive == nullptr ? inbox.head.bytes : 0);
    const Bytes target = receive == nullptr ? Bytes(inbox.bytes) : receive->target;
    inbox.message_comes.emplace(net_, Way::receive, from, target);
    return true;
  }
  // [/advance]

  void forget(Receive& receive) override {
    for (Inbox& inbox : inboxes_) {
      if (inbox.receive == &receive) inbox.message_comes.reset();
    }
  }

  Part net_;
  std::vector<Inbox> inboxes_;
};

} // namespace frame

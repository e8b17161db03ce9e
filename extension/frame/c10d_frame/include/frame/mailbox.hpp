#pragma once

#include "messages.hpp"

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

// The same text on both ranks.
inline std::string disagreement(
    const Names& names, int rank, const Note& note, int other, const Note& its) {
  if (other < rank) return disagreement(names, other, its, rank, note);
  return "the ranks do not agree: " + names.who(rank) + " runs " + describe(note) +
      ", " + names.who(other) + " runs " + describe(its);
}

// Messages with tags, and receives from any rank. The head of a message says which receive
// it is for. It is read only while a receive waits for its rank, so that the others stay
// with their sender; if it is for none, the message is kept, up to a limit.
class Mailbox {
 public:
  Mailbox(Messages& net, const Names& names)
      : net_(net, everyone(net), kPrograms),
        names_(names),
        inboxes_(net.size()),
        awaited_(net.size() + 1) {}

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
    waiting_.push_back(&receive);
    ++receives_from(receive.source);
    co_await receive;
    if (!receive.error.empty()) throw std::runtime_error(receive.error);
    op.source->store(receive.source);
  }
  // [/send]

 private:
  static constexpr size_t kMostKept = 64 << 20; // bytes of the messages of one rank

  struct Receive final : public Awaited { // one that waits
    Receive(Mailbox& mailbox, const Operation& op)
        : mailbox(mailbox), note(op.note), target(op.out[0]), source(op.note.root) {}
    ~Receive() { mailbox.forget(*this); }

    bool ready() override {
      if (!ended) mailbox.look();
      return ended;
    }
    std::vector<int> missing() const override {
      return source == kAnySource ? std::vector<int>() : std::vector{source};
    }
    std::string because() const override {
      const size_t kept = source < 0 ? 0 : mailbox.inboxes_[source].bytes_kept;
      return kept < kMostKept ? "" : full_of(kept);
    }
    bool could_be_from(int rank) const {
      return source == rank || source == kAnySource;
    }

    Mailbox& mailbox;
    const Note note;
    const Bytes target;
    int source;
    bool ended = false;
    std::string error;
  };
  struct Kept { // a message that no receive waited for
    Note note;
    Blob bytes;
  };
  struct Inbox { // the messages of one rank
    Head head;
    std::optional<Transfer> head_comes, message_comes;
    Receive* receive = nullptr; // that the message is for, which comes; null: kept
    Blob bytes; // of the message that comes, if it will be kept
    std::list<Kept> kept;
    size_t bytes_kept = 0;

    bool is_full() const { // also of messages without bytes
      return bytes_kept + kept.size() * sizeof(Kept) >= kMostKept;
    }
  };

  static std::vector<int> everyone(const Messages& net) {
    std::vector<int> ranks(net.size());
    for (int rank = 0; rank < net.size(); ++rank) ranks[rank] = rank;
    return ranks;
  }

  void look() {
    for (int from = 0; from < net_.size(); ++from) {
      while (from != net_.rank() && advance(from)) continue;
    }
  }

  // [advance]
  // Brings the messages of a rank a step further; returns whether it could.
  bool advance(int from) {
    Inbox& inbox = inboxes_[from];
    if (inbox.message_comes) {
      if (!inbox.message_comes->ready()) return false;
      inbox.message_comes.reset();
      if (inbox.receive == nullptr)
        inbox.kept.push_back({inbox.head.note, std::move(inbox.bytes)});
      else
        inbox.receive->ended = true;
      inbox.receive = nullptr;
      return true;
    }
    if (deliver_kept(inbox, from)) return true;
    if (!inbox.head_comes) {
      if (awaited_[from] == 0 && awaited_.back() == 0) return false;
      inbox.head_comes.emplace(net_, Way::receive, from, bytes_of(inbox.head));
    }
    return inbox.head_comes->ready() && begin(inbox, from);
  }

  // Begins to receive the message whose head has come.
  bool begin(Inbox& inbox, int from) {
    Receive* const receive = take_receive(from, inbox.head.note);
    if (receive == nullptr && inbox.is_full()) return false;
    if (receive != nullptr && !receive->error.empty()) {
      receive->ended = true; // the group fails, and the message stays where it is
      return false;
    }
    inbox.head_comes.reset();
    inbox.receive = receive;
    inbox.bytes.resize(receive == nullptr ? inbox.head.bytes : 0);
    inbox.bytes_kept += inbox.bytes.size();
    const Bytes target = receive == nullptr ? Bytes(inbox.bytes) : receive->target;
    inbox.message_comes.emplace(net_, Way::receive, from, target);
    return true;
  }
  // [/advance]

  bool deliver_kept(Inbox& inbox, int from) {
    for (auto message = inbox.kept.begin(); message != inbox.kept.end(); ++message) {
      Receive* const receive = take_receive(from, message->note);
      if (receive == nullptr) continue;
      if (receive->error.empty()) copy(receive->target, message->bytes);
      receive->ended = true;
      inbox.bytes_kept -= message->bytes.size();
      inbox.kept.erase(message);
      return true;
    }
    return false;
  }

  // The first receive that waits for this message; it waits no longer.
  Receive* take_receive(int from, const Note& message) {
    const auto found = std::ranges::find_if(waiting_, [&](const Receive* each) {
      return each->could_be_from(from) && each->note.tag == message.tag;
    });
    if (found == waiting_.end()) return nullptr;
    Receive* const receive = *found;
    waiting_.erase(found);
    --receives_from(receive->source);
    receive->source = from;
    const Note& note = receive->note;
    if (note.bytes != message.bytes || note.dtype != message.dtype)
      receive->error = disagreement(names_, net_.rank(), note, from, message);
    return receive;
  }

  // How many receives wait for a rank, or for any: each look asks, and each receive looks.
  size_t& receives_from(int source) {
    return source == kAnySource ? awaited_.back() : awaited_[source];
  }

  void forget(Receive& receive) {
    if (std::erase(waiting_, &receive) > 0) --receives_from(receive.source);
    for (Inbox& inbox : inboxes_) {
      if (inbox.receive == &receive) inbox.message_comes.reset();
    }
  }

  Part net_;
  const Names& names_;
  std::vector<Inbox> inboxes_;
  std::list<Receive*> waiting_; // in the order of their calls
  std::vector<size_t> awaited_; // those of them for each rank, and then for any
};

} // namespace frame

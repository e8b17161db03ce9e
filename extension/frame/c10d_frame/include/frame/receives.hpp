#pragma once

#include <list>

#include "transport.hpp"

namespace frame {

// The same text on both ranks.
inline std::string disagreement(
    const Names& names, int rank, const Note& note, int other, const Note& its) {
  if (other < rank) return disagreement(names, other, its, rank, note);
  return "the ranks do not agree: " + names.who(rank) + " runs " + describe(note) +
      ", " + names.who(other) + " runs " + describe(its);
}

// Which message belongs to which receive, by sender and tag: for a mailbox, which moves the
// bytes. No message is kept for which a receive waits.
class Receives {
 public:
  Receives(int rank, int size, const Names& names)
      : rank_(rank), names_(names), kept_(size), awaited_(size + 1) {}
  Receives(const Receives&) = delete;

 protected:
  ~Receives() = default;

  struct Receive final : public Awaited {
    Receive(Receives& all, const Operation& op)
        : all(all), note(op.note), target(op.out[0]), source(op.note.root) {
      all.add(*this);
    }
    Receive(const Receive&) = delete;
    ~Receive() { all.drop(*this); }

    // Of many that wait, only the first looks, because a look is for all of them.
    bool ready() override {
      if (!ended && !all.disagreement_.empty())
        throw std::runtime_error(all.disagreement_);
      moved_ = !ended && all.looks(*this) && all.look();
      return ended;
    }
    bool moved() const override { return moved_; } // perhaps another one
    std::vector<int> missing() const override {
      return source == kAnySource ? std::vector<int>() : std::vector{source};
    }
    std::string because() const override {
      return source < 0 || !all.is_full(source) ? "" : full_of(all.kept_[source].bytes);
    }

    bool could_be_from(int rank) const {
      return source == rank || source == kAnySource;
    }
    void end_with(const Blob& message) {
      copy(target, message);
      ended = true;
    }

    Receives& all;
    const Note note;
    const Bytes target;
    int source;
    bool ended = false; // it has its message

   private:
    friend Receives;
    bool moved_ = false;
    std::optional<std::list<Receive*>::iterator> place_; // while it waits
  };

  // Brings all messages further, for all receives; returns whether any got on.
  virtual bool look() = 0;
  // Forgets a receive whose message has not come to its end.
  virtual void forget(Receive&) {}

  // The first receive that waits for this message; it waits no longer. Throws if it
  // disagrees: then no receive gets a message any more, and the group fails.
  Receive* take(int from, const Note& message) {
    // [first-receive]
    const auto found = std::ranges::find_if(waiting_, [&](const Receive* receive) {
      return receive->could_be_from(from) && receive->note.tag == message.tag;
    });
    if (found == waiting_.end()) return nullptr;
    Receive* const receive = *found;
    // [/first-receive]
    require_agreement(*receive, from, message);
    stop_waiting(*receive);
    receive->source = from;
    return receive;
  }

  // Keeps a message that has come; but a receive may wait for it since.
  void keep(int from, const Note& note, Blob bytes) {
    if (Receive* const receive = take(from, note)) return receive->end_with(bytes);
    kept_[from].bytes += size_of(bytes);
    kept_[from].messages.push_back({note, std::move(bytes)});
  }

  // Whether no more messages of a rank are kept.
  bool is_full(int from) const { return kept_[from].bytes >= kMostKept; }

  // Whether a receive waits for a message of this rank: the others stay with their sender.
  bool awaits(int from) const { return awaited_[from] > 0 || awaited_.back() > 0; }

 private:
  static constexpr size_t kMostKept = 64 << 20; // bytes of the messages of one rank

  struct Message {
    Note note;
    Blob bytes;
  };
  struct Kept { // of one rank
    std::list<Message> messages;
    size_t bytes = 0;
  };
  static size_t size_of(const Blob& bytes) { // also of a message without bytes
    return sizeof(Message) + bytes.size();
  }

  void add(Receive& receive) {
    for (int from = 0; from < static_cast<int>(kept_.size()); ++from) {
      if (receive.could_be_from(from) && take_kept(receive, from)) return;
    }
    receive.place_ = waiting_.insert(waiting_.end(), &receive);
    ++count_of(receive.source);
  }

  bool take_kept(Receive& receive, int from) {
    auto& [messages, bytes] = kept_[from];
    const auto has_tag = [&](const auto& each) {
      return each.note.tag == receive.note.tag;
    };
    const auto found = std::ranges::find_if(messages, has_tag);
    if (found == messages.end()) return false;
    require_agreement(receive, from, found->note);
    receive.source = from;
    receive.end_with(found->bytes);
    bytes -= size_of(found->bytes);
    messages.erase(found);
    return true;
  }

  void require_agreement(const Receive& receive, int from, const Note& message) {
    const Note& note = receive.note;
    if (note.bytes == message.bytes && note.dtype == message.dtype) return;
    disagreement_ = disagreement(names_, rank_, note, from, message);
    throw std::runtime_error(disagreement_);
  }

  // Those whose messages are on their way may be the only ones.
  bool looks(const Receive& receive) const {
    return waiting_.empty() || waiting_.front() == &receive;
  }

  void drop(Receive& receive) {
    if (receive.place_)
      stop_waiting(receive);
    else if (!receive.ended)
      forget(receive);
  }
  void stop_waiting(Receive& receive) {
    waiting_.erase(*std::exchange(receive.place_, std::nullopt));
    --count_of(receive.source);
  }
  // How many receives wait for a rank, or for any.
  size_t& count_of(int source) {
    return source == kAnySource ? awaited_.back() : awaited_[source];
  }

  const int rank_;
  const Names& names_;
  std::vector<Kept> kept_;
  std::list<Receive*> waiting_; // in the order of their calls
  std::vector<size_t> awaited_; // those of them for each rank, and then for any
  std::string disagreement_; // of a receive and its message: at_once() may swallow it
};

} // namespace frame

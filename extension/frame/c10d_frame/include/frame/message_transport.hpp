#pragma once

#include "algorithms/algorithms.hpp"
#include "mailbox.hpp"

namespace frame {

// [noted]
// The messages of one collective. Before the first one to each rank goes a head, whose note
// the receiver compares: so ranks find out that they have called different things.
class Noted final : public Messages {
 public:
  Noted(Messages& net, const Note& note, const Names& names)
      : net_(net), mine_{note, 0}, names_(names), peers_(net.size()) {}

  int rank() const override { return net_.rank(); }
  int size() const override { return net_.size(); }
  int host(int rank) const override { return net_.host(rank); }

  void begin(Transfer& transfer) override {
    Peer& peer = peers_[transfer.other];
    const bool sends = transfer.way == Way::send;
    auto& head = sends ? peer.sent : peer.received;
    const Bytes bytes = bytes_of(sends ? mine_ : peer.its);
    if (!head) head.emplace(net_, transfer.way, transfer.other, bytes);
    if (sends || peer.agrees) return net_.begin(transfer);
    waiting_.push_back(&transfer);
    look();
  }

  // Looks for all heads: steps may ask for the end of one transfer after another.
  void look() override {
    if (waiting_.empty()) return;
    net_.look();
    std::vector<Transfer*> next;
    for (Transfer* const each : waiting_) {
      if (peers_[each->other].received->ended) next.push_back(each);
    }
    for (Transfer* const each : next) {
      Peer& peer = peers_[each->other];
      const Note &mine = mine_.note, &its = peer.its.note;
      if (!(its == mine))
        throw std::runtime_error(disagreement(names_, rank(), mine, each->other, its));
      peer.agrees = true;
      std::erase(waiting_, each);
      net_.begin(*each);
    }
  }

  void forget(Transfer& transfer) override {
    if (std::erase(waiting_, &transfer) == 0) net_.forget(transfer);
  }

  // The end of the heads that this rank has sent.
  Steps sent() {
    for (Peer& peer : peers_) {
      if (peer.sent) co_await *peer.sent;
    }
  }

 private:
  struct Peer {
    std::optional<Transfer> sent, received; // the heads
    Head its; // that it has sent
    bool agrees = false;
  };

  Messages& net_;
  Head mine_;
  const Names& names_;
  std::vector<Peer> peers_;
  std::vector<Transfer*> waiting_; // receives, for the head of their rank
};
// [/noted]

// A transport for whatever has messages between two ranks, and no collectives.
class MessageTransport : public Transport {
 public:
  MessageTransport(Place place, std::shared_ptr<Messages> net, const Choice& choice)
      : Transport(std::move(place)),
        net_(std::move(net)),
        choice_(choice),
        mailbox_(std::in_place, *net_, names()) {}

  // [exchange]
  Steps exchange(const Note& note, Pieces shown, int from, Blobs& received) override {
    std::vector<Head> mine(size(), Head{note, 0}), its(size());
    its[rank()] = mine[rank()];
    Transfers heads(*net_), pieces(*net_);
    const auto piece_for = [&](int rank) {
      return shown.empty() ? Bytes() : shown[shown.size() == 1 ? 0 : rank];
    };
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) continue;
      mine[other].bytes = piece_for(other).size();
      heads.send(other, bytes_of(mine[other]));
      heads.receive(other, bytes_of(its[other]));
    }
    co_await heads;
    std::vector<Note> notes;
    for (const Head& head : its) notes.push_back(head.note);
    frame::compare(notes, names());
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) continue;
      if (mine[other].bytes > 0) pieces.send(other, piece_for(other));
      received[other].resize(its[other].bytes);
      if (its[other].bytes > 0) pieces.receive(other, received[other]);
    }
    co_await pieces;
    const Bytes own = piece_for(rank());
    received[rank()].assign(own.begin(), own.end());
    for (int other = 0; other < size(); ++other) {
      if (from != kEveryone && from != other) received[other].clear();
    }
  }
  // [/exchange]

  // [collective]
  Steps collective(const Operation& op) override {
    if (op.note.kind == Kind::monitored_barrier) { // which names all that are late
      co_await Transport::collective(op);
      co_return;
    }
    Noted net(*net_, op.note, names());
    Operation agreed = op;
    if (choice_.asks_for_even(op.note.kind, size()))
      co_await agree(net, agreed.note.even);
    else
      agreed.note.even = 0;
    co_await choice_.of(agreed, net).run(net, agreed);
    co_await net.sent();
  }
  // [/collective]

  Steps send(const Operation& op) override { return mailbox_->send(op); }
  Steps receive(const Operation& op) override { return mailbox_->receive(op); }

 protected:
  // The last of all transfers: after leave(), there is no send and no receive.
  void forget_messages() { mailbox_.reset(); }

 private:
  // Sets `even` to whether it is set on all ranks, in the steps of a barrier.
  static Steps agree(Messages& net, uint8_t& even) {
    const int size = net.size(), me = net.rank();
    for (int known = 1; known < size; known *= 2) {
      uint8_t its = 0;
      SendReceive both(net, around(me + known, size), bytes_of(even),
          around(me - known, size), bytes_of(its));
      co_await both;
      even = even & its;
    }
  }

  const std::shared_ptr<Messages> net_;
  const Choice choice_;
  std::optional<Mailbox> mailbox_;
};

} // namespace frame

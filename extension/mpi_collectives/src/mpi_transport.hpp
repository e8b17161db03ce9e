#pragma once

#include "frame/watch.hpp"

#include "calls.hpp"
#include "world.hpp"

namespace mpi_collectives {

using frame::milliseconds, frame::Steps;

// Moves bytes with MPI. The threads that drive only look at what the thread of the library
// has done, so they cannot block.
class MpiTransport final : public frame::Transport {
 public:
  MpiTransport(
      const frame::Place& place, const std::string& interface, milliseconds heartbeat)
      : Transport(place), heartbeat_(heartbeat), watch_(place, heartbeat, bell()) {
    ranks_ = Ranks{World::get().communicator(place, interface), rank(), size()};
  }

  bool can_block() const override { return false; }

  // [exchange]
  // Data that is too long for the heads goes through MPI's exchange of all with all, in
  // memory of its own: nobody keeps `shown` for MPI.
  Steps exchange(const Note& note, Pieces shown, int from, Blobs& received) override {
    struct Copies {
      Blobs shown, received;
      std::vector<Bytes> in, out;
    };
    const auto copies = std::make_shared<Copies>();
    for (const Bytes piece : shown)
      copies->shown.emplace_back(piece.begin(), piece.end());
    const auto heads = std::make_shared<Heads>();
    for (int rank = 0; rank < size(); ++rank)
      heads->mine.push_back(head(note, shown, rank));
    co_await meet(heads);
    bool few = true;
    copies->received.resize(size());
    for (int rank = 0; rank < size(); ++rank) {
      Head& its = heads->all[rank];
      auto& blob = copies->received[rank];
      few = few && its.most <= Head::kFew;
      blob.resize(its.bytes);
      if (its.bytes <= Head::kFew) frame::copy(blob, its.data);
      copies->out.push_back(blob);
      const bool one = shown.size() == 1;
      copies->in.push_back(
          shown.empty() ? Bytes() : Bytes(copies->shown[one ? 0 : rank]));
    }
    if (!few) {
      Operation op;
      op.note.kind = Kind::all_to_all;
      op.in = copies->in;
      op.out = copies->out;
      op.owner = copies;
      co_await run(op);
    }
    for (int rank = 0; rank < size(); ++rank) {
      if (from != frame::kEveryone && from != rank) continue;
      std::swap(received[rank], copies->received[rank]);
    }
  }
  // [/exchange]

  // [run-collective]
  Steps collective(const Operation& op) override {
    const bool all_to_all = op.note.kind == Kind::all_to_all;
    const bool few = op.note.bytes <= Head::kFew && !all_to_all;
    if (few || (op.reduce && !combines_in_steps(op.note))) {
      co_await Transport::collective(op); // an exchange with the heads
      co_return;
    }
    const auto heads = std::make_shared<Heads>();
    for (int rank = 0; rank < size(); ++rank) {
      heads->mine.push_back(head(op.note, {}, rank));
      if (all_to_all) heads->mine[rank].most = op.in[rank].size();
    }
    co_await meet(heads);
    for (int rank = 0; rank < size() && all_to_all; ++rank) {
      require_size(op.out[rank], heads->all[rank].most, rank);
    }
    co_await run(op);
  }
  // [/run-collective]

  // [messages]
  Steps send(const Operation& op) override {
    const auto message = std::make_shared<Message>(op, op.note);
    long_messages_ += message->is_long();
    message->note.sequence = long_messages_ % (kFirstMessage - kLongData);
    const auto sent = call(1, message);
    const std::vector to{op.note.root};
    co_await run(sent, to);
    if (!message->is_long()) co_return;
    const LongData data{op, op.note.root, message->note.sequence};
    const auto data_sent = call(1, std::make_shared<LongData>(data));
    co_await run(data_sent, to);
  }

  Steps receive(const Operation& op) override {
    const auto message = std::make_shared<Message>(op, op.note);
    const auto received = call(1, message);
    std::vector<int> from;
    if (op.note.root >= 0) from.push_back(op.note.root);
    co_await run(received, from);
    const int source = received->status(0).MPI_SOURCE;
    op.source->store(source);
    require_size(op.out[0], message->note.bytes, source);
    const auto number = std::exchange(message->note.sequence, 0);
    if (message->note.dtype != op.note.dtype) {
      throw std::runtime_error("the ranks do not agree: " + names().who(*op.source) +
          " runs " + describe(message->note) + ", " + names().who(rank()) + " runs " +
          describe(op.note));
    }
    if (!message->is_long()) co_return;
    const LongData data{op, source, number};
    const auto data_received = call(1, std::make_shared<LongData>(data));
    from = {source};
    co_await run(data_received, from);
  }
  // [/messages]

  std::optional<std::string> failure() override {
    const auto failure = watch_.failure();
    return failure ? failure : stuck();
  }
  std::optional<std::string> lost(const std::vector<int>& missing) override {
    return watch_.lost(missing);
  }
  void announce(const std::string& reason) override { watch_.announce(reason); }
  bool has_told() override { return watch_.has_told(); }

  // [leave]
  // MPI may still need this process to deliver what others wait for, so it stays until all
  // have come here, at most for kDelivery, which is enough for the few bytes that MPI has
  // buffered.
  Steps leave(bool orderly) override {
    bool together = false;
    if (orderly) {
      const auto limit = frame::Clock::now() + kDelivery;
      Operation barrier;
      const auto call = this->call(1, std::make_shared<Collective>(barrier));
      library().begin(call);
      frame::Until ended([&] { return call->done() || frame::Clock::now() > limit; });
      co_await ended;
      together = call->done();
      if (together) {
        library().add([comm = ranks_.comm]() mutable { MPI_Comm_free(&comm); });
      }
    }
    watch_.leave(together);
    frame::Until left([this] { return watch_.has_left(); });
    co_await left;
  }
  // [/leave]

  // [rest]
  bool rest(
      const frame::Idle&, frame::Clock::time_point limit, const Look& look) override {
    const auto heard = bell()->rings();
    if (look()) return true;
    bell()->wait(heard, std::min(limit, frame::Clock::now() + milliseconds(50)));
    return false;
  }
  // [/rest]

 private:
  // Why MPI goes on no more in this process. It may be the death of another rank, so the
  // watch has time to name that one.
  std::optional<std::string> stuck() const {
    const auto reason = Stuck::reason(heartbeat_ + milliseconds(1000));
    if (!reason) return std::nullopt;
    return names().who(rank()) + ": " + *reason;
  }

  Head head(const Note& note, Pieces shown, int to) const {
    Head head{note, 0, 0, {}};
    if (shown.empty()) return head;
    const Bytes piece = shown[shown.size() == 1 ? 0 : to];
    head.bytes = piece.size();
    for (const Bytes each : shown) head.most = std::max(head.most, each.size());
    if (piece.size() <= Head::kFew) frame::copy(head.data, piece);
    return head;
  }

  // Waits for the heads of all ranks, and compares their notes.
  Steps meet(std::shared_ptr<Heads> heads) {
    heads->all.resize(size());
    heads->all[rank()] = heads->mine[rank()];
    const auto met = call(2 * size(), heads);
    const auto others = ranks_.others();
    co_await run(met, others, /*each=*/true);
    std::vector<Note> notes;
    for (const Head& head : heads->all) notes.push_back(head.note);
    frame::compare(notes, names());
  }

  Steps run(const Operation& op) {
    return run(call(1, std::make_shared<Collective>(op)), ranks_.others());
  }

  // What MPI is to do: `job` posts its requests, and has the memory for them.
  template <class Job>
  std::shared_ptr<Requests> call(size_t requests, std::shared_ptr<Job> job) const {
    return std::make_shared<Requests>(bell(), requests,
        [ranks = ranks_, job](auto& requests) { job->post(ranks, requests); });
  }

  // [run]
  // Waits until MPI has ended a call that needs these ranks, with one request for each of
  // them or for all.
  Steps run(std::shared_ptr<Requests> call, std::vector<int> ranks, bool each = false) {
    library().begin(call);
    frame::Until done([&] { return call->done(); },
        [&] {
          auto missing = ranks;
          std::erase_if(missing, [&](int rank) { return each && !call->open(rank); });
          return missing;
        });
    co_await done;
    if (!call->error().empty()) throw std::runtime_error(call->error());
    // The others may have failed long ago, and have sent before what this call needed.
    co_await watch_.confirm();
  }
  // [/run]

  static constexpr milliseconds kDelivery{250};

  const milliseconds heartbeat_;
  Ranks ranks_;
  frame::Watch watch_;
  uint64_t long_messages_ = 0; // that this rank has sent; numbers for their tags
};

} // namespace mpi_collectives

#pragma once

#include "calls.hpp"
#include "session.hpp"
#include "watch.hpp"

namespace mpi_collectives {

using frame::copy, frame::Kind;

// The pieces of an operation as one block of memory, which MPI needs: they often are one;
// otherwise this has a copy.
struct Block {
  Pieces pieces;
  Blob staged;
  Bytes bytes;

  Block(Pieces all, bool stage) : pieces(all) {
    size_t total = 0;
    bool adjacent = !stage && !all.empty();
    for (const Bytes piece : all) {
      adjacent = adjacent && piece.data() == all[0].data() + total;
      total += piece.size();
    }
    if (!adjacent) staged.resize(total);
    bytes = adjacent ? Bytes(all[0].data(), total) : Bytes(staged);
  }
  void gather() {
    if (!staged.empty()) move([](Bytes one, Bytes piece) { copy(one, piece); });
  }
  void scatter() {
    if (!staged.empty()) move([](Bytes one, Bytes piece) { copy(piece, one); });
  }

 private:
  template <class Copy>
  void move(const Copy& copy_one) {
    size_t at = 0;
    for (const Bytes piece : pieces) {
      copy_one(bytes.subspan(at, piece.size()), piece);
      at += piece.size();
    }
  }
};

inline bool overlap(Bytes one, Bytes other) {
  return one.data() < other.data() + other.size() && other.data() < one.data() + one.size();
}

// Input and output of a collective, for as long as MPI may use them.
struct Buffers {
  // `own` is this rank's piece of the output, where MPI can find the input.
  Buffers(const Operation& op, Bytes own)
      : owner(op.owner),
        in_place(!op.in.empty() && op.in[0].data() == own.data()),
        in(op.in, !in_place && overlaps(op.in, op.out)),
        out(op.out, false) {
    in.gather();
    if (in_place && !out.staged.empty()) out.gather();
  }
  const void* input() const { return in_place ? MPI_IN_PLACE : in.bytes.data(); }

  std::shared_ptr<const void> owner;
  const bool in_place;
  Block in, out;
  std::pair<std::vector<MPI_Count>, std::vector<MPI_Aint>> of_ranks; // all_to_all

 private:
  static bool overlaps(Pieces in, Pieces out) {
    return std::ranges::any_of(in, [&](Bytes one) {
      return std::ranges::any_of(out, [&](Bytes other) { return overlap(one, other); });
    });
  }
};

// Moves bytes with MPI. Threads that drive only look at what the thread of the library
// has done, so they cannot block.
class MpiTransport final : public frame::Transport {
 public:
  MpiTransport(const frame::Place& place, const std::string& interface,
      frame::milliseconds heartbeat)
      : Transport(place), watch_(place, heartbeat) {
    line_.rank = rank();
    line_.size = size();
    const auto comm = std::make_shared<MPI_Comm>(MPI_COMM_NULL);
    Library::get().run(
        [comm, place, interface] {
          *comm = Session::get().communicator(place, interface);
        },
        place.deadline, "to connect the ranks");
    line_.comm = *comm;
  }

  bool can_block() const override { return false; }
  void joined() override { watch_.start(); }

  Steps exchange(const Note& note, Pieces shown, int from, Blobs& received) override {
    std::vector<Head> heads(size());
    std::vector<Blob> copies; // nobody keeps `shown` for MPI
    for (const Bytes piece : shown) copies.emplace_back(piece.begin(), piece.end());
    for (int rank = 0; rank < size(); ++rank) {
      heads[rank] = {note, Head::kNothing, from};
      if (!shown.empty()) heads[rank].bytes = shown[shown.size() == 1 ? 0 : rank].size();
    }
    const auto mine = heads[rank()];
    const auto met = std::make_shared<Heads>(line_, std::move(heads));
    co_await meet(met);
    Blobs blobs(size());
    std::vector<int> from_ranks, to_ranks;
    const auto wants = [](int64_t from, int rank) { return from == frame::kEveryone || from == rank; };
    for (const int rank : line_.others()) {
      const auto& head = met->all()[rank];
      if (wants(from, rank) && head.bytes != Head::kNothing) {
        blobs[rank].resize(head.bytes);
        from_ranks.push_back(rank);
      }
      if (wants(head.from, this->rank()) && mine.bytes != Head::kNothing) to_ranks.push_back(rank);
    }
    if (wants(from, rank()) && !copies.empty()) {
      blobs[rank()] = copies[copies.size() == 1 ? 0 : rank()];
    }
    const auto moved = std::make_shared<Exchange>(line_, std::move(copies), std::move(blobs));
    moved->from = from_ranks;
    moved->to = to_ranks;
    co_await run(moved);
    std::swap(received, moved->received());
  }

  Steps collective(const Operation& op) override {
    const auto reduction = op.reduce ? reduction_of(op.note) : Reduction();
    if (op.reduce && !reduction) {
      co_await Transport::collective(op);
      co_return;
    }
    std::vector<Head> heads(size(), Head{op.note, Head::kNothing, frame::kNobody});
    if (op.note.kind == Kind::all_to_all) {
      for (int rank = 0; rank < size(); ++rank) heads[rank].bytes = op.in[rank].size();
    }
    const auto met = std::make_shared<Heads>(line_, std::move(heads));
    co_await meet(met);
    if (op.note.kind == Kind::barrier || op.note.kind == Kind::monitored_barrier) co_return;
    for (int rank = 0; rank < size() && op.note.kind == Kind::all_to_all; ++rank) {
      require_size(op.out[rank], met->all()[rank].bytes, rank);
    }
    const bool whole = op.note.kind == Kind::all_reduce || op.note.kind == Kind::reduce;
    const bool has_own = op.note.kind == Kind::all_gather || (whole && !op.out.empty());
    const Bytes own = has_own ? op.out[whole ? 0 : rank()] : Bytes();
    const auto buffers = std::make_shared<Buffers>(op, own);
    const auto call = std::make_shared<Single>(line_, buffers, name(op.note.kind),
        [line = line_, note = op.note, buffers, reduction](MPI_Request* request) {
          return post(line, note, *buffers, reduction, request);
        });
    co_await run(call);
    if (reduction.divide != nullptr) {
      for (const Bytes piece : op.out) reduction.divide(buffers->out.bytes.first(piece.size()), size());
    }
    buffers->out.scatter();
  }

  Steps send(const Operation& op) override {
    const auto call = std::make_shared<Message>(line_, op, op.in[0]);
    co_await run(call, op.note.root);
  }

  Steps receive(const Operation& op) override {
    const auto call = std::make_shared<Message>(line_, op, op.out[0]);
    co_await run(call, op.note.root);
    const MPI_Status& status = call->status(0);
    const int from = status.MPI_SOURCE;
    MPI_Count bytes = 0;
    MPI_Get_elements_c(&status, MPI_BYTE, &bytes);
    if (static_cast<uint64_t>(bytes) < op.note.bytes + sizeof(Note)) {
      require_size(op.out[0], bytes - sizeof(Note), from);
    }
    if (call->note().dtype != op.note.dtype) {
      throw std::runtime_error("the ranks do not agree: " + names().who(from) +
          " runs " + describe(call->note()) + ", " + names().who(rank()) + " runs " +
          describe(op.note));
    }
    op.source->store(from);
  }

  std::optional<std::string> failure() override { return watch_.failure(); }
  std::optional<std::string> lost(const std::vector<int>& missing) override {
    return watch_.lost(missing);
  }
  void announce(const std::string& reason) override { watch_.announce(reason); }

  Steps leave(bool orderly) override {
    if (orderly) {
      const auto call = std::make_shared<Single>(
          line_, nullptr, "MPI_Ibarrier", [line = line_](MPI_Request* request) {
            return MPI_Ibarrier(line.comm, request);
          });
      co_await run(call);
    }
    watch_.leave();
    if (orderly) {
      Library::get().add([comm = line_.comm]() mutable { MPI_Comm_free(&comm); });
    }
  }

  bool rest(const frame::Idle&, Clock::time_point limit, const Look& look) override {
    const auto heard = line_.bell->rings();
    if (look()) return true;
    line_.bell->wait(heard, limit);
    return false;
  }
  void wake() override { line_.bell->ring(); }

 private:
  // Waits until MPI has ended a call. `rank` is the other one of a message.
  Steps run(const std::shared_ptr<Call>& given, int rank = frame::kNobody) {
    const auto call = given;
    Library::get().begin(call);
    frame::Until done([&] { return call->done(); }, [&] { return waits_for(rank); });
    co_await done;
    if (!call->error().empty()) throw std::runtime_error(call->error());
  }

  Steps meet(const std::shared_ptr<Heads>& given) {
    const auto heads = given;
    Library::get().begin(heads);
    frame::Until done([&] { return heads->done(); }, [&] { return heads->missing(); });
    co_await done;
    if (!heads->error().empty()) throw std::runtime_error(heads->error());
    std::vector<Note> notes;
    for (const Head& head : heads->all()) notes.push_back(head.note);
    frame::compare(notes, names());
  }

  std::vector<int> waits_for(int rank) const {
    if (rank == frame::kAnySource) return {};
    return rank == frame::kNobody ? line_.others() : std::vector{rank};
  }

  // Posts one collective of MPI. Called by the thread of the library.
  static int post(const Line& line, const Note& note, Buffers& buffers,
      const Reduction& reduction, MPI_Request* request) {
    const Bytes in = buffers.in.bytes, out = buffers.out.bytes;
    const auto size = static_cast<MPI_Count>(note.bytes);
    const auto numbers = [&](Bytes bytes) {
      int item = 1;
      MPI_Type_size(reduction.type, &item);
      return static_cast<MPI_Count>(bytes.size()) / item;
    };
    const int root = note.root;
    switch (note.kind) {
      case Kind::broadcast: {
        void* data = line.rank == root ? in.data() : out.data();
        return MPI_Ibcast_c(data, size, MPI_BYTE, root, line.comm, request);
      }
      case Kind::all_reduce:
        return MPI_Iallreduce_c(buffers.input(), out.data(), numbers(in), reduction.type,
            reduction.op, line.comm, request);
      case Kind::reduce:
        return MPI_Ireduce_c(buffers.input(), out.data(), numbers(in), reduction.type,
            reduction.op, root, line.comm, request);
      case Kind::all_gather:
        return MPI_Iallgather_c(buffers.input(), size, MPI_BYTE, out.data(), size, MPI_BYTE,
            line.comm, request);
      case Kind::gather:
        return MPI_Igather_c(in.data(), size, MPI_BYTE, out.data(), size, MPI_BYTE,
            root, line.comm, request);
      case Kind::scatter:
        return MPI_Iscatter_c(in.data(), size, MPI_BYTE, out.data(), size, MPI_BYTE,
            root, line.comm, request);
      case Kind::reduce_scatter:
        return MPI_Ireduce_scatter_block_c(in.data(), out.data(), numbers(out),
            reduction.type, reduction.op, line.comm, request);
      default:
        return post_all_to_all(line, buffers, request);
    }
  }

  static int post_all_to_all(const Line& line, Buffers& buffers, MPI_Request* request) {
    // MPI reads these until the request is done.
    auto& [counts, places] = buffers.of_ranks;
    for (const Block* block : {&buffers.in, &buffers.out}) {
      MPI_Aint at = 0;
      for (const Bytes piece : block->pieces) {
        counts.push_back(static_cast<MPI_Count>(piece.size()));
        places.push_back(at);
        at += static_cast<MPI_Aint>(piece.size());
      }
    }
    return MPI_Ialltoallv_c(buffers.in.bytes.data(), counts.data(), places.data(),
        MPI_BYTE, buffers.out.bytes.data(), counts.data() + line.size,
        places.data() + line.size, MPI_BYTE, line.comm, request);
  }

  Line line_;
  Watch watch_;
};

} // namespace mpi_collectives

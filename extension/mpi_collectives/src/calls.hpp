#pragma once

#include <array>

#include "types.hpp"

namespace mpi_collectives {

using frame::Blob, frame::Blobs, frame::Kind, frame::Pieces;

// [tags]
// The tag of heads, those of long data, of which a rank may send so many at a time, and
// the first one of messages.
enum Tag { kHeads, kLongData, kFirstMessage = kLongData + (1 << 14) };
// [/tags]

// The ranks of a group: a communicator of MPI, and this rank in it.
struct Ranks {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;

  std::vector<int> others() const {
    std::vector<int> others;
    for (int other = 0; other < size; ++other) {
      if (other != rank) others.push_back(other);
    }
    return others;
  }
};

// [head]
// What a rank tells each of the others before data moves: what it runs, and how much data
// it has. Short data comes along.
struct Head {
  static constexpr size_t kFew = 1024;

  Note note;
  uint64_t bytes = 0; // of the data for that rank
  uint64_t most = 0; // of the longest data for any rank; in all_to_all, for that rank
  std::array<std::byte, kFew> data;

  size_t size() const { return offsetof(Head, data) + (bytes <= kFew ? bytes : 0); }
};

// The heads of all ranks. A message for each pair of ranks says which one is missing; a
// collective of MPI would not.
struct Heads {
  std::vector<Head> mine, all; // by the other rank

  void post(const Ranks& ranks, Requests::List& requests) {
    for (const int other : ranks.others()) {
      check(MPI_Irecv(&all[other], sizeof(Head), MPI_BYTE, other, kHeads, ranks.comm,
                &requests[other]),
          "MPI_Irecv");
    }
    for (const int other : ranks.others()) {
      check(MPI_Isend(&mine[other], static_cast<int>(mine[other].size()), MPI_BYTE,
                other, kHeads, ranks.comm, &requests[ranks.size + other]),
          "MPI_Isend");
    }
  }
};
// [/head]

// [message]
// A message and its note, which MPI sends and receives as one. Long data comes later.
struct Message {
  static constexpr size_t kLong = 8 << 10; // bytes

  Operation op; // keeps the tensor
  Note note; // of this rank, or of the sender once it has come

  void post(const Ranks& ranks, Requests::List& requests) {
    const bool sends = op.note.kind == Kind::send;
    const Bytes data = !sends ? op.out[0] : is_long() ? Bytes() : op.in[0];
    const int other = op.note.root < 0 ? MPI_ANY_SOURCE : op.note.root;
    int *highest = nullptr, found = 0;
    MPI_Comm_get_attr(ranks.comm, MPI_TAG_UB, &highest, &found);
    const int64_t tag = op.note.tag + kFirstMessage;
    if (tag < kFirstMessage || (found && tag > *highest)) {
      throw std::runtime_error("MPI takes tags from 0 to " +
          std::to_string(*highest - kFirstMessage) + ", got " +
          std::to_string(op.note.tag));
    }
    MPI_Count lengths[] = {sizeof(Note), static_cast<MPI_Count>(data.size())};
    MPI_Aint first = 0, second = 0;
    MPI_Get_address(&note, &first);
    MPI_Get_address(data.data(), &second);
    MPI_Count places[] = {first, second};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    check(MPI_Type_create_hindexed_c(2, lengths, places, MPI_BYTE, &type), "MPI_Type");
    check(MPI_Type_commit(&type), "MPI_Type_commit");
    // A send ends when its message is received, as the frame promises.
    const int error = sends ? MPI_Issend(MPI_BOTTOM, 1, type, other,
                                  static_cast<int>(tag), ranks.comm, &requests[0])
                            : MPI_Irecv(MPI_BOTTOM, 1, type, other,
                                  static_cast<int>(tag), ranks.comm, &requests[0]);
    MPI_Type_free(&type); // once the request is done
    check(error, sends ? "MPI_Issend" : "MPI_Irecv");
  }
  // [/message]

  bool is_long() const { return note.bytes > kLong; } // the sender's data
};

// [long-data]
// The data of a message whose note both ranks have. MPI gets its address, and no datatype
// with two places, of which it would copy a few KiB in each test.
struct LongData {
  Operation op;
  int other;
  uint64_t number; // from the note

  void post(const Ranks& ranks, Requests::List& requests) {
    const int tag = static_cast<int>(kLongData + number);
    const auto size = static_cast<MPI_Count>(op.note.bytes);
    const auto type = MPI_BYTE;
    check(op.note.kind == Kind::send ? MPI_Isend_c(op.in[0].data(), size, type, other,
                                           tag, ranks.comm, &requests[0])
                                     : MPI_Irecv_c(op.out[0].data(), size, type, other,
                                           tag, ranks.comm, &requests[0]),
        "a message");
  }
};
// [/long-data]

// [collective]
// A collective of MPI, and its memory, which MPI may use until it has ended.
struct Collective {
  explicit Collective(const Operation& given)
      : op(given), in(op.in.begin(), op.in.end()) {
    const auto overlaps = [](Bytes one, Bytes other) {
      return one.data() < other.data() + other.size() &&
          other.data() < one.data() + one.size();
    };
    const bool divides = op.note.op == frame::Op::avg; // MPI has no average
    in_place = op.reduce && in.size() == 1 && op.out.size() == 1 &&
        in[0].data() == op.out[0].data();
    bool copied = divides && !in_place;
    for (const Bytes& one : in) {
      // MPI forbids that they overlap.
      for (const Bytes other : op.out) copied |= !in_place && overlaps(one, other);
      // It reduces and scatters what lies in one piece.
      const size_t index = &one - in.data();
      if (op.reduce && index > 0) {
        copied |= one.data() != in[index - 1].data() + in[index - 1].size();
      }
    }
    if (copied) copy_inputs();
    if (!divides) return;
    for (const Bytes& piece : in) op.reduce(piece, {&piece, 1}); // divides it
  }

  void post(const Ranks& ranks, Requests::List& requests) {
    check(start(ranks, &requests[0]), frame::name(op.note.kind));
  }

  int start(const Ranks& ranks, MPI_Request* request) {
    // MPI reads counts and offsets until the request is done.
    from = Extents(in);
    to = Extents(op.out);
    return op.reduce ? start_reduction(ranks, request) : start_copies(ranks, request);
  }

  int start_reduction(const Ranks& ranks, MPI_Request* request) {
    const Reduction with(op); // freed when MPI has begun
    const void* const input = in_place ? MPI_IN_PLACE : first(in);
    void* const output = first(op.out);
    switch (op.note.kind) {
      case Kind::all_reduce:
        return MPI_Iallreduce_c(input, output, with.numbers(in[0]), with.type, with.op,
            ranks.comm, request);
      case Kind::reduce:
        return MPI_Ireduce_c(input, output, with.numbers(in[0]), with.type, with.op,
            op.note.root, ranks.comm, request);
      default:
        for (const Bytes piece : in) numbers.push_back(with.numbers(piece));
        return MPI_Ireduce_scatter_c(
            input, output, numbers.data(), with.type, with.op, ranks.comm, request);
    }
  }

  int start_copies(const Ranks& ranks, MPI_Request* request) {
    const auto size = static_cast<MPI_Count>(op.note.bytes);
    const int root = op.note.root;
    const void* const input = first(in);
    void* const output = first(op.out);
    switch (op.note.kind) {
      case Kind::barrier:
        return MPI_Ibarrier(ranks.comm, request);
      case Kind::broadcast:
        return MPI_Ibcast_c(ranks.rank == root ? first(in) : output, size, MPI_BYTE,
            root, ranks.comm, request);
      case Kind::all_gather:
        return MPI_Iallgatherv_c(input, size, MPI_BYTE, output, to.counts.data(),
            to.offsets.data(), MPI_BYTE, ranks.comm, request);
      case Kind::gather:
        return MPI_Igatherv_c(input, size, MPI_BYTE, output, to.counts.data(),
            to.offsets.data(), MPI_BYTE, root, ranks.comm, request);
      case Kind::scatter:
        return MPI_Iscatterv_c(input, from.counts.data(), from.offsets.data(), MPI_BYTE,
            output, size, MPI_BYTE, root, ranks.comm, request);
      default:
        return MPI_Ialltoallv_c(input, from.counts.data(), from.offsets.data(),
            MPI_BYTE, output, to.counts.data(), to.offsets.data(), MPI_BYTE, ranks.comm,
            request);
    }
  }

  // The address of a buffer that lies in one piece, or whose pieces have offsets.
  static void* first(Pieces pieces) {
    return pieces.empty() ? nullptr : pieces[0].data();
  }
  // [/collective]

  void copy_inputs() {
    for (const Bytes piece : in) copy.insert(copy.end(), piece.begin(), piece.end());
    Bytes rest(copy);
    for (Bytes& piece : in) {
      piece = rest.first(piece.size());
      rest = rest.subspan(piece.size());
    }
  }

  // Pieces as MPI describes them: how far each one is from the first.
  struct Extents {
    Extents() = default;
    explicit Extents(Pieces pieces) {
      for (const Bytes piece : pieces) {
        counts.push_back(static_cast<MPI_Count>(piece.size()));
        offsets.push_back(piece.data() - pieces[0].data());
      }
    }
    std::vector<MPI_Count> counts;
    std::vector<MPI_Aint> offsets;
  };

  const Operation op; // keeps the tensors
  std::vector<Bytes> in; // those of the operation, or their copies
  Blob copy;
  bool in_place;
  Extents from, to;
  std::vector<MPI_Count> numbers; // to reduce, for each rank
};

} // namespace mpi_collectives

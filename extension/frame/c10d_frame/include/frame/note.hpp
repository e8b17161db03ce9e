#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace frame {

enum class Kind : uint8_t {
  barrier,
  broadcast,
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  reduce_scatter,
  all_to_all,
  send,
  receive,
  monitored_barrier
};

// In the order of c10d::ReduceOp::RedOpType.
enum class Op : uint8_t {
  sum,
  avg,
  product,
  min,
  max,
  band,
  bor,
  bxor,
  premul_sum,
  none
};

// With the numbers of c10::ScalarType, so that the side that knows PyTorch can cast. A
// type that is not listed travels as its number.
enum class Dtype : int8_t {
  none = -1,
  uint8,
  int8,
  int16,
  int32,
  int64,
  float16,
  float32,
  float64,
  complex32,
  complex64,
  complex128,
  boolean,
  bfloat16 = 15,
  float8_e5m2 = 23,
  float8_e4m3fn,
  float8_e5m2fnuz,
  float8_e4m3fnuz,
  uint16,
  uint32,
  uint64
};

constexpr int kAnySource = -1;

// A description of an operation, equal on all ranks. A transport sends it along where it
// can: ranks that compare notes find out that they have called different things.
struct Note {
  uint64_t sequence = 0; // of the collectives of the group; 0 for messages
  uint64_t bytes = 0; // of the tensor that has this size on all ranks
  // Of a message. Of a collective: a digest, if sizes differ or the tensor is sparse.
  int64_t tag = 0;
  int32_t root = -1; // or the other rank of a message, or kAnySource
  Kind kind = Kind::barrier;
  Op op = Op::none;
  Dtype dtype = Dtype::none;
  // Of an all_to_all: all pieces of this rank, of input and output, have one size. Ranks
  // do not compare it: one that gives no split sizes may call others that give uneven
  // ones. So the pieces of all ranks are equal only if all notes say so, and an algorithm
  // for equal pieces needs the notes of all ranks, or must agree, before it begins.
  uint8_t even = 0;

  // What ranks compare. There is no padding, so notes can be sent as they are.
  Note compared() const {
    Note note = *this;
    note.even = 0;
    return note;
  }
  bool operator==(const Note& other) const {
    const Note mine = compared(), its = other.compared();
    return std::memcmp(&mine, &its, sizeof(Note)) == 0;
  }
};
static_assert(std::has_unique_object_representations_v<Note>);

inline bool is_message(Kind kind) {
  return kind == Kind::send || kind == Kind::receive;
}

inline const char* name(Kind kind) {
  static constexpr const char* kNames[] = {"barrier", "broadcast", "all_reduce",
      "reduce", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all",
      "send", "recv", "monitored_barrier"};
  const auto index = static_cast<size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "an unknown operation";
}

inline const char* name(Op op) {
  static constexpr const char* kNames[] = {
      "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"};
  const auto index = static_cast<size_t>(op);
  return index < std::size(kNames) ? kNames[index] : "an unknown ReduceOp";
}

inline std::string name(Dtype dtype) {
  static constexpr const char* kNames[] = {"uint8", "int8", "int16", "int32", "int64",
      "float16", "float32", "float64", "complex32", "complex64", "complex128", "bool",
      "", "", "", "bfloat16", "", "", "", "", "", "", "", "float8_e5m2",
      "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32",
      "uint64"};
  const auto index = static_cast<size_t>(dtype);
  const std::string known = index < std::size(kNames) ? kNames[index] : "";
  return known.empty() ? "dtype " + std::to_string(static_cast<int>(dtype)) : known;
}

// The bytes of an element; 1 for a type that is not listed.
inline size_t size_of(Dtype dtype) {
  static constexpr uint8_t kSizes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 1, 2,
      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8};
  const auto index = static_cast<size_t>(dtype);
  return index < std::size(kSizes) ? kSizes[index] : 1;
}

// Whether a reduction may combine two at a time and round each time, as the steps of a
// ring or a tree do, or must combine all sources at once, with one rounding.
//
//   type                    SUM, AVG, PREMUL_SUM, PRODUCT       MIN, MAX, BAND, BOR, BXOR
//   integers, bool          yes: exact, modulo 2^bits           yes: exact
//   float32 and more        yes: their sum rounds at each       yes: exact
//   and complex64 and more    addition in any case
//   float16, bfloat16,      yes, as NCCL: 11 or 8 bits. A sum   yes: exact
//   complex32                 of ones stops at 2048 or 256
//   float8                  no: 3 or 4 bits. It would stop at   yes: exact
//                             8 or 16
//
// A partial sum or product may also overflow where the whole does not, as in float16.
inline bool combines_in_steps(const Note& note) {
  if (note.op == Op::min || note.op == Op::max) return true;
  return note.dtype < Dtype::float8_e5m2 ||
      (note.dtype > Dtype::float8_e4m3fnuz && note.dtype <= Dtype::uint64);
}

// The note as text, for errors: "all_reduce #3 of 4 bytes of float32 with SUM".
inline std::string describe(const Note& note) {
  std::string text = name(note.kind);
  if (note.sequence > 0) text += " #" + std::to_string(note.sequence);
  if (note.dtype != Dtype::none) {
    text += " of ";
    if (note.kind != Kind::all_to_all)
      text += std::to_string(note.bytes) + " bytes of ";
    text += name(note.dtype);
  }
  if (note.op != Op::none) text += std::string(" with ") + name(note.op);
  if (is_message(note.kind)) {
    text += " with tag " + std::to_string(note.tag);
    if (note.root >= 0) text += note.kind == Kind::send ? " to rank " : " from rank ";
    return text + (note.root >= 0 ? std::to_string(note.root) : "");
  }
  if (note.tag != 0) {
    text +=
        note.kind == Kind::all_reduce ? " of a sparse tensor" : " in different pieces";
    text += " (" + std::to_string(note.tag) + ")";
  }
  return text + (note.root >= 0 ? " with root " + std::to_string(note.root) : "");
}

// Why a receive waits, if so many bytes of the messages of its rank are kept that no more
// are: behind the name of the rank.
inline std::string full_of(size_t bytes) {
  return ", of which " + std::to_string(bytes) +
      " bytes of messages without a receive are kept, and no more";
}

// The words by which errors name a group and its ranks.
struct Names {
  std::string backend, group;
  std::vector<uint64_t> global_ranks; // empty: those of the group

  // "rank 1", with the global rank where that is another number.
  std::string who(int rank) const { return "rank " + number(rank); }

  // "Rank 1" or "Ranks 1, 2", the words of PyTorch's own monitored barrier.
  std::string who(const std::vector<int>& ranks) const {
    std::string text = ranks.empty() ? "any rank"
        : ranks.size() == 1          ? "Rank "
                                     : "Ranks ";
    for (const int rank : ranks) text += (rank == ranks[0] ? "" : ", ") + number(rank);
    return text;
  }

 private:
  std::string number(int rank) const {
    const auto index = static_cast<size_t>(rank);
    if (index >= global_ranks.size() || global_ranks[index] == index) {
      return std::to_string(rank);
    }
    const auto global = std::to_string(global_ranks[index]);
    return std::to_string(rank) + " (global rank " + global + ")";
  }
};

// Throws, with the same text on every rank, unless all ranks have called the same.
inline void compare(const std::vector<Note>& notes, const Names& names) {
  for (size_t rank = 1; rank < notes.size(); ++rank) {
    if (notes[rank] == notes[0]) continue;
    throw std::runtime_error("the ranks do not agree: " + names.who(0) + " runs " +
        describe(notes[0]) + ", " + names.who(static_cast<int>(rank)) + " runs " +
        describe(notes[rank]));
  }
}

} // namespace frame

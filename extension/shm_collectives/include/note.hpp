#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

namespace shm_collectives {

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

// The description of a step, which a rank writes when it posts the step. The other
// ranks compare it with their own.
struct Note {
  uint64_t sequence = 0; // the how-many-th operation of the group this is
  uint64_t bytes = 0; // of the tensor that has this size on all ranks
  int64_t tag = 0; // of a message; of a collective: which sizes, if there are several
  int32_t root = -1; // or the other rank of a message
  Kind kind = Kind::barrier;
  Op op = Op::none;
  int8_t dtype = -1; // an at::ScalarType; -1 where there is no tensor
  uint8_t reserved = 0;
  bool operator==(const Note&) const = default;
};

// For profilers: "shm:all_reduce".
inline const char* title(Kind kind) {
  static constexpr const char* kTitles[] = {"shm:barrier", "shm:broadcast",
      "shm:all_reduce", "shm:reduce", "shm:all_gather", "shm:gather", "shm:scatter",
      "shm:reduce_scatter", "shm:all_to_all", "shm:send", "shm:recv",
      "shm:monitored_barrier"};
  const auto index = static_cast<size_t>(kind);
  return index < std::size(kTitles) ? kTitles[index] : "shm:an unknown operation";
}

inline bool is_message(Kind kind) {
  return kind == Kind::send || kind == Kind::receive;
}

inline const char* name(Kind kind) { return title(kind) + 4; }

inline const char* name(Op op) {
  static constexpr const char* kNames[] = {
      "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"};
  const auto index = static_cast<size_t>(op);
  return index < std::size(kNames) ? kNames[index] : "an unknown ReduceOp";
}

// "rank 1", with the global rank where that is another number.
inline std::string who(int rank, const std::vector<uint64_t>& global_ranks) {
  std::string name = "rank " + std::to_string(rank);
  const auto index = static_cast<size_t>(rank);
  if (index < global_ranks.size() && global_ranks[index] != index) {
    name += " (global rank " + std::to_string(global_ranks[index]) + ")";
  }
  return name;
}

// The note as text, for errors: "all_reduce #3 of 4 bytes of Float with SUM".
inline std::string describe(const Note& note) {
  std::string text = name(note.kind);
  if (note.sequence > 0) text += " #" + std::to_string(note.sequence);
  if (note.dtype >= 0) {
    text += " of ";
    if (note.kind != Kind::all_to_all) {
      text += std::to_string(note.bytes) + " bytes of ";
    }
    text += c10::toString(static_cast<c10::ScalarType>(note.dtype));
  }
  if (note.op != Op::none) text += std::string(" with ") + name(note.op);
  const bool message = is_message(note.kind);
  if (message) text += " with tag " + std::to_string(note.tag);
  if (!message && note.tag != 0) {
    text +=
        note.kind == Kind::all_reduce ? " of a sparse tensor" : " in different pieces";
    text += " (" + std::to_string(note.tag) + ")";
  }
  if (note.root >= 0) {
    const char* peer = note.kind == Kind::send ? " to rank " : " from rank ";
    text += (message ? peer : " with root ") + std::to_string(note.root);
  }
  return text;
}

} // namespace shm_collectives

#pragma once

#include <cstdint>
#include <string>

namespace shm_collectives {

enum class Kind : uint8_t {
  barrier, broadcast, all_reduce, reduce, all_gather, gather, scatter, reduce_scatter, all_to_all,
  send, receive, monitored_barrier
};

// In the order of c10d::ReduceOp::RedOpType.
enum class Op : uint8_t { sum, avg, product, min, max, band, bor, bxor, premul_sum, none };

// [note]
// What a rank says about a step when it posts the step. The others compare it
// with what they say themselves.
struct Note {
  uint64_t sequence = 0; // the how-many-th operation of the group this is
  uint64_t bytes = 0; // of the tensor that has this size on all ranks
  int64_t tag = 0; // of a message between two ranks
  int32_t root = -1; // or the other rank of a message
  Kind kind = Kind::barrier;
  Op op = Op::none;
  int8_t dtype = -1; // an at::ScalarType; -1 where there is no tensor
  uint8_t reserved = 0;
  bool operator==(const Note&) const = default;
};
// [/note]

// For profilers: "shm:all_reduce".
const char* title(Kind kind);
inline const char* name(Kind kind) {
  return title(kind) + 4;
}
const char* name(Op op);
// The note as text, for errors: "all_reduce #3 of 4 bytes of Float with SUM".
std::string describe(const Note& note);

} // namespace shm_collectives

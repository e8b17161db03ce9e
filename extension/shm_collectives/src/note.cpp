#include "note.hpp"

#include <c10/core/ScalarType.h>

namespace shm_collectives {

const char* title(Kind kind) {
  static constexpr const char* kTitles[] = {"shm:barrier", "shm:broadcast", "shm:all_reduce",
      "shm:reduce", "shm:all_gather", "shm:gather", "shm:scatter", "shm:reduce_scatter",
      "shm:all_to_all", "shm:send", "shm:recv", "shm:monitored_barrier"};
  const auto index = static_cast<size_t>(kind);
  return index < std::size(kTitles) ? kTitles[index] : "shm:an unknown operation";
}

const char* name(Op op) {
  static constexpr const char* kNames[] = {
      "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"};
  const auto index = static_cast<size_t>(op);
  return index < std::size(kNames) ? kNames[index] : "an unknown ReduceOp";
}

std::string describe(const Note& note) {
  std::string text = name(note.kind);
  if (note.sequence > 0) text += " #" + std::to_string(note.sequence);
  if (note.dtype >= 0) {
    text += " of " + std::to_string(note.bytes) + " bytes of " +
        c10::toString(static_cast<c10::ScalarType>(note.dtype));
  }
  if (note.op != Op::none) text += std::string(" with ") + name(note.op);
  const bool message = note.kind == Kind::send || note.kind == Kind::receive;
  if (message) text += " with tag " + std::to_string(note.tag);
  if (note.root >= 0) {
    text += !message ? " with root " : note.kind == Kind::send ? " to rank " : " from rank ";
    text += std::to_string(note.root);
  }
  return text;
}

} // namespace shm_collectives

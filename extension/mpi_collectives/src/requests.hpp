#pragma once

#include <mpi.h>

#include "frame/library.hpp"

namespace mpi_collectives {

inline frame::Library& library() {
  static auto& library = *new frame::Library("MPI");
  return library;
}

// [check]
// Throws what MPI says about an error: the kind, and the end of the stack of its functions.
inline void check(int error, const char* function) {
  if (error == MPI_SUCCESS) return;
  char buffer[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, buffer, &length);
  const std::string text(buffer, length);
  const size_t kind = text.find(", error stack"), last = text.rfind("): ");
  auto what = std::string(function) + ": " + text.substr(0, kind);
  if (kind < last && last < text.size()) what += ": " + text.substr(last + 3);
  throw std::runtime_error(what);
}
// [/check]

// [requests]
// One or several requests of MPI that belong together, and the function that posts them,
// which owns their memory.
class Requests final : public frame::Call {
 public:
  using List = std::vector<MPI_Request>;

  Requests(
      std::shared_ptr<frame::Bell> bell, size_t count, std::function<void(List&)> post)
      : Call(std::move(bell)),
        post_(std::move(post)),
        requests_(count, MPI_REQUEST_NULL),
        statuses_(count),
        open_(count) {
    for (auto& open : open_) open = true;
  }

  // Whether a request goes on, so that an error can name the rank that it waits for.
  bool open(size_t i) const { return open_[i]; }
  const MPI_Status& status(size_t i) const { return statuses_[i]; }

 private:
  void begin() override { post_(requests_); }

  bool has_ended() override {
    bool all = true;
    for (size_t i = 0; i < requests_.size(); ++i) {
      int ended = 0;
      if (!open_[i]) continue;
      check(MPI_Test(&requests_[i], &ended, &statuses_[i]), "MPI_Test");
      open_[i] = ended == 0;
      all &= ended != 0;
    }
    return all;
  }
  // [/requests]

  const std::function<void(List&)> post_;
  List requests_;
  std::vector<MPI_Status> statuses_;
  std::deque<std::atomic<bool>> open_;
};

} // namespace mpi_collectives

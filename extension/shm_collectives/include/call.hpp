#pragma once

#include <ATen/core/Tensor.h>

#include "progress.hpp"

namespace shm_collectives {

// [call]
// One call while it is being prepared: its note, and its tensors as bytes. What
// cannot be used is refused here, before any other rank notices.
class Call {
 public:
  Call(Kind kind, milliseconds timeout) : timeout(timeout) {
    note.kind = kind;
  }

  // The elements of a tensor one after another, wherever they are in memory.
  // What is written to those of an output gets there at the end.
  Bytes input(const at::Tensor& tensor);
  Bytes output(const at::Tensor& tensor);
  Bytes in_place(const at::Tensor& tensor);
  // One tensor for each rank, all of the same size.
  Pieces inputs(const std::vector<at::Tensor>& tensors, int ranks);
  Pieces outputs(const std::vector<at::Tensor>& tensors, int ranks);
  // The rows of a tensor that belong to each rank; no numbers: equally many.
  Pieces split(const at::Tensor& tensor, Bytes bytes, const std::vector<int64_t>& rows,
      int ranks) const;

  template <class... Text>
  void require(bool condition, const Text&... text) const {
    TORCH_CHECK_VALUE(condition, "Backend shm: ", name(note.kind), text...);
  }

  // Gets the results to where they belong.
  void finish() const;

  Note note;
  const milliseconds timeout;
  std::vector<at::Tensor> results; // the outputs
  bool name_all = true; // in errors: all late ranks, or the first

 private:
  void check(const at::Tensor& tensor);
  void check_output(const at::Tensor& tensor) const;
  Bytes keep(const at::Tensor& tensor);

  std::vector<at::Tensor> kept_; // used until the end
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_; // to, from
};
// [/call]

} // namespace shm_collectives

#pragma once

#include <ATen/core/Tensor.h>

#include "collectives.hpp"

namespace shm_collectives {

using Tensors = std::vector<at::Tensor>;

// [call]
// One call of an operation: its note, its timeout, and its tensors as bytes.
// What cannot be used is refused here, before any other rank notices.
class Call {
 public:
  Call(Kind kind, milliseconds timeout, int ranks) : timeout(timeout), ranks_(ranks) {
    note.kind = kind;
  }

  // The elements of a tensor one after another, wherever they are in memory.
  // What is written to those of an output gets there at the end.
  Bytes input(const at::Tensor& tensor);
  Bytes output(const at::Tensor& tensor, bool in_place = false);
  // One tensor for each rank, each as large as `one`, if that is given.
  Pieces inputs(const Tensors& tensors, const Bytes* one = nullptr);
  Pieces outputs(const Tensors& tensors, const Bytes* one = nullptr);
  // One tensor for all ranks, with a piece as large as `one` for each.
  Pieces pieces(Bytes all, Bytes one) const;
  // The rows of a tensor that belong to each rank; no numbers: equally many.
  Pieces rows(const at::Tensor& tensor, Bytes all, std::vector<int64_t> numbers) const;

  template <class T>
  T& single(std::vector<T>& list, const char* what) const {
    require(list.size() == 1, " takes one ", what, ", got ", list.size());
    return list[0];
  }
  int rank(int64_t rank, const char* what) const {
    require(rank >= 0 && rank < ranks_, ": ", what, " ", rank, " is not a rank of a group of ",
        ranks_);
    return static_cast<int>(rank);
  }
  template <class... Text>
  void require(bool condition, const Text&... text) const {
    TORCH_CHECK_VALUE(condition, "Backend shm: ", name(note.kind), text...);
  }

  // Gets the results to where they belong.
  void finish() const;

  Note note;
  milliseconds timeout; // from its first step on
  Tensors results; // the outputs
  bool name_all = true; // in errors: all late ranks, or the first

 private:
  void check(const at::Tensor& tensor);
  void check_sizes(const Pieces& pieces, const char* what, const Bytes* one) const;
  Bytes keep(const at::Tensor& tensor);

  int ranks_;
  Tensors kept_; // used until the end
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_; // to, from
};
// [/call]

} // namespace shm_collectives

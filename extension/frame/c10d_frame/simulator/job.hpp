#pragma once

#include "simulation.hpp"

namespace simulator {

using frame::Kind, frame::Operation, frame::Pieces;
using Number = uint64_t; // the elements of all tensors

// A collective, as all ranks of a simulation call it.
struct Task {
  Kind kind;
  // Of the whole tensor: where a rank has a piece for each rank, of all pieces.
  size_t bytes = 0;
  int root = 0;
  bool in_place = true; // where input and output may be the same memory
  bool even = true; // the pieces of an all_to_all have one size
  bool ordered = false; // with a reduction whose result depends on the order
};

// The arguments of one rank, and what its results must be.
class Job {
 public:
  Job(Rank& rank, const Task& task) : rank_(rank), task_(task) {
    const bool is_root = me() == task.root;
    const int one = task.kind != Kind::barrier, all = rank.size();
    int inputs = one, outputs = one;
    if (task.kind == Kind::broadcast) inputs = is_root, outputs = !is_root;
    if (task.kind == Kind::reduce) outputs = is_root;
    if (task.kind == Kind::gather) outputs = is_root ? all : 0;
    if (task.kind == Kind::all_gather) outputs = all;
    if (task.kind == Kind::scatter) inputs = is_root ? all : 0;
    if (task.kind == Kind::reduce_scatter) inputs = all;
    if (task.kind == Kind::all_to_all) inputs = outputs = all;

    for (int i = 0; i < inputs; ++i) in_.push_back(memory(size_of(me(), i)));
    for (int i = 0; i < outputs; ++i) out_.push_back(memory(size_of(i, me())));
    const bool apart = task.kind == Kind::all_to_all || !task.in_place;
    if (!apart && inputs > 0 && outputs > 0) {
      const size_t mine = static_cast<size_t>(me());
      in_[inputs == 1 ? 0 : mine] = out_[outputs == 1 ? 0 : mine];
    }
    fill();
    set_operation();
  }
  Job(const Job&) = delete; // the operation uses it

  const Operation& operation() const { return operation_; }

  // Throws unless the results are right; where the order counts, unless they are those of
  // the other rank.
  void check(const Job& other) const {
    for (size_t i = 0; i < out_.size(); ++i) {
      const auto results = numbers_of(out_[i]);
      for (size_t k = 0; k < results.size(); ++k) {
        const Number right =
            task_.ordered ? numbers_of(other.out_[i])[k] : expected(i, k);
        if (results[k] == right) continue;
        throw std::runtime_error("element " + to_string(k) + " of output " +
            to_string(i) + " of rank " + to_string(me()) +
            (task_.ordered ? " is not the same as on rank 0" : " is wrong"));
      }
    }
  }

 private:
  using Numbers = std::span<Number>;

  int me() const { return rank_.rank(); }
  bool has_a_piece_for_each() const {
    const Kind kind = task_.kind;
    return kind == Kind::scatter || kind == Kind::reduce_scatter ||
        kind == Kind::all_to_all;
  }
  bool reduces() const {
    const Kind kind = task_.kind;
    return kind == Kind::all_reduce || kind == Kind::reduce ||
        kind == Kind::reduce_scatter;
  }

  // The size of the piece that one rank has for another.
  size_t size_of(int from, int to) const {
    const bool cut = has_a_piece_for_each() || task_.kind == Kind::all_gather ||
        task_.kind == Kind::gather;
    const size_t numbers = task_.bytes / (cut ? rank_.size() : 1) / sizeof(Number);
    return (numbers + (task_.even ? 0 : (3 * from + to) % 4)) * sizeof(Number);
  }

  Bytes memory(size_t size) {
    memory_.push_back(rank_.memory(size));
    return memory_.back();
  }
  static Numbers numbers_of(Bytes bytes) {
    return {reinterpret_cast<Number*>(bytes.data()), bytes.size() / sizeof(Number)};
  }

  // Number k of what a rank has for another.
  static Number number(size_t from, size_t to, size_t k) {
    return (from + 1) * 0x9E3779B97F4A7C15 + (to + 1) * 0xC2B2AE3D27D4EB4F + k * k;
  }
  void fill() {
    if (!rank_.has_bytes()) return;
    for (size_t i = 0; i < in_.size(); ++i) {
      const auto numbers = numbers_of(in_[i]);
      for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = number(me(), i, k);
    }
  }
  Number expected(size_t piece, size_t k) const {
    const bool of_root = task_.kind == Kind::broadcast || task_.kind == Kind::scatter;
    const int to = has_a_piece_for_each() ? me() : 0;
    if (!reduces()) return number(of_root ? task_.root : piece, to, k);
    Number sum = 0;
    for (int rank = 0; rank < rank_.size(); ++rank) sum += 3 * number(rank, to, k);
    return sum;
  }

  // [reduce]
  // reduce() multiplies each source by 3, as AVG divides it: an algorithm that does so
  // twice, or not at all, comes to another result.
  void reduce(Bytes target, Pieces sources, Number factor) {
    const auto& machine = rank_.machine();
    if (sources.size() > 1)
      rank_.work(target.size() * (sources.size() - 1), machine.per_combined_byte);
    else if (sources[0].data() != target.data())
      rank_.work(target.size(), machine.per_copied_byte);
    if (!rank_.has_bytes()) return;
    const auto result = numbers_of(target);
    for (size_t k = 0; k < result.size(); ++k) {
      Number sum = 0;
      for (const Bytes source : sources)
        sum = (task_.ordered ? 7 * sum : sum) + factor * numbers_of(source)[k];
      result[k] = sum;
    }
  }
  // [/reduce]

  void set_operation() {
    operation_.note.kind = task_.kind;
    const bool is_last = task_.kind == Kind::reduce_scatter || in_.empty();
    const auto& pieces = is_last ? out_ : in_;
    const bool uneven = task_.kind == Kind::all_to_all || pieces.empty();
    operation_.note.bytes = uneven ? 0 : pieces[0].size();
    operation_.note.root = task_.root;
    operation_.note.even = task_.kind == Kind::all_to_all && task_.even;
    operation_.in = in_;
    operation_.out = out_;
    if (!reduces()) return;
    operation_.reduce = [this](Bytes to, Pieces from) { reduce(to, from, 3); };
    operation_.combine = [this](Bytes to, Pieces from) { reduce(to, from, 1); };
  }

  Rank& rank_;
  const Task& task_;
  std::vector<Memory> memory_;
  std::vector<Bytes> in_, out_;
  Operation operation_;
};

} // namespace simulator

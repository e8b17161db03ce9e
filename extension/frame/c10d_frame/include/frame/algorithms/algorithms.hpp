#pragma once

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <set>
#include <sstream>

#include "all_reduce.hpp"
#include "all_to_all.hpp"
#include "others.hpp"

namespace frame {

// [table]
struct Algorithm {
  Kind kind;
  const char* name;
  Steps (*run)(Messages&, const Operation&);
  bool needs_even = false; // an all_to_all whose pieces have one size on all ranks
};

inline const Algorithm kAlgorithms[] = {
    {Kind::all_reduce, "ring", all_reduce::ring},
    {Kind::all_reduce, "doubling", all_reduce::doubling},
    {Kind::all_reduce, "halving", all_reduce::halving},
    {Kind::all_reduce, "halving_near", all_reduce::halving_near},
    {Kind::all_reduce, "tree", all_reduce::tree},
    {Kind::all_reduce, "direct", all_reduce::direct},
    {Kind::all_reduce, "two_level", all_reduce::two_level},
    {Kind::all_reduce, "two_level_shares", all_reduce::two_level_shares},
    {Kind::all_gather, "ring", all_gather::ring},
    {Kind::all_gather, "bruck", all_gather::bruck},
    {Kind::reduce_scatter, "ring", reduce_scatter::ring},
    {Kind::reduce_scatter, "pairwise", reduce_scatter::pairwise},
    {Kind::reduce_scatter, "direct", reduce_scatter::direct},
    {Kind::broadcast, "binomial", broadcast::binomial},
    {Kind::broadcast, "chain", broadcast::chain},
    {Kind::broadcast, "scatter_gather", broadcast::scatter_gather},
    {Kind::reduce, "binomial", reduce::binomial},
    {Kind::reduce, "direct", reduce::direct},
    {Kind::all_to_all, "direct", all_to_all::direct},
    {Kind::all_to_all, "pairwise", all_to_all::pairwise},
    {Kind::all_to_all, "bruck", all_to_all::bruck, /*needs_even=*/true},
    {Kind::barrier, "dissemination", barrier::dissemination},
    {Kind::gather, "direct", gather::direct},
    {Kind::scatter, "direct", scatter::direct},
};
// [/table]

// [added]
// All algorithms: those of the table, and those that a program has added.
inline std::deque<Algorithm>& algorithms() {
  static std::deque<Algorithm> all(std::begin(kAlgorithms), std::end(kAlgorithms));
  return all;
}

// An algorithm of your own, under a name that its kind does not have yet:
//
//   inline const frame::Added kMine({frame::Kind::all_reduce, "mine", mine});
//
// The simulator and the options of a backend that includes this then know its name.
struct Added {
  explicit Added(const Algorithm& algorithm) {
    for (const Algorithm& each : algorithms()) {
      if (each.kind != algorithm.kind || std::string_view(each.name) != algorithm.name)
        continue;
      std::fprintf(
          stderr, "there are two algorithms %s=%s\n", name(each.kind), each.name);
      std::abort(); // before the program begins, nothing can catch an exception
    }
    algorithms().push_back(algorithm);
  }
};
// [/added]

// [choice]
// Which algorithm runs an operation. All ranks choose the same, because all have the same
// note, ranks, hosts and options.
class Choice {
 public:
  // `named`: "all_reduce=ring,broadcast=chain", instead of what this would choose.
  explicit Choice(const std::string& named = "") {
    std::istringstream words(named);
    for (std::string word; std::getline(words, word, ',');) {
      const auto end = std::min(word.find('='), word.size());
      const auto kind = word.substr(0, end),
                 name = word.substr(end + (end < word.size()));
      std::string known;
      const Algorithm* found = nullptr;
      for (const Algorithm& each : algorithms()) {
        known += std::string(" ") + frame::name(each.kind) + "=" + each.name;
        if (kind == frame::name(each.kind) && name == each.name) found = &each;
      }
      if (found == nullptr) {
        throw std::invalid_argument(
            "there is no algorithm \"" + word + "\"; there are:" + known);
      }
      named_[found->kind] = found;
    }
  }

  // The note of an all_to_all says here whether the pieces of all ranks have one size.
  const Algorithm& of(const Operation& op, const Messages& net) const {
    const Note& note = op.note;
    if (op.reduce && !combines_in_steps(note)) return find(note.kind, "direct");
    const auto named = named_.find(note.kind);
    if (named == named_.end()) return find(note.kind, name_for(op, net));
    const bool fits = note.even != 0 || !named->second->needs_even;
    return fits ? *named->second : find(note.kind, name_for(op, net));
  }

  // Whether it is worth a few messages to find that out.
  bool asks_for_even(Kind kind, int ranks) const {
    if (kind != Kind::all_to_all) return false;
    const auto named = named_.find(kind);
    return named == named_.end() ? ranks >= 8 : named->second->needs_even;
  }

 private:
  static const Algorithm& find(Kind kind, std::string_view name) {
    return *std::ranges::find_if(algorithms(),
        [&](const Algorithm& each) { return each.kind == kind && each.name == name; });
  }

  // [sizes]
  // The sizes are where the simulator finds another algorithm faster, on links from 1 to
  // 400 Gbit/s; tests/algorithms compares the choice with the best.
  static const char* name_for(const Operation& op, const Messages& net) {
    const size_t ranks = net.size(), bytes = op.note.bytes;
    const bool is_pair = ranks == 2;
    switch (op.note.kind) {
      case Kind::all_reduce:
        return all_reduce_for(bytes, net);
      case Kind::all_gather:
        if (is_pair) return "ring";
        return bytes <= (has_levels(net) ? 2 : 64) * kKiB ? "bruck" : "ring";
      case Kind::reduce_scatter:
        if (has_levels(net)) return bytes <= 2 * kKiB ? "direct" : "ring";
        return bytes <= (ranks <= 16 ? 16 : 1) * kKiB ? "direct" : "pairwise";
      case Kind::broadcast:
        if (bytes <= 128 * kKiB) return "binomial";
        if (ranks <= 16) return "chain";
        return bytes / ranks >= 32 * kKiB ? "scatter_gather" : "binomial";
      case Kind::reduce:
        return bytes * ranks <= 64 * kKiB ? "direct" : "binomial";
      case Kind::all_to_all:
        if (op.note.even == 0) return ranks <= 16 ? "direct" : "pairwise";
        if (op.in[0].size() <= (ranks <= 16 ? 256 : 0) * kKiB) return "direct";
        return op.in[0].size() <= 8 * kKiB ? "bruck" : "pairwise";
      case Kind::barrier:
        return "dissemination";
      default:
        return "direct";
    }
  }

  static const char* all_reduce_for(size_t bytes, const Messages& net) {
    const unsigned ranks = net.size();
    const bool levels = has_levels(net);
    if (bytes <= 16 * kKiB) return levels ? "two_level" : "doubling";
    if (bytes <= 64 * kKiB && levels) return "two_level";
    if (bytes <= 64 * kKiB && ranks > 2 && ranks <= 16) return "direct";
    if (std::has_single_bit(ranks)) return "halving_near";
    // Where ranks are no power of two, halving has two more steps, with whole tensors.
    return bytes / ranks >= 64 * kKiB ? "ring" : "halving_near";
  }
  // [/sizes]

  // Some ranks share a host, and others do not.
  static bool has_levels(const Messages& net) {
    std::set<int> hosts;
    for (int rank = 0; rank < net.size(); ++rank) hosts.insert(net.host(rank));
    return hosts.size() > 1 && std::ssize(hosts) < net.size();
  }

  static constexpr size_t kKiB = 1024;

  std::map<Kind, const Algorithm*> named_;
};
// [/choice]

} // namespace frame

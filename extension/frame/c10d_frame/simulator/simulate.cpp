// Runs algorithms for collectives on thousands of ranks, in virtual time:
//
//   operation=all_reduce algorithm=ring,tree ranks=64,512 bytes=1048576
//   algorithm=all check=yes
//
// simulate.py compiles it, with algorithms of others in front.

#include <cstdio>
#include <iostream>
#include <sstream>

#include "check.hpp"

namespace simulator {

// [options]
// The words of the command line, "name=value" or "name=value,value".
class Options {
 public:
  explicit Options(std::span<char*> words) {
    for (const std::string word : words) {
      const auto end = word.find('=');
      const auto name = word.substr(0, end);
      if (end == word.npos || !texts_.contains(name))
        throw std::invalid_argument(
            "cannot use " + word + "; the options are: " + names());
      texts_[name] = word.substr(end + 1);
    }
  }

  const std::string& text(const std::string& name) const { return texts_.at(name); }
  std::vector<std::string> list(const std::string& name) const {
    std::vector<std::string> words;
    std::istringstream text(texts_.at(name));
    for (std::string word; std::getline(text, word, ',');) words.push_back(word);
    return words;
  }
  std::vector<double> numbers(const std::string& name) const {
    std::vector<double> numbers;
    for (const auto& word : list(name)) {
      size_t used = 0;
      try {
        numbers.push_back(std::stod(word, &used));
      } catch (const std::logic_error&) {
      }
      if (used == 0 || used < word.size() || numbers.back() < 0)
        throw std::invalid_argument(name + "=" + word + " is not a number");
    }
    return numbers;
  }
  double number(const std::string& name) const { return numbers(name).at(0); }

 private:
  std::string names() const {
    std::string all;
    for (const auto& [name, text] : texts_) all += (all.empty() ? "" : " ") + name;
    return all;
  }

  std::map<std::string, std::string> texts_{
      {"operation", "all_reduce"},
      {"algorithm", "all"},
      {"ranks", "64"},
      {"hosts", "0"}, // 0: as many as have 8 ranks each
      {"bytes", "1048576"},
      {"latency", "5"}, // between hosts, in microseconds
      {"rate", "400"}, // of the card of a host, in Gbit/s
      {"overhead", "0.2"}, // of a send, and of a receive, in microseconds
      {"check", "no"},
  };
};
// [/options]

std::vector<const Algorithm*> chosen(const Options& options) {
  std::vector<const Algorithm*> all;
  const auto names = options.list("algorithm");
  std::string known;
  for (const auto& each : frame::algorithms()) {
    if (options.text("operation") != frame::name(each.kind)) continue;
    known += std::string(" ") + each.name;
    const bool wanted = std::ranges::count(names, each.name) > 0;
    if (wanted || names[0] == "all") all.push_back(&each);
  }
  if (all.size() < names.size())
    throw std::invalid_argument("not all of " + options.text("algorithm") +
        " are algorithms of " + options.text("operation") + ", which are:" + known);
  return all;
}

Machine machine_of(const Options& options, int ranks) {
  Machine machine;
  const int hosts = static_cast<int>(options.number("hosts"));
  if (hosts > 0) machine.ranks_per_host = (ranks + hosts - 1) / hosts;
  machine.latency = static_cast<Time>(options.number("latency") * 1e6);
  machine.per_byte = static_cast<Time>(8000 / options.number("rate"));
  machine.per_message = static_cast<Time>(options.number("overhead") * 1e6);
  return machine;
}

// [table]
void print_table(const Options& options) {
  const auto algorithms = chosen(options);
  std::printf("%-16s %6s %5s %10s %12s %10s %14s %14s  %s\n", "algorithm", "ranks",
      "hosts", "bytes", "time (us)", "messages", "bytes sent", "between hosts",
      "choice");
  for (const double ranks : options.numbers("ranks")) {
    for (const double bytes : options.numbers("bytes")) {
      for (const Algorithm* algorithm : algorithms) {
        const int size = std::max(1, static_cast<int>(ranks));
        const auto machine = machine_of(options, size);
        const Task task{algorithm->kind, static_cast<size_t>(bytes)};
        const auto [time, counts, is_chosen] =
            simulate(*algorithm, machine, size, task, false);
        std::printf("%-16s %6d %5d %10zu %12.1f %10ld %14ld %14ld  %s\n",
            algorithm->name, size, machine.host(size - 1) + 1, task.bytes, time / 1e6,
            counts.messages, counts.bytes, counts.bytes_between_hosts,
            is_chosen ? "yes" : "no");
      }
    }
  }
}
// [/table]

// Of all operations, or those that have an algorithm with one of the names.
void check_all(const std::vector<std::string>& names) {
  int runs = 0;
  for (const Algorithm& algorithm : frame::algorithms()) {
    if (names[0] != "all" && std::ranges::count(names, algorithm.name) == 0) continue;
    runs += check(algorithm);
  }
  if (runs == 0) throw std::invalid_argument("no algorithm has such a name");
  std::cout << runs << " runs with real bytes: all right\n";
}

} // namespace simulator

int main(int count, char** words) {
  try {
    const simulator::Options options(std::span(words, count).subspan(1));
    options.text("check") == "no" ? simulator::print_table(options)
                                  : simulator::check_all(options.list("algorithm"));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

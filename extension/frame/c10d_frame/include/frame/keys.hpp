#pragma once

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bytes.hpp"

namespace frame {

// The words of a value. Any program that reaches the store can write to it, so a value
// that is not what a rank writes is refused, with its key and what was expected there.
class Words {
 public:
  Words(const std::string& key, const std::string& text, const std::string& expected)
      : error_("the store has \"" + printable(text.substr(0, kShown)) +
            "\" in the key \"" + key + "\", which should be " + expected +
            "; does another program write to this store?"),
        text_(text) {}

  // Returns the next word, a number that is not negative.
  template <class Number>
  Number number() {
    Number number{};
    const auto end = std::min(text_.find(' ', next_), text_.size());
    const auto [last, error] =
        std::from_chars(text_.data() + next_, text_.data() + end, number);
    if (error != std::errc() || last != text_.data() + end || number < Number{}) {
      refuse();
    }
    next_ = std::min(end + 1, text_.size());
    return number;
  }

  // Returns what follows the words before, which is not empty.
  std::string rest() const {
    if (!more()) refuse();
    return text_.substr(next_);
  }

  bool more() const { return next_ < text_.size(); }

  [[noreturn]] void refuse() const { throw std::runtime_error(error_); }

 private:
  static constexpr size_t kShown = 40; // characters of a value

  static std::string printable(std::string text) {
    for (char& letter : text) {
      if (letter < ' ' || letter > '~') letter = '?';
    }
    return text;
  }

  const std::string error_, text_;
  size_t next_ = 0;
};

// Keys and values of a group, which all its ranks can read and write: the c10d store
// under a prefix that was drawn for this group. Each call asks a server, which may be
// slow; if it is gone, the call throws.
class Keys {
 public:
  using Value = std::vector<uint8_t>;
  using Names = std::vector<std::string>;

  virtual ~Keys() = default;
  // At most 8 MiB, the limit of a TCPStore.
  virtual void set(const std::string& key, std::span<const std::byte> value) = 0;
  // For existing keys that no rank erases meanwhile: a store waits for missing ones, and
  // holds up the other groups of this process until it gives up after some seconds.
  virtual std::vector<Value> get(const Names& keys) = 0;
  // Of a key that any rank may set or erase: empty if it does not exist.
  virtual std::string text(const std::string& key) = 0;
  virtual bool has(const Names& keys) = 0;
  // Adds to a counter, which begins at 0, and returns its value.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual void erase(const std::string& key) = 0;
  // Adds to a text, behind what other ranks add.
  virtual void append(const std::string& key, const std::string& text) = 0;
  // Takes all of it, and leaves an empty text. For one rank alone.
  virtual std::string take(const std::string& key) = 0;
  // Sets a text that no rank has set yet, and returns the text that counts.
  virtual std::string set_first(const std::string& key, const std::string& text) = 0;
  // Sets a text that other ranks read to connect. It is erased when all have connected.
  virtual void publish(const std::string& key, const std::string& text) = 0;

  void set_text(const std::string& key, const std::string& text) {
    set(key, std::as_bytes(std::span(text)));
  }
  // A list, to which each rank adds lines. To see those of all takes one request, so what
  // many ranks ask for again and again is a list, and not a key for each rank.
  struct Line {
    int rank;
    std::string text;
  };
  void add_line(const std::string& key, const Line& line) {
    append(key, std::to_string(line.rank) + " " + line.text + kEnd);
  }
  std::vector<Line> lines(const std::string& key, int ranks) {
    return lines_of(key, text(key), ranks);
  }
  std::vector<Line> take_lines(const std::string& key, int ranks) {
    return lines_of(key, take(key), ranks);
  }
  // Of a counter: 0 if it does not exist, which it does not begin to.
  int64_t count(const std::string& key) {
    const auto value = text(key);
    return value.empty() ? 0 : Words(key, value, "a number").number<int64_t>();
  }

 private:
  static std::vector<Line> lines_of(
      const std::string& key, const std::string& text, int ranks) {
    std::vector<Line> lines;
    for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
      end = std::min(text.find(kEnd, begin), text.size());
      Words words(key, text.substr(begin, end - begin), "lines of ranks");
      const int rank = words.number<int>();
      if (rank >= ranks) words.refuse();
      lines.push_back({rank, words.rest()});
    }
    return lines;
  }

  static constexpr char kEnd = '\0'; // of a line: an error may have several lines
};

} // namespace frame

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bytes.hpp"

namespace frame {

// Keys and values that all ranks of a group can read and write, and nobody else: the
// c10d store under a prefix that was drawn for this group. Each call asks a server, which
// may be slow; if it is gone, the call throws.
class Keys {
 public:
  using Value = std::vector<uint8_t>;
  using Names = std::vector<std::string>;

  virtual ~Keys() = default;
  // At most 8 MiB, the limit of a TCPStore.
  virtual void set(const std::string& key, std::span<const std::byte> value) = 0;
  // For existing keys that no rank erases meanwhile: a store waits for missing ones.
  virtual std::vector<Value> get(const Names& keys) = 0;
  // Of a key that any rank may set or erase: empty if it does not exist.
  virtual std::string text(const std::string& key) = 0;
  virtual bool has(const Names& keys) = 0;
  // Adds to a counter, which begins at 0, and returns its value.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual void erase(const std::string& key) = 0;
  // Sets a text that no rank has set yet, and returns the text that counts.
  virtual std::string set_first(const std::string& key, const std::string& text) = 0;

  void set_text(const std::string& key, const std::string& text) {
    set(key, std::as_bytes(std::span(text)));
  }
};

} // namespace frame

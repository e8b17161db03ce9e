#pragma once

#include <map>
#include <mutex>

#include "frame/keys.hpp"

// A store in memory, for ranks that are threads of one process.
class Values final : public frame::Keys {
 public:
  void set(const std::string& key, std::span<const std::byte> value) override {
    const auto* data = reinterpret_cast<const uint8_t*>(value.data());
    const std::lock_guard lock(mutex_);
    values_[key].assign(data, data + value.size());
  }
  std::vector<Value> get(const Names& keys) override {
    const std::lock_guard lock(mutex_);
    std::vector<Value> found;
    for (const auto& key : keys) found.push_back(values_.at(key));
    return found;
  }
  bool has(const Names& keys) override {
    const std::lock_guard lock(mutex_);
    const auto is_set = [&](const auto& key) { return values_.contains(key); };
    return std::ranges::all_of(keys, is_set);
  }
  void publish(const std::string& key, const std::string& text) override {
    set_text(key, text);
  }
  std::string text(const std::string&) override { return {}; }
  int64_t add(const std::string&, int64_t) override { return 0; }
  void erase(const std::string&) override {}
  void append(const std::string&, const std::string&) override {}
  std::string take(const std::string&) override { return {}; }
  std::string set_first(const std::string&, const std::string&) override { return {}; }

 private:
  std::mutex mutex_;
  std::map<std::string, Value> values_;
};

#pragma once

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "keys.hpp"

namespace frame {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

// The c10d store under a prefix, so that transports need no header of PyTorch.
class StoreKeys final : public Keys {
  template <class Question>
  static auto ask(const Question& question) {
    try {
      return question();
    } catch (const c10::Error& error) {
      throw std::runtime_error(
          std::string("the store is lost: ") + error.what_without_backtrace());
    }
  }

 public:
  StoreKeys(StorePtr store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}

  // [store]
  // A connection of its own: in one client of a TCPStore, a call of another thread that
  // waits for a key would delay these. A clone of a FileStore would read the whole file.
  static StorePtr clone(const StorePtr& store) {
    auto inner = store;
    if (auto* prefix = dynamic_cast<c10d::PrefixStore*>(store.get()))
      inner = prefix->getUnderlyingNonPrefixStore();
    return dynamic_cast<c10d::TCPStore*>(inner.get()) ? store->clone() : store;
  }
  // [/store]

  void set(const std::string& key, std::span<const std::byte> value) override {
    const auto* data = reinterpret_cast<const uint8_t*>(value.data());
    ask([&] { store_->set(prefix_ + key, Value(data, data + value.size())); });
  }

  std::vector<Value> get(const Names& keys) override {
    return ask([&] {
      const auto names = full(keys);
      if (store_->hasExtendedApi()) return store_->multiGet(names);
      std::vector<Value> values;
      for (const auto& name : names) values.push_back(store_->get(name));
      return values;
    });
  }

  // The call of a store that reads and never waits: it writes only what it has read, and
  // returns the first of its values for a key that does not exist.
  std::string text(const std::string& key) override {
    static const std::string nothing = "nothing";
    const auto text = compare_set(key, nothing, nothing);
    return text == nothing ? "" : text;
  }

  bool has(const Names& keys) override {
    return ask([&] { return store_->check(full(keys)); });
  }

  int64_t add(const std::string& key, int64_t amount) override {
    return ask([&] { return store_->add(prefix_ + key, amount); });
  }

  void erase(const std::string& key) override {
    ask([&] { store_->deleteKey(prefix_ + key); });
  }

  std::string set_first(const std::string& key, const std::string& text) override {
    return compare_set(key, "", text);
  }

 private:
  Names full(Names keys) const {
    for (auto& key : keys) key.insert(0, prefix_);
    return keys;
  }

  std::string compare_set(
      const std::string& key, const std::string& expected, const std::string& desired) {
    const auto value = ask([&] {
      return store_->compareSet(prefix_ + key, Value(expected.begin(), expected.end()),
          Value(desired.begin(), desired.end()));
    });
    return {value.begin(), value.end()};
  }

  StorePtr store_;
  std::string prefix_;
};

} // namespace frame

#pragma once

#include <future>
#include <map>
#include <mutex>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "keys.hpp"
#include "process.hpp"
#include "transport.hpp"

namespace frame {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

// The connection of this process to a store. In one client of a TCPStore, a call of
// another thread that waits for a key would delay the keys of the groups. So these have a
// client of their own, which all groups share: each one costs the server a descriptor.
class Connection {
  using Shared = std::shared_ptr<const StorePtr>;

 public:
  // Throws at the limit: a server that has no descriptor left never answers.
  static Shared open(const StorePtr& store, Clock::time_point limit) {
    const auto* server = dynamic_cast<c10d::TCPStore*>(store.get());
    // A client of a FileStore would read the whole file again.
    if (server == nullptr) return std::make_shared<StorePtr>(store);
    static std::mutex mutex;
    static auto& known = *new std::map<std::string, std::weak_ptr<const StorePtr>>();
    const auto& host = server->getHost();
    const auto address = host + ":" + std::to_string(server->getPort());
    // A fork must not read the answers of its parent.
    const auto key = address + " " + std::to_string(fork_count());
    std::unique_lock lock(mutex);
    auto shared = known[key].lock();
    lock.unlock();
    if (!shared || !within<bool>(limit, address, [=] { return answers(*shared); })) {
      const auto options = options_of(*server, limit);
      shared = within<Shared>(limit, address, [=] { return connect(host, options); });
    }
    lock.lock();
    std::erase_if(known, [](const auto& one) { return one.second.expired(); });
    known[key] = shared;
    return shared;
  }

 private:
  // Whether the server of this connection is still there. Another one may have its port.
  static bool answers(const StorePtr& store) {
    try {
      store->check({"is there a server"});
      return true;
    } catch (const c10::Error&) {
      return false;
    }
  }

  static c10d::TCPStoreOptions options_of(
      const c10d::TCPStore& server, Clock::time_point limit) {
    c10d::TCPStoreOptions options;
    options.port = server.getPort();
    options.waitWorkers = false;
    options.useLibUV = server.isLibUvBackend();
    options.timeout = std::max(milliseconds(1),
        std::chrono::duration_cast<milliseconds>(limit - Clock::now()));
    return options;
  }

  static Shared connect(const std::string& host, const c10d::TCPStoreOptions& options) {
    const auto client = c10::make_intrusive<c10d::TCPStore>(host, options);
    client->setTimeout(kForMissingKeys);
    return std::make_shared<StorePtr>(client);
  }

  // Returns what a function returns. At the limit it is left alone, in its thread.
  template <class Result>
  static Result within(Clock::time_point limit, const std::string& address,
      std::function<Result()> function) {
    const auto task = std::make_shared<std::packaged_task<Result()>>(function);
    auto result = task->get_future();
    const auto done = std::make_shared<Bell>();
    try {
      Thread([=] {
        (*task)();
        done->ring();
      }).detach();
    } catch (const std::system_error&) { // no more threads: this one asks
      (*task)();
      done->ring();
    }
    if (done->wait(0, limit) == 0) {
      throw std::runtime_error("the store at " + address +
          " does not answer; its process may have too many open files, or hang");
    }
    return result.get();
  }

  static constexpr milliseconds kForMissingKeys{5000}; // see Keys::get()
};

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
  // The keys of a store whose names begin with the prefix.
  static StoreKeys open(StorePtr store, std::string prefix, Clock::time_point limit) {
    while (auto* outer = dynamic_cast<c10d::PrefixStore*>(store.get())) {
      prefix.insert(0, Prefix::of(*outer) + "/");
      store = outer->getUnderlyingStore();
    }
    return ask([&] { return StoreKeys(Connection::open(store, limit), prefix); });
  }

  // Those of them whose names go on with more.
  StoreKeys below(const std::string& more) const { return {store_, prefix_ + more}; }

  void set(const std::string& key, std::span<const std::byte> value) override {
    const auto* data = reinterpret_cast<const uint8_t*>(value.data());
    ask([&] { store()->set(prefix_ + key, Value(data, data + value.size())); });
  }

  std::vector<Value> get(const Names& keys) override {
    return ask([&] {
      const auto names = full(keys);
      if (store()->hasExtendedApi()) return store()->multiGet(names);
      std::vector<Value> values;
      for (const auto& name : names) values.push_back(store()->get(name));
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
    return ask([&] { return store()->check(full(keys)); });
  }

  int64_t add(const std::string& key, int64_t amount) override {
    return ask([&] { return store()->add(prefix_ + key, amount); });
  }

  void erase(const std::string& key) override {
    ask([&] { store()->deleteKey(prefix_ + key); });
  }

  void append(const std::string& key, const std::string& text) override {
    if (store()->hasExtendedApi()) {
      const Value more(text.begin(), text.end());
      return ask([&] { store()->append(prefix_ + key, more); });
    }
    while (true) { // a FileStore
      const auto before = this->text(key), after = before + text;
      if (compare_set(key, before, after) == after) return;
    }
  }

  std::string take(const std::string& key) override {
    auto text = this->text(key);
    while (!text.empty()) {
      const auto now = compare_set(key, text, "");
      if (now.empty() || now == text) break; // it is taken, or has been erased
      text = now;
    }
    return text;
  }

  void publish(const std::string& key, const std::string& text) override {
    const std::lock_guard lock(published_->mutex);
    published_->keys.push_back(key);
    set_text(key, text);
  }
  void erase_published() {
    const std::lock_guard lock(published_->mutex);
    for (const auto& key : std::exchange(published_->keys, {})) erase(key);
  }

  std::string set_first(const std::string& key, const std::string& text) override {
    return compare_set(key, "", text);
  }

 private:
  StoreKeys(std::shared_ptr<const StorePtr> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}

  // Only a subclass may read the prefix of a PrefixStore.
  struct Prefix : c10d::PrefixStore {
    static const std::string& of(const c10d::PrefixStore& store) {
      return store.*(&Prefix::prefix_);
    }
  };

  const StorePtr& store() const { return *store_; }

  Names full(Names keys) const {
    for (auto& key : keys) key.insert(0, prefix_);
    return keys;
  }

  std::string compare_set(
      const std::string& key, const std::string& expected, const std::string& desired) {
    const auto value = ask([&] {
      return store()->compareSet(prefix_ + key, Value(expected.begin(), expected.end()),
          Value(desired.begin(), desired.end()));
    });
    return {value.begin(), value.end()};
  }

  struct Published {
    std::mutex mutex; // a thread of a library may publish, too
    Names keys;
  };

  const std::shared_ptr<const StorePtr> store_;
  const std::string prefix_;
  const std::shared_ptr<Published> published_ = std::make_shared<Published>();
};

} // namespace frame

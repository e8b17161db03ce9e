#pragma once

#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace frame {

// What the threads of a program coalesce in one group. Between start() and end(), a thread
// collects its calls in a `Batch` of its own, so it holds back the calls of no other thread.
//
// The group owns the batches, so one that its thread never ends goes with the group. Each
// thread finds its batch without a lock, because every call of the group asks for it.
template <class Batch>
class Coalescing {
 public:
  explicit Coalescing(std::string backend) : backend_(std::move(backend)) {}
  ~Coalescing() {
    of_thread_.erase(id_);
  } // other threads keep a number that stays unused
  Coalescing(const Coalescing&) = delete;

  // [batch]
  // The batch of this thread, or null if the thread does not coalesce in this group.
  Batch* batch() const {
    const auto found = of_thread_.find(id_);
    return found == of_thread_.end() ? nullptr : &found->second->batch;
  }

  void start(Batch batch = {}) {
    require(!this->batch(), "coalesces already");
    const std::lock_guard lock(mutex_);
    of_thread_[id_] = batches_.insert(batches_.end(), {std::move(batch), nullptr});
  }

  Batch end() {
    require(batch(), "does not coalesce");
    auto [batch, refusal] = take();
    if (refusal) std::rethrow_exception(refusal);
    return std::move(batch);
  }
  // [/batch]

  // Runs a call. One that is refused while the thread coalesces fails at the end of the
  // batch: if it throws before, PyTorch's context manager never ends the batch, and collects
  // all later calls.
  template <class Call>
  auto run(const Call& call) -> decltype(call()) {
    if (!batch()) return call();
    try {
      return call();
    } catch (...) {
      auto& refusal = of_thread_.at(id_)->refusal;
      if (!refusal) refusal = std::current_exception();
    }
    return {};
  }

  // Collects the calls of a function, and returns them; none where the thread coalesces
  // already, because these calls belong to the batch that end() will return. If the function
  // throws, the thread coalesces no more: PyTorch's context manager would not call end().
  template <class Function>
  std::optional<Batch> collect(Batch batch, const Function& function) {
    const bool inside = this->batch() != nullptr;
    if (!inside) start(std::move(batch));
    try {
      function();
    } catch (...) {
      take();
      throw;
    }
    return inside ? std::nullopt : std::optional(end());
  }

 private:
  void require(bool condition, const char* problem) const {
    if (!condition) throw std::invalid_argument("Backend " + backend_ + ": " + problem);
  }

  struct Entry {
    Batch batch;
    std::exception_ptr refusal; // of the first call that is refused
  };
  using Batches = std::list<Entry>;

  Entry take() {
    const auto place = of_thread_.extract(id_).mapped();
    Entry entry = std::move(*place);
    const std::lock_guard lock(mutex_);
    batches_.erase(place);
    return entry;
  }

  // An address would not do: a later group may get that of an earlier one, and with it the
  // batches that other threads have not ended.
  static inline std::atomic<uint64_t> ids_{0};
  static inline thread_local std::map<uint64_t, typename Batches::iterator> of_thread_;

  const std::string backend_;
  const uint64_t id_ = ids_.fetch_add(1);
  std::mutex mutex_; // guards the list, and not the batches: each is of one thread
  Batches batches_;
};

} // namespace frame

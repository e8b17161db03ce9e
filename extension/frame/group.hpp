#pragma once

#include <map>
#include <set>

#include <ATen/record_function.h>

#include "options.hpp"
#include "rendezvous.hpp"
#include "work.hpp"

namespace frame {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// The type of a Work, which has one operation or several.
inline c10d::OpType type_of(std::optional<Kind> kind) {
  using enum c10d::OpType;
  static constexpr c10d::OpType kTypes[] = {BARRIER, BROADCAST, ALLREDUCE, REDUCE,
      ALLGATHER, GATHER, SCATTER, REDUCE_SCATTER, ALLTOALL, SEND, RECV, BARRIER};
  return kind ? kTypes[static_cast<size_t>(*kind)] : COALESCED;
}

// For profilers, which keep the pointer: "acme:all_reduce". None, if none is running.
inline const char* title_of(const std::string& backend, std::optional<Kind> kind) {
  if (!at::hasCallbacks()) return nullptr;
  static std::mutex mutex;
  static auto& titles = *new std::set<std::string>();
  const std::lock_guard lock(mutex);
  const auto title = backend + ":" + (kind ? name(*kind) : "coalesced");
  return titles.insert(title).first->c_str();
}

// One rank's part of a group: how it begins and ends, how a call runs, and how several
// calls become one Work. The methods of the backend only add their arguments.
class Group {
 public:
  // Returns when all ranks of the group have called it.
  Group(const StorePtr& store, int rank, int size, OptionsPtr options)
      : options_(std::move(options)),
        rank_(rank),
        size_(size),
        timeout_(checked(options_->timeout, options_->backend)) {
    const Names names{
        options_->backend, options_->group_name, options_->global_ranks_in_group};
    Rendezvous rendezvous(store, rank, size, names, options_->timeout);
    engine_ = std::make_shared<Engine>(rendezvous.meet(
        [this](Place place) { return options_->connect(std::move(place)); }));
    engine_->start();
    const std::lock_guard lock(open_mutex_);
    open_groups()[this] = engine_;
  }

  ~Group() {
    coalesced_.erase(id_);
    const WithoutGil without_gil;
    engine_->close("its group was destroyed");
    const std::lock_guard lock(open_mutex_);
    open_groups().erase(this);
  }

  void shutdown() {
    const WithoutGil without_gil;
    engine_->drain();
    engine_->close("its group was destroyed");
  }

  void abort() {
    const WithoutGil without_gil;
    engine_->abort();
  }

  // For the end of Python: no thread may work for a group after that.
  static void close_all() {
    PythonExit::begin();
    const WithoutGil without_gil;
    std::unique_lock lock(open_mutex_);
    const auto groups = open_groups();
    lock.unlock();
    for (const auto& [group, engine] : groups) engine->end_operations("Python exits");
    for (const auto& [group, engine] : groups) engine->end_threads();
  }

  Options& options() const { return *options_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t sequence() const { return engine_->sequence(); }
  void set_timeout(milliseconds timeout) {
    timeout_ = options_->timeout = checked(timeout, options_->backend);
  }

  Arguments begin(Kind kind, milliseconds timeout) const {
    const auto wins = timeout_of_call(timeout, timeout_);
    return {kind, wins, options_->backend, size_};
  }

  // With async, returns the Work; otherwise waits and returns none.
  WorkPtr run(Arguments&& arguments, bool async) {
    const bool plain = !is_message(arguments.note.kind) && !coalesced() &&
        !at::hasCallbacks(); // a profiler, which sees the Work
    Engine::Turn turn;
    const bool ended = plain && engine_->at_once(arguments, turn);
    if (ended && !async) return nullptr;
    const Tensors results(arguments.results.begin(), arguments.results.end());
    const auto operation = std::make_shared<Pending>(std::move(arguments));
    const bool joins = !ended && coalesced();
    if (ended) operation->end(nullptr);
    if (joins && !coalesce(operation, results, async)) return nullptr;
    if (async && !ended && !joins) {
      engine_->submit(operation, std::move(turn));
      engine_->leave(operation);
    }
    WorkPtr work;
    if (async || at::hasCallbacks()) {
      work = this->work(operation->note().kind, {operation}, results);
    }
    if (async) return work;
    engine_->run(operation, std::move(turn));
    if (const auto error = operation->error()) std::rethrow_exception(error);
    return nullptr;
  }

  // supportsCoalescing() stays false: batch_isend_irecv would coalesce in Python, which
  // then holds back the calls of other threads.
  void start_coalescing() {
    TORCH_CHECK_VALUE(
        !coalesced(), "Backend ", options_->backend, ": coalesces already");
    coalesced_[id_];
  }

  WorkPtr end_coalescing() {
    TORCH_CHECK_VALUE(
        coalesced(), "Backend ", options_->backend, ": does not coalesce");
    auto [submit, operations, results] = std::move(coalesced_.extract(id_).mapped());
    for (const auto& operation : operations) {
      if (!submit) engine_->submit(operation);
    }
    if (!operations.empty()) engine_->leave(operations.back());
    return work(std::nullopt, std::move(operations), std::move(results));
  }

  // Calls call(i) for each input, which runs an operation, as one Work. Nothing begins
  // before all have checked their tensors, unless start_coalescing() was called before.
  template <class CallOne>
  WorkPtr together(
      Kind kind, bool async, size_t outputs, size_t inputs, const CallOne& call) {
    begin(kind, kNoTimeout)
        .require(outputs == inputs, " takes as many outputs as inputs");
    const bool inside = coalesced() != nullptr; // its end is still to come
    if (!inside) coalesced_[id_].submit = false;
    try {
      for (size_t i = 0; i < inputs; ++i) call(i);
    } catch (...) {
      coalesced_.erase(id_);
      throw;
    }
    if (inside) return nullptr;
    auto work = end_coalescing();
    if (async) return work;
    work->wait();
    return nullptr;
  }

 private:
  struct Coalesced {
    bool submit = true; // each call at once
    Operations operations;
    Tensors results;
  };
  // The calls that this thread coalesces in this group, if it does.
  Coalesced* coalesced() const {
    const auto entry = coalesced_.find(id_);
    return entry == coalesced_.end() ? nullptr : &entry->second;
  }

  // Adds an operation to the calls of this thread. Returns whether it has a Work of its
  // own; otherwise end_coalescing() returns the one that the program waits for.
  bool coalesce(const PendingPtr& operation, const Tensors& results, bool async) {
    auto& [submit, operations, all_results] = *coalesced();
    if (submit) engine_->submit(operation);
    operations.push_back(operation);
    all_results.insert(all_results.end(), results.begin(), results.end());
    return async && submit;
  }

  WorkPtr work(std::optional<Kind> kind, Operations operations, Tensors results) {
    return c10::make_intrusive<Work>(rank_, type_of(kind),
        title_of(options_->backend, kind), engine_, std::move(operations),
        std::move(results));
  }

  static inline std::mutex open_mutex_;
  using Groups = std::map<Group*, std::shared_ptr<Engine>>;
  static Groups&
  open_groups() { // never destroyed: static objects of others may need it
    static auto& groups = *new Groups();
    return groups;
  }

  const OptionsPtr options_;
  const int rank_, size_;
  std::atomic<milliseconds> timeout_;
  std::shared_ptr<Engine> engine_;

  static inline std::atomic<uint64_t> ids_{0};
  const uint64_t id_ = ids_.fetch_add(1); // an address may be that of an earlier group
  static inline thread_local std::map<uint64_t, Coalesced> coalesced_;
};

} // namespace frame

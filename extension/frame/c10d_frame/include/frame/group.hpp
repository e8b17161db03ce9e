#pragma once

#include <map>
#include <set>

#include <ATen/record_function.h>

#include "coalescing.hpp"
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
        timeout_(checked(options_->timeout, options_->backend)),
        coalescing_(options_->backend) {
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

  void abort() { engine_->abort(); }

  // For the end of Python: no thread may work for a group after that.
  static void close_all() {
    PythonExit::begin();
    const WithoutGil without_gil;
    std::unique_lock lock(open_mutex_);
    const auto groups = open_groups();
    lock.unlock();
    for (const auto& [group, engine] : groups) engine->stop("Python exits");
    for (const auto& [group, engine] : groups) engine->join();
  }

  Options& options() const { return *options_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t sequence() const { return engine_->sequence(); }
  void set_timeout(milliseconds timeout) {
    options_->set_timeout(checked(timeout, options_->backend));
    timeout_ = timeout;
  }

  Arguments begin(Kind kind, milliseconds timeout) const {
    const auto wins = timeout_of_call(timeout, timeout_);
    return {kind, wins, options_->backend, size_};
  }

  // With async, returns the Work; otherwise waits and returns none.
  WorkPtr run(Arguments&& arguments, bool async) {
    if (coalescing_.batch()) return coalesce(std::move(arguments), async);
    Engine::Begun begun;
    const bool profiled = at::hasCallbacks(); // by somebody who sees the Work
    if (!profiled && engine_->at_once(arguments, begun)) {
      if (!async) return nullptr;
      const auto type = type_of(arguments.note.kind);
      return c10::make_intrusive<EndedWork>(rank_, type, engine_, arguments);
    }
    const Tensors results(arguments.results.begin(), arguments.results.end());
    const auto operation = std::make_shared<Pending>(std::move(arguments));
    WorkPtr work; // before the operation can end, for a profiler
    if (async || profiled) {
      work = this->work(operation->note().kind, {operation}, results);
    }
    if (async) {
      engine_->submit(operation, std::move(begun));
      engine_->wait_briefly(operation);
      return work;
    }
    engine_->run(operation, std::move(begun));
    if (const auto error = operation->error()) std::rethrow_exception(error);
    return nullptr;
  }

  // Runs a call of the program: one that is refused fails late in a batch, see Coalescing.
  template <class CallOne>
  WorkPtr run_late(const CallOne& call) {
    return coalescing_.run(call);
  }

  // Of startCoalescing() and endCoalescing() of c10d::Backend. Its supportsCoalescing()
  // stays false in BackendOn: otherwise batch_isend_irecv would coalesce in Python, and
  // Python would hold back the calls of other threads meanwhile.
  void start_coalescing() { coalescing_.start(); }
  WorkPtr end_coalescing() { return work_of(coalescing_.end()); }

  // Calls call(i) for each input, which runs an operation, as one Work. Nothing begins
  // before all have checked their tensors, unless start_coalescing() was called before.
  template <class CallOne>
  WorkPtr together(
      Kind kind, bool async, size_t outputs, size_t inputs, const CallOne& call) {
    const Batch at_the_end{/*submit=*/false, {}, {}};
    auto batch = coalescing_.collect(at_the_end, [&] {
      begin(kind, kNoTimeout)
          .require(outputs == inputs, " takes as many outputs as inputs");
      for (size_t i = 0; i < inputs; ++i) call(i);
    });
    if (!batch) return nullptr; // the program waits for the work of all
    const auto work = work_of(std::move(*batch));
    if (async) return work;
    work->wait();
    return nullptr;
  }

 private:
  // The calls that a thread coalesces.
  struct Batch {
    bool submit = true; // each call at once
    Operations operations;
    Tensors results;
  };

  // Adds a call to those of this thread. It has a Work of its own if it begins now;
  // otherwise end_coalescing() returns the one that the program waits for.
  WorkPtr coalesce(Arguments&& arguments, bool async) {
    const Tensors results(arguments.results.begin(), arguments.results.end());
    const auto operation = std::make_shared<Pending>(std::move(arguments));
    auto& [submit, operations, all_results] = *coalescing_.batch();
    WorkPtr work; // before the operation can end, for a profiler
    if (submit && async) {
      work = this->work(operation->note().kind, {operation}, results);
    }
    if (submit) engine_->submit(operation);
    operations.push_back(operation);
    all_results.insert(all_results.end(), results.begin(), results.end());
    if (!submit) return nullptr;
    engine_->wait_briefly(operation); // or nobody would begin it before the end
    return work;
  }

  WorkPtr work_of(Batch batch) {
    auto& [submit, operations, results] = batch;
    const auto work = this->work(std::nullopt, operations, std::move(results));
    for (const auto& operation : operations) {
      if (!submit) engine_->submit(operation);
    }
    if (!operations.empty()) engine_->wait_briefly(operations.back());
    return work;
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
  Coalescing<Batch> coalescing_;
};

} // namespace frame

#pragma once

#include <Python.h>

#include <map>

#include <ATen/record_function.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "rendezvous.hpp"
#include "work.hpp"

namespace shm_collectives {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

struct OptionsShm : c10d::Backend::Options {
  explicit OptionsShm(milliseconds timeout = kBackendDefaultTimeout)
      : c10d::Backend::Options("shm", timeout) {}
  // Virtual from PyTorch 2.14 on, where the base class could not copy these:
  c10::intrusive_ptr<c10d::Backend::Options> clone() const {
    return c10::make_intrusive<OptionsShm>(*this);
  }

  // Each rank has 4 slots of this size; larger tensors go in several steps.
  uint64_t slot_bytes = 256 << 10;
  // The time for which a waiting thread lets others run before it goes to sleep. By
  // default, 500 microseconds where that helps: see waiting_policy.
  std::optional<microseconds> yield_for;
};

// [policy]
// How the ranks of a group wait for each other, unless the options say so. Spinning is
// for ranks that can all run at the same time; if they cannot, a rank yields to the
// others. But Linux gives processor time to sessions, and only then to the processes in
// each (autogroup): a rank that yields does not let one of another session run.
inline WaitingPolicy waiting_policy(const Memory& memory) {
  const auto ranks = static_cast<int>(memory.layout().ranks);
  const bool spin = static_cast<unsigned>(ranks) <= std::thread::hardware_concurrency();
  bool one_session = true;
  for (int rank = 1; rank < ranks; ++rank) {
    one_session =
        one_session && memory.member(rank).session == memory.member(0).session;
  }
  return {spin, microseconds(spin || one_session ? 500 : 0)};
}
// [/policy]

// Closing a group waits for its thread, which may be about to call Python.
class WithoutGil {
 public:
  WithoutGil()
      : state_(
            Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

// The code that all operations share: the beginning and the end of a group, and the run
// of a call.
class CallRunner : public c10d::Backend {
 public:
  // Returns when all ranks of the group have called it.
  CallRunner(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
      c10::intrusive_ptr<OptionsShm> options)
      : c10d::Backend(rank, size),
        options_(std::move(options)),
        timeout_(options_->timeout) {
    const uint64_t least = 2 * kCacheLine * size;
    TORCH_CHECK_VALUE(
        options_->slot_bytes >= least && options_->slot_bytes <= kMostSlotBytes,
        "Backend shm: slot_bytes must be from ", least, " to ", kMostSlotBytes, " for ",
        size, " ranks, got ", options_->slot_bytes);
    const Layout layout(size, options_->slot_bytes);
    const auto& name = options_->group_name;
    const auto& global_ranks = options_->global_ranks_in_group;
    Memory memory =
        Meeting(*store, rank, layout, options_->timeout, name, global_ranks).meet();
    WaitingPolicy policy = waiting_policy(memory);
    policy.yield_for = options_->yield_for.value_or(policy.yield_for);
    progress_ = std::make_shared<Progress>(
        Group(std::move(memory), rank, name, global_ranks), policy);
    const std::lock_guard lock(open_mutex_);
    open_groups()[this] = progress_;
  }

  ~CallRunner() override {
    coalesced_.erase(id_);
    const WithoutGil without_gil;
    progress_->close("its group was destroyed");
    const std::lock_guard lock(open_mutex_);
    open_groups().erase(this);
  }

  void shutdown() override {
    const WithoutGil without_gil;
    progress_->drain();
    progress_->close("its group was destroyed");
  }

  void abort() override {
    const WithoutGil without_gil;
    progress_->abort();
  }

  // For the end of the process: no thread may work for a group after that.
  static void close_all() {
    PythonExit::begin();
    const WithoutGil without_gil;
    std::unique_lock lock(open_mutex_);
    const auto groups = open_groups();
    lock.unlock();
    for (const auto& [backend, progress] : groups) {
      progress->end_operations("Python exits");
    }
    for (const auto& [backend, progress] : groups) progress->end_threads();
  }

  const std::string getBackendName() const override { return "shm"; }
  microseconds yield_for() const { return progress_->policy().yield_for; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override {
    return options_;
  }
  void setTimeout(milliseconds timeout) override {
    timeout_ = options_->timeout = timeout;
  }
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setSequenceNumberForGroup() override {} // it starts at 0 on every rank

  // supportsCoalescing() stays false: batch_isend_irecv would coalesce in Python,
  // which then keeps back what another thread calls meanwhile.
  void startCoalescing() override {
    TORCH_CHECK_VALUE(coalesced() == nullptr, "Backend shm: is coalescing already");
    coalesced_[id_];
  }

  WorkPtr endCoalescing() override {
    TORCH_CHECK_VALUE(coalesced() != nullptr, "Backend shm: is not coalescing");
    auto [submit, operations, results] = std::move(coalesced_.extract(id_).mapped());
    for (const auto& operation : operations) {
      if (!submit) progress_->submit(operation, Lanes::kCollectives);
    }
    const auto last = operations.empty() ? nullptr : operations.back();
    auto work = c10::make_intrusive<WorkShm>(getRank(), c10d::OpType::COALESCED,
        "shm:coalesced", progress_, std::move(operations), std::move(results));
    if (last) progress_->leave(*last);
    return work;
  }

 protected:
  // The way of every call: begin, check and keep its tensors, number its note,
  // make its steps of that, run them.
  // [timeout-of-a-call]
  Call begin(Kind kind, milliseconds timeout) const {
    // A call without a timeout of its own has -1 or 0, depending on the caller.
    return {kind, timeout > kNoTimeout ? timeout : timeout_.load(), getSize()};
  }
  // [/timeout-of-a-call]

  Note number(Call& call, Bytes data = {}, int root = -1) {
    return number(call, data.size(), root);
  }
  Note number(Call& call, size_t bytes, int root = -1) {
    call.note.bytes = bytes;
    call.note.root = root;
    call.note.sequence = ++sequence_;
    return call.note;
  }

  // With `async`, returns the Work; otherwise waits and returns none.
  WorkPtr run(Call& call, Steps steps, bool async, int lane = Lanes::kCollectives,
      std::shared_ptr<std::atomic<int>> source = nullptr) {
    const Note note = call.note;
    Tensors results = call.results;
    auto operation = std::make_shared<Operation>(std::move(call), std::move(steps));
    Coalesced* coalesced = this->coalesced();
    if (coalesced == nullptr || coalesced->submit) progress_->submit(operation, lane);
    if (coalesced != nullptr) {
      coalesced->operations.push_back(operation);
      coalesced->results.insert(
          coalesced->results.end(), results.begin(), results.end());
      // the end of the coalescing waits
      if (!async || !coalesced->submit) return nullptr;
    }
    // [caller-or-thread]
    const bool profiled = at::hasCallbacks(); // a profiler sees a Work with a title
    if (!async && !profiled) {
      progress_->wait([&] { return operation->ended(); }, Clock::time_point::max());
      if (operation->error()) std::rethrow_exception(operation->error());
      return nullptr;
    }
    auto work = c10::make_intrusive<WorkShm>(getRank(), op_type(note.kind),
        profiled ? title(note.kind) : nullptr, progress_, Operations{operation},
        std::move(results), std::move(source));
    if (async) {
      progress_->leave(*operation);
      return work;
    }
    // [/caller-or-thread]
    work->wait();
    return nullptr;
  }

  // Calls `call(i)` for each input, which runs an operation, as one Work. Nothing
  // begins before all of them have checked their tensors.
  template <class CallOne>
  WorkPtr together(
      Kind kind, bool async, size_t outputs, size_t inputs, const CallOne& call) {
    begin(kind, kNoTimeout)
        .require(outputs == inputs, " takes as many outputs as inputs");
    const bool inside = coalesced() != nullptr; // its end is still to come
    if (!inside) coalesced_[id_].submit = false;
    const uint64_t sequence = sequence_;
    try {
      for (size_t i = 0; i < inputs; ++i) call(i);
    } catch (...) {
      if (!inside) sequence_ = sequence; // nothing has begun
      coalesced_.erase(id_);
      throw;
    }
    if (inside) return nullptr;
    auto work = endCoalescing();
    if (async) return work;
    work->wait();
    return nullptr;
  }

  Channel& channel() { return progress_->channel(); }
  Mailbox& mailbox() { return progress_->mailbox(); }
  const OptionsShm& options() const { return *options_; }

 private:
  // More than there is memory, and little enough to multiply.
  static constexpr uint64_t kMostSlotBytes = uint64_t{1} << 44;

  struct Coalesced {
    bool submit = true; // each call at once
    Operations operations;
    Tensors results;
  };
  // The calls that this thread coalesces in this group; null if it does not.
  Coalesced* coalesced() const {
    const auto found = coalesced_.find(id_);
    return found == coalesced_.end() ? nullptr : &found->second;
  }

  static c10d::OpType op_type(Kind kind) {
    using enum c10d::OpType;
    static constexpr c10d::OpType kTypes[] = {BARRIER, BROADCAST, ALLREDUCE, REDUCE,
        ALLGATHER, GATHER, SCATTER, REDUCE_SCATTER, ALLTOALL, SEND, RECV, BARRIER};
    return kTypes[static_cast<size_t>(kind)];
  }

  static inline std::mutex open_mutex_;
  using Groups = std::map<CallRunner*, std::shared_ptr<Progress>>;
  // never destroyed: static objects of others may need it
  static Groups& open_groups() {
    static auto& groups = *new Groups();
    return groups;
  }

  const c10::intrusive_ptr<OptionsShm> options_;
  std::atomic<milliseconds> timeout_;
  std::atomic<uint64_t> sequence_{0};
  std::shared_ptr<Progress> progress_;

  static inline std::atomic<uint64_t> ids_{0};
  const uint64_t id_ = ids_.fetch_add(1); // an address may be that of an earlier group
  // The calls that this thread coalesces, for each group.
  static inline thread_local std::map<uint64_t, Coalesced> coalesced_;
};

} // namespace shm_collectives

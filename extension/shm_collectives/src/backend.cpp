#include <Python.h>

#include "backend.hpp"

#include <map>

#include <ATen/record_function.h>

#include "rendezvous.hpp"

namespace shm_collectives {

namespace {

// [open-groups]
std::mutex open_mutex;
auto& open_groups() { // never destroyed: static objects of others may need it
  static auto& groups = *new std::map<BackendShm*, std::shared_ptr<Progress>>();
  return groups;
}
// [/open-groups]

// [without-gil]
// Closing a group waits for its thread, which may be about to call Python.
class WithoutGil {
 public:
  WithoutGil() : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};
// [/without-gil]

c10d::OpType op_type(Kind kind) {
  using enum c10d::OpType;
  static constexpr c10d::OpType kTypes[] = {BARRIER, BROADCAST, ALLREDUCE, REDUCE, ALLGATHER,
      GATHER, SCATTER, REDUCE_SCATTER, ALLTOALL, SEND, RECV, BARRIER};
  return kTypes[static_cast<size_t>(kind)];
}

// The longest operation that is worth waiting for in place of a thread.
constexpr uint64_t kLarge = 64 << 10;

// More than there is memory, and little enough to multiply.
constexpr uint64_t kMostSlotBytes = uint64_t{1} << 44;

} // namespace

c10::intrusive_ptr<c10d::Backend::Options> BackendShm::Options::clone() const {
  return c10::make_intrusive<Options>(*this);
}

// [constructor]
BackendShm::BackendShm(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    c10::intrusive_ptr<Options> options) : c10d::Backend(rank, size), options_(std::move(options)),
    timeout_(options_->timeout) {
  TORCH_CHECK_VALUE(options_->slot_bytes >= 2 * kCacheLine * size,
      "Backend shm: slot_bytes must be at least ", 2 * kCacheLine * size, " for ", size, " ranks, got ",
      options_->slot_bytes);
  TORCH_CHECK_VALUE(options_->slot_bytes <= kMostSlotBytes,
      "Backend shm: slot_bytes must be at most ", kMostSlotBytes, ", got ", options_->slot_bytes);
  const Layout layout(size, options_->slot_bytes);
  const auto& name = options_->group_name;
  Memory memory = meet(*store, rank, layout, options_->timeout, name);
  // Spinning is for ranks that can all run at the same time.
  const bool spin = static_cast<unsigned>(size) <= std::thread::hardware_concurrency();
  progress_ = std::make_shared<Progress>(
      Group(std::move(memory), rank, name, options_->global_ranks_in_group),
      WaitingPolicy{spin, options_->yield_for});
  const std::lock_guard lock(open_mutex);
  open_groups()[this] = progress_;
}
// [/constructor]

// [other-groups]
static c10::intrusive_ptr<BackendShm::Options> copy_of(
    const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const auto ours = c10::dynamic_intrusive_pointer_cast<BackendShm::Options>(options);
  TORCH_CHECK_VALUE(ours, "Backend shm takes options of the class shm_collectives.Options");
  return c10::make_intrusive<BackendShm::Options>(*ours);
}

c10::intrusive_ptr<c10d::Backend> BackendShm::split(const c10::intrusive_ptr<c10d::Store>& store,
    const std::vector<int>& ranks, const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const auto mine = std::ranges::find(ranks, getRank());
  if (mine == ranks.end()) return nullptr;
  const auto own = copy_of(options);
  const auto& names = options_->global_ranks_in_group; // none: the same numbers
  own->global_ranks_in_group.clear();
  for (const int rank : ranks) {
    own->global_ranks_in_group.push_back(names.empty() ? rank : names.at(rank));
  }
  const auto rank = static_cast<int>(mine - ranks.begin());
  return merge(store, own, rank, static_cast<int>(ranks.size()));
}

c10::intrusive_ptr<c10d::Backend> BackendShm::merge(const c10::intrusive_ptr<c10d::Store>& store,
    const c10::intrusive_ptr<c10d::Backend::Options>& options, const int& rank, const int& size) {
  const WithoutGil without_gil;
  return c10::make_intrusive<BackendShm>(store, rank, size, copy_of(options));
}
// [/other-groups]

// [end]
BackendShm::~BackendShm() {
  {
    const std::lock_guard lock(open_mutex);
    open_groups().erase(this);
  }
  const WithoutGil without_gil;
  progress_->close("its group was destroyed");
}

void BackendShm::shutdown() {
  const WithoutGil without_gil;
  progress_->drain();
  progress_->close("its group was destroyed");
}

void BackendShm::abort() {
  const WithoutGil without_gil;
  progress_->abort();
}

void BackendShm::close_all() {
  const WithoutGil without_gil;
  std::unique_lock lock(open_mutex);
  const auto groups = open_groups();
  lock.unlock();
  for (const auto& [backend, progress] : groups) progress->close("Python exits");
}
// [/end]

void BackendShm::setTimeout(milliseconds timeout) {
  options_->timeout = timeout;
  timeout_ = timeout;
}

// [run]
// [timeout-of-a-call]
Call BackendShm::begin(Kind kind, milliseconds timeout) const {
  // A call without a timeout of its own has -1 or 0, depending on the caller.
  return {kind, timeout > kNoTimeout ? timeout : timeout_.load(), getSize()};
}
// [/timeout-of-a-call]

Note BackendShm::number(Call& call, Bytes data, int root) {
  call.note.bytes = data.size();
  call.note.root = root;
  call.note.sequence = ++sequence_;
  return call.note;
}

WorkPtr BackendShm::run(Call& call, Steps steps, bool async, int lane,
    std::shared_ptr<std::atomic<int>> source) {
  const Note note = call.note;
  const bool large = note.bytes > kLarge;
  Tensors results = call.results;
  auto operation = std::make_shared<Operation>(std::move(call), std::move(steps));
  if (!coalesced_ || coalesced_->submit) progress_->submit(operation, lane);
  if (coalesced_) {
    coalesced_->operations.push_back(operation);
    coalesced_->results.insert(coalesced_->results.end(), results.begin(), results.end());
    if (!async || !coalesced_->submit) {
      return nullptr; // whoever ends the coalescing waits
    }
  }
  // [caller-or-thread]
  const bool profiled = at::hasCallbacks(); // a profiler sees a Work with a title
  if (!async && !profiled) {
    progress_->wait(*operation, Clock::time_point::max());
    if (operation->error()) std::rethrow_exception(operation->error());
    return nullptr;
  }
  auto work = c10::make_intrusive<WorkShm>(getRank(), op_type(note.kind),
      profiled ? title(note.kind) : nullptr, progress_, Operations{operation}, std::move(results),
      std::move(source));
  if (async) {
    progress_->leave(*operation, large);
    return work;
  }
  // [/caller-or-thread]
  work->wait();
  return nullptr;
}
// [/run]

// [coalescing]
void BackendShm::startCoalescing() {
  TORCH_CHECK_VALUE(!coalesced_, "Backend shm: is coalescing already");
  coalesced_.emplace();
}

WorkPtr BackendShm::endCoalescing() {
  TORCH_CHECK_VALUE(coalesced_, "Backend shm: is not coalescing");
  auto [submit, operations, results] = std::move(*coalesced_);
  coalesced_.reset();
  for (const auto& operation : operations) {
    if (!submit) progress_->submit(operation, Progress::kCollectives);
  }
  const auto last = operations.empty() ? nullptr : operations.back();
  auto work = c10::make_intrusive<WorkShm>(getRank(), c10d::OpType::COALESCED, "shm:coalesced",
      progress_, std::move(operations), std::move(results));
  if (last) progress_->leave(*last, /*large=*/false);
  return work;
}

WorkPtr BackendShm::together(Kind kind, bool async, size_t outputs, size_t inputs,
    const std::function<void(size_t)>& call) {
  begin(kind, kNoTimeout).require(outputs == inputs, " takes as many outputs as inputs");
  const bool inside = coalesced_.has_value(); // its end is still to come
  if (!inside) coalesced_.emplace().submit = false; // check all tensors before
  const uint64_t sequence = sequence_;
  try {
    for (size_t i = 0; i < inputs; ++i) call(i);
  } catch (...) {
    if (!inside) sequence_ = sequence; // nothing has begun
    coalesced_.reset();
    throw;
  }
  if (inside) return nullptr;
  auto work = endCoalescing();
  if (async) return work;
  work->wait();
  return nullptr;
}
// [/coalescing]

} // namespace shm_collectives

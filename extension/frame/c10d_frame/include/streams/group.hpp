#pragma once

#include "frame/coalescing.hpp"

#include "connect.hpp"
#include "lanes.hpp"
#include "work.hpp"

namespace streams {

// The memory of the launches of a group, until the streams have ended these. The mutex of
// the group guards it; what a group leaves at its end, later calls of any group let go of.
class Kept {
 public:
  void add(const LaunchPtr& launch, const std::shared_ptr<Stash>& stash) {
    list_.emplace_back(launch, stash);
  }
  void let_go() {
    let_go(list_);
    const std::lock_guard lock(left_mutex_);
    let_go(left_);
  }
  void leave() {
    const std::lock_guard lock(left_mutex_);
    std::ranges::move(list_, std::back_inserter(left_));
  }

 private:
  using List = std::vector<std::pair<LaunchPtr, std::shared_ptr<Stash>>>;

  // [let-go]
  // Lets go of memory that no stream uses any more. On the thread of the program: the
  // end of a tensor may need Python's lock.
  static void let_go(List& list) {
    std::erase_if(list, [](const auto& kept) {
      const bool unused = kept.first->surely_ended();
      if (unused) kept.second->clear();
      return unused;
    });
  }
  // [/let-go]

  List list_;
  static inline std::mutex left_mutex_; // guards what groups have left
  static inline auto& left_ = *new List(); // it may need Python, and so never ends
};

// One rank's part of a group: it launches calls on streams, and keeps what they use. The
// frame's backend calls it as it calls its own Group.
class StreamGroup {
 public:
  StreamGroup(const StorePtr& store, int rank, int size, frame::OptionsPtr options)
      : options_(std::move(options)),
        own_options_(dynamic_cast<const Options&>(*options_)),
        rank_(rank),
        size_(size),
        timeout_(frame::checked(options_->timeout, options_->backend)),
        thread_(connect(store, rank, size, *options_, own_options_)),
        watchdog_(&thread_->watchdog()),
        communicator_(watchdog_->communicator()),
        lanes_(communicator_.has_tags()),
        coalescing_(options_->backend) {}
  virtual ~StreamGroup() {
    const frame::WithoutGil without_gil;
    if (!in_fork()) end();
    thread_->stop();
  }

  frame::Options& options() const { return *options_; }
  int rank() const { return rank_; }
  uint64_t sequence() const { return sequence_; }
  void set_timeout(milliseconds timeout) {
    options_->set_timeout(frame::checked(timeout, options_->backend));
    timeout_ = timeout;
  }

  frame::Arguments begin(Kind kind, milliseconds timeout) const {
    check_process();
    const auto wins = frame::timeout_of_call(timeout, timeout_);
    return {kind, wins, options_->backend, size_, device::kType};
  }

  // Returns a Work, async or not, or none while coalescing.
  WorkPtr run(frame::Arguments&& given, bool /* async */) {
    const auto kind = given.note.kind;
    given.require(can_reduce(communicator_, given.note), " cannot reduce tensors of ",
        frame::name(given.note.dtype), " with ", frame::name(given.note.op));
    given.require(kind != Kind::monitored_barrier, " is one of the CPU's backend");
    given.require(!is_message(kind) || communicator_.has_tags() ||
            (given.note.tag == 0 && given.note.root != frame::kAnySource),
        ": the library has no tags, and cannot receive from any rank");
    if (kind == Kind::barrier) given.in = {given.input(one_byte())};
    const auto device = communicator_.device();
    given.require(!device || *device == given.device, " takes tensors of ", device,
        " in this group, got one of ", given.device);
    const auto call = std::make_shared<frame::Arguments>(std::move(given));
    const auto batch = coalescing_.batch();
    if (!batch) return launch(kind, {call});
    batch->push_back(call);
    return nullptr; // the program waits for the work of all
  }

  // Runs a call of the program: one that is refused fails late in a batch, see Coalescing.
  template <class CallOne>
  WorkPtr run_late(const CallOne& call) {
    return coalescing_.run(call);
  }

  void start_coalescing() { coalescing_.start(); }
  WorkPtr end_coalescing() { return launch(std::nullopt, coalescing_.end()); }
  template <class CallOne>
  WorkPtr together(
      Kind kind, bool /* async */, size_t outputs, size_t inputs, const CallOne& call) {
    const auto batch = coalescing_.collect({}, [&] {
      begin(kind, kNoTimeout)
          .require(outputs == inputs, " takes as many outputs as inputs");
      for (size_t i = 0; i < inputs; ++i) call(i);
    });
    return batch ? launch(std::nullopt, *batch) : nullptr;
  }

  // The stream of the collectives.
  c10::Stream stream(at::Device device) {
    const frame::WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    return lanes_.stream_of(lanes_.lane(device, {}, {}), kNoStream);
  }

  // [end]
  // Waits for calls that other ranks need, which have deadlines.
  void shutdown() {
    const frame::WithoutGil without_gil;
    if (in_fork()) return;
    {
      const std::lock_guard calls(mutex_);
      watchdog_->refuse("it was destroyed");
    }
    const bool ended = watchdog_->drain(timeout_);
    if (!ended) watchdog_->fail(who() + " has destroyed the group");
    const std::lock_guard calls(mutex_);
    thread_->stop();
    watchdog_->destroy();
    kept_.let_go();
  }

  // Ends what the streams wait for, if the library can. Otherwise its deadline does.
  void abort() {
    const frame::WithoutGil without_gil;
    if (in_fork()) return;
    watchdog_->fail(who() + " has aborted the group");
  }
  // [/end]

 protected:
  // [steps]
  // For a backend that does one of these in another way: it may have a Work of its own,
  // launch in the program's stream, or leave the memory to record_stream().
  virtual c10::intrusive_ptr<Work> new_work(std::optional<Kind> kind) {
    return c10::make_intrusive<Work>(rank_, kind, options_->backend);
  }
  virtual c10::Stream stream_for(const Lane& lane, const c10::Stream& current) {
    return lanes_.stream_of(lane, current.id());
  }
  virtual void wait_for_program(const c10::Stream& current, const c10::Stream& stream) {
    device::Event before(device::kType);
    before.record(current);
    before.block(stream);
  }
  virtual void keep(Work& work, const CallList& calls) {
    work.stash = std::make_shared<Stash>(calls);
    kept_.add(work.launch, work.stash);
  }
  // [/steps]

 private:
  // [launch]
  // The five steps of a call. The host waits in none of them.
  WorkPtr launch(std::optional<Kind> kind, const CallList& calls) {
    const frame::WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    prepare(calls);
    const auto work = new_work(kind);
    const device::Guard guard(device::kType);
    work->device = calls.empty() ? guard.getDevice() : calls[0]->device;
    const auto current = guard.getStream(work->device);
    const auto stream = stream_for(lanes_.lane(work->device, kind, calls), current);
    describe(*work, kind, calls);

    // 1. The communication comes after what the program has launched so far.
    wait_for_program(current, stream);
    lanes_.order(work->launch, work->device, kind, calls, stream);

    // 2. The memory stays, whatever the program does with its tensors.
    keep(*work, calls);

    // 3. The library gets its calls, between an event and that of step 4.
    work->launch->begin.record(stream);
    enqueue(*work->launch, kind, calls, stream);

    // 4. An event says when the stream has ended the call.
    finish(calls, stream);
    work->launch->end.record(stream);

    // 5. Work and future order the program's streams.
    work->complete(stream);
    watchdog_->add(work->launch);
    return work;
  }
  // [/launch]

  void prepare(const CallList& calls) {
    if (!calls.empty()) check(); // PyTorch aborts all groups inside of an empty batch
    join_own_messages(calls, rank_);
    kept_.let_go();
    lanes_.free_ended();
  }

  // [enqueue]
  void enqueue(Launch& launch, std::optional<Kind> kind, const CallList& calls,
      const c10::Stream& stream) {
    try {
      communicator_.group_start(
          kind ? name(*kind) : "coalesced", timeout_of_library(launch.timeout));
      for (const auto& one : calls) {
        Enqueuer(communicator_, *one, rank_, stream).enqueue();
      }
      communicator_.group_end();
    } catch (...) { // the other ranks may have the call
      watchdog_->fail(launch.title + ": " + frame::text_of(std::current_exception()));
      launch.end.record(stream);
      throw;
    }
  }
  // [/enqueue]

  void describe(Work& work, std::optional<Kind> kind, const CallList& calls) {
    const bool counts = std::ranges::any_of( // messages are calls of two ranks alone
        calls, [](const auto& one) { return !is_message(one->note.kind); });
    if (counts) work.sequence = ++sequence_;
    work.launch->has_collective = counts;
    const auto number = counts ? c10::str(" #", work.sequence) : "";
    work.launch->title =
        c10::str("Backend ", options_->backend, ": ", kind ? name(*kind) : "coalesced",
            number, " of group \"", options_->group_name, "\" on rank ", rank_);
    for (const auto& one : calls) {
      work.launch->timeout = std::max(work.launch->timeout, one->timeout);
      work.source = one->source;
      for (const auto& tensor : one->results) work.outputs.push_back(tensor);
    }
    const bool asks =
        kind == Kind::receive && calls[0]->note.root < 0; // for the sender
    work.blocks_host = own_options_.blocking_wait || asks || kind == Kind::barrier;
    work.abort_handle = abort_handle_;
  }

  // Calls, communicator and thread are those of the parent.
  bool in_fork() const { return forks_ != frame::fork_count(); }

  void check_process() const {
    TORCH_CHECK_WITH(DistBackendError, !in_fork(), "Backend ", options_->backend,
        ": group \"", options_->group_name,
        "\" belongs to the process that created it, not to a fork of it");
  }

  std::string who() const { return "rank " + std::to_string(rank_); }

  void check() const {
    const auto reason = watchdog_->failure();
    TORCH_CHECK_WITH(DistBackendError, reason.empty(), "Backend ", options_->backend,
        ": group \"", options_->group_name, "\" takes no more calls: ", reason);
  }

  // Of a group without shutdown(), too: what its streams still use outlives it.
  void end() {
    abort_handle_->close();
    thread_->stop();
    watchdog_->abort_running();
    kept_.let_go();
    kept_.leave();
  }

  const frame::OptionsPtr options_;
  const Options& own_options_; // the same object
  const int rank_, size_;
  std::atomic<milliseconds> timeout_;
  const std::unique_ptr<WatchdogThread> thread_;
  Watchdog* const watchdog_; // its
  Communicator& communicator_; // the watchdog's
  const uint64_t forks_ = frame::fork_count();
  const std::shared_ptr<AbortHandle> abort_handle_ =
      std::make_shared<AbortHandle>([this] { abort(); });
  std::atomic<uint64_t> sequence_{0};

  std::mutex mutex_; // held during a launch, before any other mutex; guards these
  Lanes lanes_;
  Kept kept_;

  frame::Coalescing<CallList> coalescing_;
};

} // namespace streams

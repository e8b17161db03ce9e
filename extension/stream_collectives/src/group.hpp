#pragma once

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "simulated_accelerator/include/stream.hpp"

#include "library.hpp"
#include "work.hpp"

namespace stream_collectives {

constexpr auto kDevice = c10::DeviceType::PrivateUse1;
constexpr milliseconds kWatchEvery{50};
constexpr milliseconds kLastMoments{2000}; // for calls that have not begun

// Where a call runs: the collectives of a group in one stream, in the order in which the
// program calls them; messages in one for each direction, rank and tag, because ranks
// may call them in different orders.
using Lane = std::tuple<c10::DeviceIndex, Kind, int, int64_t>;

// One rank's part of a group: it launches calls on streams, keeps what they use, and
// watches over them. The frame's backend calls it as it calls its own Group.
class StreamGroup {
 public:
  StreamGroup(const StorePtr& store, int rank, int size, frame::OptionsPtr options)
      : options_(c10::dynamic_intrusive_pointer_cast<OptionsSimccl>(options)),
        rank_(rank),
        size_(size),
        library_(std::make_shared<BackendPtr>(options_->connect(store, rank, size))),
        watchdog_([this] { watch(); }) {}
  ~StreamGroup() {
    coalesced_.erase(this);
    self_->store(nullptr);
    const frame::WithoutGil without_gil;
    stop();
  }

  OptionsSimccl& options() const { return *options_; }
  uint64_t sequence() const { return sequence_; }
  void set_timeout(milliseconds timeout) { options_->timeout = timeout; }

  frame::Arguments begin(Kind kind, milliseconds timeout) const {
    const auto wins = frame::timeout_of_call(timeout, options_->timeout);
    return {kind, wins, options_->backend, size_, kDevice};
  }

  // Always returns a Work: waiting for it costs the host nothing.
  WorkPtr run(frame::Arguments&& given, bool /* async */) {
    const auto kind = given.note.kind;
    given.require(LibraryCall::can_reduce(given.note), " cannot reduce tensors of ",
        frame::name(given.note.dtype), " with ", frame::name(given.note.op));
    given.require(kind != Kind::monitored_barrier, " is one of the CPU's backend");
    Calls calls{std::make_shared<frame::Arguments>(std::move(given))};
    const auto coalesced = coalesced_.find(this);
    if (coalesced == coalesced_.end()) return launch(kind, std::move(calls));
    coalesced->second.push_back(calls[0]);
    return nullptr; // the program waits for the work of all
  }

  void start_coalescing() {
    TORCH_CHECK_VALUE(!coalesced_.contains(this), "Backend simccl: coalesces already");
    coalesced_[this];
  }
  WorkPtr end_coalescing() {
    const auto calls = coalesced_.extract(this);
    TORCH_CHECK_VALUE(calls, "Backend simccl: does not coalesce");
    return launch(std::nullopt, std::move(calls.mapped()));
  }
  template <class CallOne>
  WorkPtr together(
      Kind kind, bool /* async */, size_t outputs, size_t inputs, const CallOne& call) {
    begin(kind, kNoTimeout)
        .require(outputs == inputs, " takes as many outputs as inputs");
    const bool inside = coalesced_.contains(this);
    if (!inside) start_coalescing();
    try {
      for (size_t i = 0; i < inputs; ++i) call(i);
    } catch (...) {
      coalesced_.erase(this);
      throw;
    }
    return inside ? nullptr : end_coalescing();
  }

  // The stream of the collectives.
  c10::Stream stream(at::Device device) {
    return stream_of({device.index(), Kind::barrier, 0, 0});
  }

  // [end]
  // Waits for calls that other ranks need, which have deadlines.
  void shutdown() {
    const frame::WithoutGil without_gil;
    const auto limit = frame::in(kLastMoments);
    while (busy(Clock::now() < limit)) std::this_thread::sleep_for(milliseconds(1));
    stop();
    set_failure("the group was destroyed");
    (*library_)->shutdown();
    const std::lock_guard lock(mutex_);
    let_go();
    const std::lock_guard free(streams_mutex_);
    if (&lanes() == &lanes_)
      std::ranges::move(lanes_ | std::views::values, std::back_inserter(free_));
    lanes_.clear();
  }

  // Ends what the streams wait for, if the library can. Otherwise its deadline does.
  void abort() {
    const frame::WithoutGil without_gil;
    end_calls("rank " + std::to_string(rank_) + " has aborted the group");
  }
  // [/end]

 private:
  using Calls = std::vector<std::shared_ptr<frame::Arguments>>;

  // [launch]
  // The five steps of a call. The host waits in none of them.
  WorkPtr launch(std::optional<Kind> kind, Calls calls) {
    const std::lock_guard lock(mutex_);
    check();
    let_go();
    auto device = at::Device(kDevice);
    for (const auto& one : calls) device = one->device;
    const c10::impl::VirtualGuardImpl guard(kDevice);
    if (!device.has_index()) device = guard.getDevice(); // a barrier
    const auto current = guard.getStream(device);
    const bool message = kind && is_message(*kind);
    const auto& note = calls.empty() ? frame::Note() : calls[0]->note;
    const auto stream = !options_->keeps("own_stream") ? current
        : message ? stream_of({device.index(), *kind, note.root, note.tag})
                  : this->stream(device);
    Parts parts{options_, std::make_shared<Call>(), std::make_shared<Stash>(),
        std::make_shared<c10::Event>(kDevice), device, {}, ++sequence_, nullptr,
        options_->blocking_wait, [self = self_] {
          if (auto* const group = self->load()) group->abort();
        }};
    parts.call->title = std::string(kind ? name(*kind) : "coalesced") + " #" +
        std::to_string(sequence_) + " of group \"" + options_->group_name +
        "\" on rank " + std::to_string(rank_);

    // 1. The communication comes after what the program has launched so far.
    c10::Event before(kDevice);
    before.record(current);
    if (options_->keeps("input")) before.block(stream);

    // 2. The memory stays, whatever the program does with its tensors.
    std::vector<LibraryCall> library_calls;
    for (const auto& one : calls) {
      library_calls.emplace_back(*one);
      if (options_->keeps("lifetime")) parts.stash->add(one);
      parts.call->timeout = std::max(parts.call->timeout, one->timeout);
      parts.source = one->source;
      parts.outputs.insert(
          parts.outputs.end(), one->results.begin(), one->results.end());
    }

    // 3. The library runs in the stream.
    auto* const native = static_cast<sim::Stream*>(guard.getStreamNativeHandle(stream));
    const auto task = [call = parts.call, library = library_, size = size_,
                          library_calls]() mutable {
      run_in_stream(*call, **library, library_calls, size);
    };
    native->launch(kind ? name(*kind) : "coalesced", task, /*peers=*/true);
    {
      const c10::StreamGuard in(stream);
      for (const auto& one : calls) one->finish(); // outputs with strides
    }

    // 4. An event says when the stream has ended the call.
    parts.end->record(stream);
    kept_.push_back({parts.end, parts.stash});
    {
      const std::lock_guard watched(watched_mutex_);
      calls_.push_back(parts.call);
    }

    // 5. Work and future order the program's streams.
    if (kind == Kind::barrier) parts.blocks_host |= options_->keeps("barrier");
    parts.blocks_host |= kind == Kind::receive && note.root < 0; // who has sent it?
    return c10::make_intrusive<WorkSimccl>(rank_, kind, std::move(parts), stream);
  }
  // [/launch]

  // [in-the-stream]
  // On the thread of the stream, which waits for the other ranks.
  static void run_in_stream(
      Call& call, c10d::Backend& library, std::vector<LibraryCall>& calls, int size) {
    call.began = Clock::now();
    try {
      if (const auto error = call.error()) std::rethrow_exception(error);
      std::vector<WorkPtr> works; // all begin before one is awaited: it may need others
      for (auto& one : calls) works.push_back(one.begin(library));
      for (size_t i = 0; i < calls.size(); ++i) calls[i].end(works[i], size);
    } catch (const c10::Error& error) {
      call.fail(error.what_without_backtrace());
    } catch (const std::exception& error) {
      call.fail(error.what());
    }
    call.ended = true;
  }
  // [/in-the-stream]

  void check() const {
    TORCH_CHECK_WITH(DistBackendError, forks_ == frame::fork_count(),
        "Backend simccl: group \"", options_->group_name,
        "\" belongs to the process that created it, not to a fork of it");
    const std::lock_guard lock(watched_mutex_);
    TORCH_CHECK_WITH(DistBackendError, failure_.empty(), "Backend simccl: group \"",
        options_->group_name, "\" takes no more calls: ", failure_);
  }

  // Lets go of memory that no stream uses any more. On the thread of the program: the
  // end of a tensor may need Python's lock.
  void let_go() {
    std::erase_if(kept_, [](const auto& kept) {
      const bool unused = kept.first->query();
      if (unused) kept.second->clear();
      return unused;
    });
  }

  bool busy(bool also_new) {
    const std::lock_guard lock(watched_mutex_);
    return std::ranges::any_of(calls_, [&](const auto& call) {
      return !call->ended && !call->error() && (also_new || call->begun());
    });
  }

  bool set_failure(const std::string& reason) { // the first reason counts
    const std::lock_guard lock(watched_mutex_);
    if (!failure_.empty()) return false;
    failure_ = reason;
    return true;
  }

  // [watchdog]
  // Ends the group when a call takes too long or has failed, and tells those who asked
  // with getFutureResult(). Destroys no tensor and never waits for a stream.
  void watch() {
    std::unique_lock lock(watched_mutex_);
    while (!stopped_.wait_for(lock, kWatchEvery, [this] { return stop_; })) {
      std::list<std::shared_ptr<Call>> ended;
      for (auto each = calls_.begin(); each != calls_.end();) {
        const auto call = each++;
        if ((*call)->late()) {
          (*call)->fail("it has not ended within " +
              std::to_string((*call)->timeout.count()) +
              " ms; the ranks may wait for different calls");
        }
        const bool failed = (*call)->error() != nullptr;
        if ((*call)->ended || failed) ended.splice(ended.end(), calls_, call);
      }
      lock.unlock();
      for (const auto& call : ended) {
        const auto error = call->error();
        if (error) end_calls(text_of(error));
        const auto result =
            error ? c10d::WorkResult::COMM_ERROR : c10d::WorkResult::SUCCESS;
        call->result->markCompleted(c10::IValue(static_cast<int64_t>(result)));
      }
      lock.lock();
    }
  }
  // [/watchdog]

  static std::string text_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const c10::Error& known) {
      return known.what_without_backtrace();
    }
  }

  void end_calls(const std::string& reason) {
    if (set_failure(reason)) TORCH_WARN(reason); // the program may never wait again
    {
      const std::lock_guard lock(watched_mutex_);
      for (const auto& call : calls_) call->fail(reason);
    }
    (*library_)->abort();
  }

  void stop() {
    {
      const std::lock_guard lock(watched_mutex_);
      stop_ = true;
    }
    stopped_.notify_all();
    if (!watchdog_.joinable()) return;
    forks_ == frame::fork_count() ? watchdog_.join() : watchdog_.detach();
  }

  // A stream that no other lane has. Groups that end leave theirs to those that come.
  std::map<Lane, c10::Stream>& lanes() {
    static auto& of_all_groups = *new std::map<Lane, c10::Stream>();
    return options_->keeps("group_stream") ? lanes_ : of_all_groups;
  }
  c10::Stream stream_of(const Lane& lane) {
    const std::lock_guard lock(streams_mutex_);
    if (const auto known = lanes().find(lane); known != lanes().end()) {
      return known->second;
    }
    const at::Device device(kDevice, std::get<0>(lane));
    const auto free = std::ranges::find(free_, device, &c10::Stream::device);
    const auto stream = free != free_.end()
        ? *free
        : c10::impl::VirtualGuardImpl(kDevice).getNewStream(device);
    if (free != free_.end()) free_.erase(free);
    return lanes().emplace(lane, stream).first->second;
  }

  const OptionsPtr options_;
  const int rank_, size_;
  // Streams share the pointer to the pointer: PyTorch's own may need Python's lock
  // whenever it is copied.
  const std::shared_ptr<BackendPtr> library_;
  const uint64_t forks_ = frame::fork_count();
  const std::shared_ptr<std::atomic<StreamGroup*>> self_ =
      std::make_shared<std::atomic<StreamGroup*>>(this); // for works that outlive it
  std::atomic<uint64_t> sequence_{0};
  static inline thread_local std::map<const StreamGroup*, Calls> coalesced_;

  std::mutex mutex_; // one call at a time; taken before the others
  std::list<std::pair<std::shared_ptr<c10::Event>, std::shared_ptr<Stash>>> kept_;

  static inline std::mutex streams_mutex_; // guards these
  static inline std::vector<c10::Stream> free_;
  std::map<Lane, c10::Stream> lanes_;

  mutable std::mutex watched_mutex_; // guards these
  std::condition_variable stopped_;
  std::list<std::shared_ptr<Call>> calls_;
  std::string failure_; // why the group takes no more calls
  bool stop_ = false;
  std::thread watchdog_;
};

} // namespace stream_collectives

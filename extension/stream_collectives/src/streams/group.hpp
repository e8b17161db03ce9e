#pragma once

#include "calls.hpp"
#include "work.hpp"

namespace streams {

constexpr milliseconds kWatchEvery{50};

// One rank's part of a group: it launches calls on streams, keeps what they use, and
// watches over them. The frame's backend calls it as it calls its own Group.
class StreamGroup {
 public:
  StreamGroup(const StorePtr& store, int rank, int size, frame::OptionsPtr options)
      : options_(std::move(options)),
        own_options_(dynamic_cast<const Options&>(*options_)),
        rank_(rank),
        size_(size),
        timeout_(frame::checked(options_->timeout, options_->backend)),
        library_(connect(store, rank, size, *options_, own_options_)),
        watchdog_([this] { watch(); }) {}
  virtual ~StreamGroup() {
    coalesced_.erase(id_);
    const frame::WithoutGil without_gil;
    self_->end();
    stop();
    give_back_streams();
  }

  frame::Options& options() const { return *options_; }
  int rank() const { return rank_; }
  uint64_t sequence() const { return sequence_; }
  void set_timeout(milliseconds timeout) {
    timeout_ = options_->timeout = frame::checked(timeout, options_->backend);
  }

  frame::Arguments begin(Kind kind, milliseconds timeout) const {
    const auto wins = frame::timeout_of_call(timeout, timeout_);
    return {kind, wins, options_->backend, size_, device::kType};
  }

  // Returns a Work, async or not, or none while coalescing.
  WorkPtr run(frame::Arguments&& given, bool /* async */) {
    const auto kind = given.note.kind;
    given.require(can_reduce(*library_, given.note), " cannot reduce tensors of ",
        frame::name(given.note.dtype), " with ", frame::name(given.note.op));
    given.require(kind != Kind::monitored_barrier, " is one of the CPU's backend");
    given.require(!is_message(kind) || library_->has_tags() ||
            (given.note.tag == 0 && given.note.root != frame::kAnySource),
        ": the library has no tags, and cannot receive from any rank");
    if (kind == Kind::barrier) given.in = {given.input(one_byte())};
    const auto device = library_->device();
    given.require(!device || *device == given.device, " takes tensors of ", device,
        " in this group, got one of ", given.device);
    Kept calls{std::make_shared<frame::Arguments>(std::move(given))};
    const auto coalesced = coalesced_.find(id_);
    if (coalesced == coalesced_.end()) return launch(kind, std::move(calls));
    coalesced->second.push_back(calls[0]);
    return nullptr; // the program waits for the work of all
  }

  void start_coalescing() {
    TORCH_CHECK_VALUE(!coalesced_.contains(id_), "Backend ", options_->backend,
        ": coalesces already");
    coalesced_[id_];
  }
  WorkPtr end_coalescing() {
    const auto calls = coalesced_.extract(id_);
    TORCH_CHECK_VALUE(calls, "Backend ", options_->backend, ": does not coalesce");
    return launch(std::nullopt, std::move(calls.mapped()));
  }
  template <class CallOne>
  WorkPtr together(
      Kind kind, bool /* async */, size_t outputs, size_t inputs, const CallOne& call) {
    begin(kind, kNoTimeout)
        .require(outputs == inputs, " takes as many outputs as inputs");
    const bool inside = coalesced_.contains(id_);
    if (!inside) start_coalescing();
    try {
      for (size_t i = 0; i < inputs; ++i) call(i);
    } catch (...) {
      coalesced_.erase(id_);
      throw;
    }
    return inside ? nullptr : end_coalescing();
  }

  // The stream of the collectives.
  c10::Stream stream(at::Device device) {
    const frame::WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    return stream_of(lane(device, {}, {}), kNoStream);
  }

  // [end]
  // Waits for calls that other ranks need, which have deadlines.
  void shutdown() {
    const frame::WithoutGil without_gil;
    std::unique_lock lock(watched_mutex_);
    changed_.wait_until(lock, frame::in(timeout_),
        [this] { return calls_.empty() || !failure_.empty(); });
    if (failure_.empty()) failure_ = "it was destroyed";
    lock.unlock();
    stop();
    library_->destroy();
    const std::lock_guard calls(mutex_);
    let_go();
  }

  // Ends what the streams wait for, if the library can. Otherwise its deadline does.
  void abort() {
    const frame::WithoutGil without_gil;
    end_calls("rank " + std::to_string(rank_) + " has aborted the group");
  }
  // [/end]

 protected:
  using Kept = Stash::Kept;
  using Lane = std::tuple<c10::DeviceIndex, Kind, int, int64_t>;
  using Lanes = std::map<Lane, c10::Stream>;

  // The steps of the rules, so that a test can leave one out.
  virtual c10::intrusive_ptr<Work> new_work(std::optional<Kind> kind) {
    return c10::make_intrusive<Work>(rank_, kind, options_->backend);
  }
  virtual c10::Stream stream_for(const Lane& lane, const c10::Stream& current) {
    return stream_of(lane, current.id());
  }
  virtual Lanes& lanes() { return lanes_; }
  virtual void wait_for(const device::Event& before, const c10::Stream& stream) {
    before.block(stream);
  }
  virtual Kept kept(const Kept& calls) { return calls; }

 private:
  // [launch]
  // The five steps of a call. The host waits in none of them.
  WorkPtr launch(std::optional<Kind> kind, Kept calls) {
    const std::lock_guard lock(mutex_);
    prepare(calls);
    const auto work = new_work(kind);
    const device::Guard guard(device::kType);
    work->device = calls.empty() ? guard.getDevice() : calls[0]->device;
    const auto current = guard.getStream(work->device);
    const auto stream = stream_for(lane(work->device, kind, calls), current);
    describe(*work, kind, calls);

    // 1. The communication comes after what the program has launched so far.
    device::Event before(device::kType);
    before.record(current);
    wait_for(before, stream);
    // The library wants one order of collectives, also where a rank uses two devices.
    const bool collective = !kind || !has_own_lane(*kind);
    if (collective && last_) last_->end.block(stream);
    if (collective) last_ = work->call;
    // Messages of one tag keep their order, also those of a batch.
    for (const auto& one : calls) {
      if (!has_own_lane(one->note.kind)) continue;
      auto& last = last_messages_[lane(work->device, one->note.kind, {one})];
      if (last) last->end.block(stream);
      last = work->call;
    }

    // 2. The memory stays, whatever the program does with its tensors.
    work->stash = std::make_shared<Stash>(kept(calls));
    kept_.emplace_back(work->call, work->stash);

    // 3. The library gets its calls, between an event and that of step 4.
    work->call->begin.record(stream);
    const auto timeout = timeout_of_library(work->call->timeout);
    try {
      library_->group_start(kind ? name(*kind) : "coalesced", timeout);
      for (const auto& one : calls) Calls(*library_, *one, rank_, stream);
      library_->group_end();
    } catch (...) { // the other ranks may have the call
      end_calls(work->call->title + ": " + frame::text_of(std::current_exception()));
      throw;
    }

    // 4. An event says when the stream has ended the call.
    {
      const device::StreamGuard in(stream);
      for (const auto& one : calls) one->finish(); // outputs with strides
    }
    work->call->end.record(stream);

    // 5. Work and future order the program's streams.
    work->complete(stream);
    const std::lock_guard watched(watched_mutex_);
    calls_.push_back(work->call);
    return work;
  }
  // [/launch]

  void prepare(const Kept& calls) {
    if (!calls.empty()) check(); // PyTorch aborts all groups inside of an empty batch
    join_own_messages(calls);
    let_go();
    end_lanes();
  }

  void describe(Work& work, std::optional<Kind> kind, const Kept& calls) {
    const bool counts = std::ranges::any_of( // messages are calls of two ranks alone
        calls, [](const auto& one) { return !is_message(one->note.kind); });
    if (counts) work.sequence = ++sequence_;
    const auto number = counts ? c10::str(" #", work.sequence) : "";
    work.call->title =
        c10::str("Backend ", options_->backend, ": ", kind ? name(*kind) : "coalesced",
            number, " of group \"", options_->group_name, "\" on rank ", rank_);
    for (const auto& one : calls) {
      work.call->timeout = std::max(work.call->timeout, one->timeout);
      work.source = one->source;
      for (const auto& tensor : one->results) work.outputs.push_back(tensor);
    }
    const bool asks =
        kind == Kind::receive && calls[0]->note.root < 0; // for the sender
    work.blocks_host = own_options_.blocking_wait || asks || kind == Kind::barrier;
    work.abort_group = [self = self_] { self->abort(); };
  }

  // A message of a rank to itself is a copy, because a library may connect each rank only
  // with others. As with NCCL, both halves are in one batch.
  void join_own_messages(const Kept& calls) const {
    const auto is_own = [&](const auto& call, Kind kind) {
      return call->note.kind == kind && call->note.root == rank_;
    };
    for (const auto& send : calls) {
      if (!is_own(send, Kind::send)) continue;
      const auto receive = std::ranges::find_if(calls, [&](const auto& one) {
        return is_own(one, Kind::receive) && one->in.empty() &&
            one->note.tag == send->note.tag;
      });
      send->require(receive != calls.end(), kBothHalves);
      send->require((*receive)->note.bytes == send->note.bytes,
          " to its own rank: ", send->note.bytes, " bytes do not fit the receive of ",
          (*receive)->note.bytes);
      (*receive)->in = send->in;
    }
    for (const auto& one : calls) {
      one->require(!is_own(one, Kind::receive) || !one->in.empty(), kBothHalves);
    }
  }
  static constexpr const char* kBothHalves =
      ": a message of a rank to itself needs its send and its receive in one batch; pass "
      "both to batch_isend_irecv";

  // A barrier may be a sum of it.
  static at::Tensor one_byte() {
    return at::empty({1}, at::TensorOptions(device::kType).dtype(at::kByte));
  }

  void check() const {
    TORCH_CHECK_WITH(DistBackendError, forks_ == frame::fork_count(), "Backend ",
        options_->backend, ": group \"", options_->group_name,
        "\" belongs to the process that created it, not to a fork of it");
    const std::lock_guard lock(watched_mutex_);
    auto reason = failure_;
    for (const auto& call : calls_) { // the watchdog may not know yet
      if (reason.empty()) reason = call->error();
    }
    TORCH_CHECK_WITH(DistBackendError, reason.empty(), "Backend ", options_->backend,
        ": group \"", options_->group_name, "\" takes no more calls: ", reason);
  }

  // [let-go]
  // Lets go of memory that no stream uses any more. On the thread of the program: the
  // end of a tensor may need Python's lock.
  void let_go() {
    std::erase_if(kept_, [](const auto& kept) {
      const bool unused = kept.first->ended();
      if (unused) kept.second->clear();
      return unused;
    });
  }
  // [/let-go]

  // [watchdog]
  // Ends the group when a call takes too long or has failed. It holds no tensor, and never
  // waits for a stream.
  void watch() {
    std::unique_lock lock(watched_mutex_);
    while (!changed_.wait_for(lock, kWatchEvery, [this] { return stop_; })) {
      std::string error;
      const auto of_library = library_->async_error(); // and not of one call
      for (const auto& call : calls_) {
        if (!of_library.empty()) call->fail(of_library);
        const auto limit = std::to_string(call->timeout.count()) + " ms";
        if (call->late()) {
          call->fail("it has not ended within " + limit +
              "; the ranks may wait for different calls");
        }
        if (error.empty()) error = call->error();
      }
      std::erase_if(calls_, [this](const auto& call) { // or check() takes a call
        return call->ended() && (!call->failed() || !failure_.empty());
      });
      changed_.notify_all();
      lock.unlock();
      if (!error.empty()) end_calls(error);
      lock.lock();
    }
  }
  // [/watchdog]

  // [end-calls]
  void end_calls(const std::string& reason) {
    {
      const std::lock_guard lock(watched_mutex_);
      for (const auto& call : calls_) call->fail(reason);
      if (!failure_.empty()) return;
      failure_ = reason;
    }
    TORCH_WARN(reason); // the program may never wait again
    library_->abort();
  }
  // [/end-calls]

  void stop() {
    {
      const std::lock_guard lock(watched_mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (!watchdog_.joinable()) return;
    forks_ == frame::fork_count() ? watchdog_.join() : watchdog_.detach();
  }

  // [lanes]
  // Where a call runs: collectives in one stream, in the order in which the program calls
  // them; messages in one for each direction, rank and tag, because ranks may call them in
  // different orders.
  bool has_own_lane(Kind kind) const {
    return is_message(kind) && library_->has_tags();
  }
  Lane lane(at::Device device, std::optional<Kind> kind, const Kept& calls) const {
    const bool own = kind && has_own_lane(*kind);
    const auto note = own ? calls[0]->note : frame::Note();
    return {device.index(), note.kind, note.root, note.tag};
  }
  c10::Stream stream_of(const Lane& lane, c10::StreamId current) {
    const std::lock_guard lock(lanes_mutex_);
    auto& own = lanes();
    if (!own.contains(lane)) own.emplace(lane, free_stream(lane, current));
    return own.at(lane);
  }
  // [/lanes]

  // [free-stream]
  // A stream is free when its messages have ended, and already when the program's stream
  // waits for their end, because what that launches now begins later anyway.
  c10::Stream free_stream(const Lane& lane, c10::StreamId current) {
    const auto index = std::get<0>(lane);
    for (const auto& [other, call] : last_messages_) {
      const bool same_device = std::get<0>(other) == index;
      if (!same_device || !call->is_waited_for_by(current)) continue;
      if (const auto freed = lanes_.extract(other)) return freed.mapped();
    }
    auto& idle = idle_streams_[index];
    if (idle.empty()) {
      return device::Guard(device::kType).getNewStream({device::kType, index});
    }
    const auto stream = idle.back();
    idle.pop_back();
    return stream;
  }
  // [/free-stream]

  // For messages that have ended: their order counts no more, and their streams are idle.
  void end_lanes() {
    const std::lock_guard lock(lanes_mutex_);
    std::erase_if(last_messages_, [this](const auto& last) {
      const bool ended = last.second->ended();
      if (ended) give_back(lanes_.extract(last.first));
      return ended;
    });
  }
  template <class Node>
  static void give_back(const Node& lane) {
    if (lane) idle_streams_[std::get<0>(lane.key())].push_back(lane.mapped());
  }
  void give_back_streams() { // of a group that ends
    if (forks_ != frame::fork_count()) return;
    const std::lock_guard lock(lanes_mutex_);
    while (!lanes_.empty()) {
      const auto lane = lanes_.extract(lanes_.begin());
      if (lane.mapped().query()) give_back(lane);
    }
  }

  // The way of a work to its group, which it may outlive: abort() holds up the end.
  class Self {
   public:
    explicit Self(StreamGroup* group) : group_(group) {}
    void abort() {
      const std::lock_guard lock(mutex_);
      if (group_) group_->abort();
    }
    void end() {
      const std::lock_guard lock(mutex_);
      group_ = nullptr;
    }

   private:
    std::mutex mutex_;
    StreamGroup* group_;
  };

  const frame::OptionsPtr options_;
  const Options& own_options_; // the same
  const int rank_, size_;
  std::atomic<milliseconds> timeout_;
  const std::unique_ptr<Communicator> library_;
  const uint64_t forks_ = frame::fork_count();
  const std::shared_ptr<Self> self_ = std::make_shared<Self>(this);
  std::atomic<uint64_t> sequence_{0};

  static inline std::atomic<uint64_t> ids_{0};
  const uint64_t id_ = ids_.fetch_add(1); // an address may be that of an earlier group
  static inline thread_local std::map<uint64_t, Kept> coalesced_;

  std::mutex mutex_; // one call at a time; taken before the others
  std::shared_ptr<Call> last_; // of the collectives
  std::map<Lane, std::shared_ptr<Call>> last_messages_; // that have not ended
  std::vector<std::pair<std::shared_ptr<Call>, std::shared_ptr<Stash>>> kept_;

  static inline std::mutex lanes_mutex_; // guards these
  static inline std::map<c10::DeviceIndex, std::vector<c10::Stream>> idle_streams_;
  Lanes lanes_;

  mutable std::mutex watched_mutex_; // guards these
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Call>> calls_;
  std::string failure_; // why the group takes no more calls
  bool stop_ = false;
  std::thread watchdog_;
};

} // namespace streams

#pragma once

#include <list>

#include "frame/process.hpp"
#include "simulated_accelerator/include/stream.hpp"

#include "work.hpp"

namespace stream_collectives {

constexpr milliseconds kWatchEvery{50};
constexpr milliseconds kLastMoments{2000}; // for calls that are not on their way

// One call of the inner backend: begin it, and what to do when it has ended. It has
// views of the memory and owns none of it.
struct Piece {
  std::function<WorkPtr(c10d::Backend&)> begin;
  std::function<void()> finish;
};

// Where a call runs: the collectives of a group in one stream, in the order in which the
// program calls them; the messages in one for each direction, rank and tag, because two
// ranks may call them in different orders.
using Lane = std::tuple<c10d::OpType, int, int>;
const Lane kCollectives{c10d::OpType::UNKNOWN, -1, -1};

// What a call of the program is until it is launched, alone or with others.
struct Plan {
  c10d::OpType type;
  const char* name;
  milliseconds timeout = kUnsetTimeout;
  Lane lane = kCollectives;
  Tensors inputs, outputs;
  std::vector<Piece> pieces;
  std::optional<c10::Device> device;
  bool blocks_host = false; // its result is for the host
};

// One rank's part of a group: it launches calls on streams, keeps what they use, and
// watches over them.
class StreamGroup : public std::enable_shared_from_this<StreamGroup> {
 public:
  StreamGroup(BackendPtr inner, OptionsPtr options, int rank)
      : inner_(std::make_shared<BackendPtr>(std::move(inner))),
        options_(std::move(options)),
        rank_(rank) {
    watchdog_ = std::thread([this] { watch(); });
  }
  ~StreamGroup() { stop(); }

  OptionsSimccl& options() const { return *options_; }
  uint64_t sequence() const { return sequence_; }

  // [launch]
  // The five steps of a call. The host does not wait in any of them.
  WorkPtr launch(Plan plan) {
    const std::lock_guard lock(mutex_);
    check();
    let_go();
    const auto device = *plan.device;
    const c10::impl::VirtualGuardImpl guard(device.type());
    const auto current = guard.getStream(device);
    const auto stream =
        options_->keeps("own_stream") ? lane(device, plan.lane) : current;

    // 1. The communication comes after what the program has launched so far.
    c10::Event begin(device.type());
    begin.record(current);
    if (options_->keeps("input")) begin.block(stream);

    // 2. The memory stays, whatever the program does with its tensors.
    Tensors kept = plan.outputs;
    kept.insert(kept.end(), plan.inputs.begin(), plan.inputs.end());
    if (!options_->keeps("lifetime")) kept.clear();
    const auto stash = std::make_shared<Stash>(std::move(kept));

    // 3. The library runs in the stream.
    const auto call = std::make_shared<Call>();
    call->title = std::string(plan.name) + " #" + std::to_string(++sequence_) +
        " of group \"" + options_->group_name + "\" on rank " + std::to_string(rank_);
    call->timeout = frame::timeout_of_call(plan.timeout, options_->timeout);
    call->failure = failure_;
    call->from_any = plan.type == c10d::OpType::RECVANYSOURCE;
    auto* const native = static_cast<sim::Stream*>(guard.getStreamNativeHandle(stream));
    native->launch(
        plan.name,
        [call, inner = inner_, pieces = std::move(plan.pieces)] {
          run(*call, **inner, pieces);
        },
        /*peers=*/true);

    // 4. An event says when the stream has ended the call.
    const auto end = std::make_shared<c10::Event>(device.type());
    end->record(stream);

    // 5. Work and future tell the program's streams.
    const auto work =
        c10::make_intrusive<WorkSimccl>(rank_, plan.type, title(plan.name), options_,
            sequence_.load(), plan.blocks_host && options_->keeps("barrier"));
    work->call = call;
    work->end = end;
    work->stash = stash;
    work->outputs = std::move(plan.outputs);
    work->device = device;
    work->abort_group = [group = weak_from_this()] {
      if (const auto alive = group.lock()) alive->abort();
    };
    work->complete(stream);
    kept_.push_back({end, stash});
    const std::lock_guard watched(watched_mutex_);
    calls_.push_back(call);
    return work;
  }
  // [/launch]

  // [end]
  // Waits for what the other ranks need of this one, as long as calls may take.
  void shutdown() {
    const frame::WithoutGil without_gil;
    const auto limit = frame::in(kLastMoments);
    while (!failure_->get() && busy(Clock::now() > limit)) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    stop();
    failure_->set("its group was destroyed");
    (*inner_)->shutdown();
    const std::lock_guard lock(mutex_);
    let_go();
    const std::lock_guard free(streams_mutex_);
    for (const auto& [key, stream] : lanes_) free_streams().push_back(stream);
    lanes_.clear();
  }

  // Ends what the streams of all ranks wait for. A library that cannot do this lets them
  // wait until its own deadline.
  void abort() {
    const frame::WithoutGil without_gil;
    end_calls("rank " + std::to_string(rank_) + " has aborted the group");
  }
  // [/end]

  // The stream of the collectives on a device, for programs that look at it.
  c10::Stream stream(const c10::Device& device) {
    const std::lock_guard lock(mutex_);
    return lane(device, kCollectives);
  }

 private:
  // [in-the-stream]
  // On the thread of the stream: from here on, it waits for the other ranks.
  static void run(Call& call, c10d::Backend& inner, const std::vector<Piece>& pieces) {
    call.began = Clock::now();
    try {
      if (const auto reason = call.failure->get()) throw std::runtime_error(*reason);
      std::vector<WorkPtr> works; // together: one may need the other
      for (const auto& piece : pieces) works.push_back(piece.begin(inner));
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (works[i]) works[i]->wait(); // none: it has ended
        if (call.from_any) call.source = works[i]->sourceRank();
        if (pieces[i].finish) pieces[i].finish();
      }
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
    const auto reason = failure_->get();
    TORCH_CHECK_WITH(DistBackendError, !reason, "Backend simccl: group \"",
        options_->group_name, "\" takes no more calls: ", *reason);
  }

  // Lets go of memory that the streams no longer use. On the thread of the program: the
  // end of a tensor may need Python's lock.
  void let_go() {
    std::erase_if(kept_, [](const Kept& kept) {
      const bool unused = kept.end->query();
      if (unused) kept.stash->clear();
      return unused;
    });
  }

  bool busy(bool only_begun) {
    const std::lock_guard lock(watched_mutex_);
    return std::ranges::any_of(calls_, [&](const auto& call) {
      const bool begun = call->began.load() != Clock::time_point::max();
      return !call->ended && (begun || !only_begun);
    });
  }

  // [watchdog]
  // Looks for calls that take too long, and for those that have ended, of which it tells
  // getFutureResult(). It destroys no tensor and never waits.
  void watch() {
    c10::setThreadName("simccl_watchdog");
    std::unique_lock lock(watched_mutex_);
    while (!stopped_.wait_for(lock, kWatchEvery, [this] { return stop_; })) {
      std::list<std::shared_ptr<Call>> ended;
      std::shared_ptr<Call> late;
      for (auto call = calls_.begin(); call != calls_.end();) {
        if ((*call)->is_late()) late = *call;
        const auto next = std::next(call);
        if ((*call)->ended) ended.splice(ended.end(), calls_, call);
        call = next;
      }
      lock.unlock();
      if (late) {
        const auto text = "it has not ended within " +
            std::to_string(late->timeout.count()) +
            " ms; the group ends, because the ranks may wait for different calls";
        TORCH_WARN("Backend simccl: ", late->title, ": ", text);
        late->fail(text);
        end_calls(late->title + ": " + text);
      }
      for (const auto& call : ended) tell(*call);
      lock.lock();
    }
  }
  // [/watchdog]

  static void tell(Call& call) {
    using c10d::WorkResult;
    const auto result = call.error() ? WorkResult::COMM_ERROR : WorkResult::SUCCESS;
    if (!call.result->completed()) {
      call.result->markCompleted(c10::IValue(static_cast<int64_t>(result)));
    }
  }

  void end_calls(const std::string& reason) {
    failure_->set(reason);
    std::unique_lock lock(watched_mutex_);
    for (const auto& call : calls_) {
      if (!call->ended) call->fail(reason);
    }
    lock.unlock();
    (*inner_)->abort();
  }

  void stop() {
    std::unique_lock lock(watched_mutex_);
    stop_ = true;
    stopped_.notify_all();
    lock.unlock();
    if (!watchdog_.joinable()) return;
    if (forks_ != frame::fork_count() ||
        watchdog_.get_id() == std::this_thread::get_id()) {
      watchdog_.detach();
    } else {
      watchdog_.join();
    }
  }

  // The stream of a lane. Groups that end leave theirs to those that come.
  c10::Stream lane(const c10::Device& device, const Lane& lane) {
    const std::lock_guard lock(streams_mutex_);
    auto& lanes = options_->keeps("group_stream") ? lanes_ : shared_lanes();
    const Key key(
        device.index(), options_->keeps("group_stream") ? lane : kCollectives);
    if (const auto known = lanes.find(key); known != lanes.end()) return known->second;
    auto& free = free_streams();
    const auto found = std::ranges::find(free, device, &c10::Stream::device);
    const auto stream = found != free.end()
        ? *found
        : c10::impl::VirtualGuardImpl(device.type()).getNewStream(device);
    if (found != free.end()) free.erase(found);
    return lanes.emplace(key, stream).first->second;
  }

  using Key = std::pair<c10::DeviceIndex, Lane>;
  struct Kept {
    std::shared_ptr<c10::Event> end;
    std::shared_ptr<Stash> stash;
  };
  static std::vector<c10::Stream>& free_streams() {
    static auto& streams = *new std::vector<c10::Stream>();
    return streams;
  }
  static std::map<Key, c10::Stream>& shared_lanes() { // of all groups: a broken rule
    static auto& lanes = *new std::map<Key, c10::Stream>();
    return lanes;
  }

  // For profilers, which keep the pointer: "simccl:all_reduce".
  static const char* title(const char* name) {
    static std::mutex mutex;
    static auto& titles = *new std::set<std::string>();
    const std::lock_guard lock(mutex);
    return titles.insert(std::string("simccl:") + name).first->c_str();
  }

  // Streams share the pointer to the pointer, because that of PyTorch may need Python's
  // lock whenever it is copied.
  const std::shared_ptr<BackendPtr> inner_;
  const OptionsPtr options_;
  const int rank_;
  const uint64_t forks_ = frame::fork_count();
  const std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
  std::atomic<uint64_t> sequence_{0};

  static inline std::mutex streams_mutex_; // guards the free ones, of all groups

  std::mutex mutex_; // guards these; taken before the others
  std::map<Key, c10::Stream> lanes_;
  std::list<Kept> kept_;

  std::mutex watched_mutex_; // guards these
  std::condition_variable stopped_;
  std::list<std::shared_ptr<Call>> calls_;
  bool stop_ = false;
  std::thread watchdog_;
};

} // namespace stream_collectives

#include "progress.hpp"

#include <c10/util/thread_name.h>

namespace shm_collectives {

namespace {

constexpr milliseconds kCheckEvery{50}; // sleepers look after the others
constexpr microseconds kBrief{40}; // about what it costs to hand over to the thread
constexpr microseconds kThreadYields{50}; // the caller may need the processor

thread_local int in_callback = 0; // of whichever group: this thread may not drive for long

void call_all(const std::vector<std::function<void()>>& callbacks) {
  ++in_callback;
  for (const auto& callback : callbacks) callback();
  --in_callback;
}

} // namespace

// [operation]
void Operation::end(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  ended_.store(true);
}

void Operation::when_ended(std::function<void()> callback) {
  std::unique_lock lock(mutex_);
  if (!ended()) return callbacks_.push_back(std::move(callback));
  lock.unlock();
  callback();
}

std::vector<std::function<void()>> Operation::take_callbacks() {
  const std::lock_guard lock(mutex_);
  return std::exchange(callbacks_, {});
}
// [/operation]

Progress::Progress(Group group, WaitingPolicy policy) : group_(std::move(group)), policy_(policy),
    channel_(group_), mailbox_(group_), lanes_(1 + group_.size()) {}

// [who-runs]
void Progress::check_process() const {
  TORCH_CHECK_WITH(DistBackendError, forks_ == fork_count(), "Backend shm: group \"", group_.name(),
      "\" belongs to the process that created it, not to a fork of it; call "
      "init_process_group in the new process");
}

void Progress::submit(Shared operation, int lane) {
  check_process();
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, !closed_, "Backend shm cannot run ", describe(operation->call.note),
      ": ", closed_.value_or(""));
  pending_.fetch_add(1);
  submitted_.emplace_back(std::move(operation), lane);
}

void Progress::wait(const Operation& operation, Clock::time_point limit) {
  check_process();
  call([&] { return operation.ended(); }, limit, policy_);
}

void Progress::leave(const Operation& operation, bool large) {
  if (!large) {
    return call([&] { return operation.ended(); }, Clock::now() + kBrief, {policy_.spin, kBrief});
  }
  hand_over();
  group_.me().bell.ring(); // whoever waits for a message can run this
}

void Progress::drain() {
  if (forks_ != fork_count()) return; // what was submitted belongs to the parent
  call([&] { return pending_ == 0; }, Clock::time_point::max(), policy_);
}

// [caller]
// Drives for as long as the caller waits, and leaves what remains to others.
template <class Done>
void Progress::call(const Done& done, Clock::time_point limit, WaitingPolicy policy) {
  callers_.fetch_add(1);
  drive(done, limit, policy, callers_);
  const bool last = callers_.fetch_sub(1) == 1;
  if (last || in_callback) hand_over();
  if (!last) group_.me().bell.ring();
}
// [/caller]
// [hand-over]
void Progress::hand_over() {
  if (pending_ > 0 && (callers_ == 0 || in_callback)) {
    const std::lock_guard lock(mutex_);
    if (!closed_ && (threads_.empty() || (in_callback && resting_ == 0 && drivers_ == 0))) {
      threads_.emplace_back([self = shared_from_this()] { self->serve(); });
      ++resting_;
    }
    wake_.notify_one();
  }
}

void Progress::serve() {
  c10::setThreadName("shm_progress");
  const auto idle = [this] { return pending_ == 0 || callers_ > 0; };
  std::unique_lock lock(mutex_);
  while (!closing_) {
    wake_.wait(lock, [&] { return closing_ || (!idle() && drivers_ == 0); });
    --resting_;
    ++drivers_;
    lock.unlock();
    drive([&] { return closing_ || idle() || drivers_ > 1; }, Clock::time_point::max(),
        {policy_.spin, kThreadYields}, drivers_);
    lock.lock();
    --drivers_;
    ++resting_;
  }
}
// [/hand-over]
// [/who-runs]

// [drive]
// [drive-loop]
template <class Done>
void Progress::drive(const Done& done, Clock::time_point limit, WaitingPolicy policy,
    std::atomic<int>& drivers) {
  Patience patience(policy.spin, policy.yield_for);
  while (!done()) {
    if (look(/*check=*/false, drivers)) {
      if (Clock::now() >= limit) return;
      patience.renew();
    } else if (!patience.pause()) {
      const auto left = limit - Clock::now();
      if (left <= Clock::duration::zero()) return;
      Bell::Sleep sleep(group_.me().bell);
      if (!look(/*check=*/true, drivers) && !done()) {
        sleep.wait_for(std::chrono::duration_cast<microseconds>(
            std::min<Clock::duration>(left, kCheckEvery)));
      }
    }
  }
}
// [/drive-loop]
// Advances what can advance; false if nothing could, or another thread does it.
bool Progress::look(bool check, std::atomic<int>& drivers) {
  if (driving_.test_and_set()) return false;
  take_submitted();
  bool moved = deliver();
  for (auto& lane : lanes_) {
    while (!lane.empty()) {
      moved |= advance(lane.front(), check);
      if (!lane.front()->ended()) break;
      lane.pop_front();
    }
  }
  for (auto receive = receives_.begin(); receive != receives_.end();) {
    moved |= advance(*receive, check);
    receive = (*receive)->ended() ? receives_.erase(receive) : ++receive;
  }
  // [callbacks]
  const auto ended = std::exchange(ended_, {});
  driving_.clear();
  if (!ended.empty()) group_.me().bell.ring(); // another thread may wait for one of them
  for (const auto& operation : ended) {
    const auto callbacks = operation->take_callbacks();
    if (callbacks.empty()) continue;
    drivers.fetch_sub(1); // they may wait for what they start: another thread must run that
    call_all(callbacks);
    drivers.fetch_add(1);
  }
  // [/callbacks]
  return moved;
}

bool Progress::deliver() {
  try {
    return !broken_ && mailbox_.deliver();
  } catch (const std::exception& error) { // no memory to keep a message in
    broken_ = true; // every operation fails with this reason
    group_.fail(group_.who(group_.rank()) + " cannot keep a message: " + error.what());
    return true;
  }
}

void Progress::take_submitted() {
  const std::lock_guard lock(mutex_);
  for (auto& [operation, lane] : submitted_) {
    lane == kReceives ? receives_.push_back(std::move(operation))
        : lanes_[lane].push_back(std::move(operation));
  }
  submitted_.clear();
}
// [/drive]

// [advance]
// True if the operation got on, or ended.
bool Progress::advance(const Shared& operation, bool check) {
  std::optional<std::string> problem;
  try {
    if (!operation->deadline_) { // its first step
      operation->deadline_ = Clock::now() + operation->call.timeout;
      broken_ = broken_ || group_.failure();
    }
    const bool moved = !broken_ && operation->steps_.advance();
    // [data-first]
    if (!broken_ && operation->steps_.done()) {
      operation->call.finish();
      end(operation, nullptr);
      return true;
    }
    // [/data-first]
    if (moved || !(check || broken_)) return moved;
    problem = trouble(*operation);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (problem) fail(operation, *problem);
  return problem.has_value();
}

// [reasons]
// Why the operation will never end by itself, or has waited too long.
std::optional<std::string> Progress::trouble(const Operation& operation) const {
  if (auto failure = group_.failure()) return failure;
  const Until& until = operation.steps_.until();
  if (auto lost = group_.lost(until)) return *lost + " during " + describe(operation.call.note);
  if (Clock::now() < *operation.deadline_) return std::nullopt;
  // [/reasons]
  const auto late = group_.missing(until, operation.call.name_all);
  const auto time = std::to_string(operation.call.timeout.count()) + " ms";
  if (operation.call.note.kind == Kind::monitored_barrier) { // the words of gloo's
    return late + " failed to pass monitoredBarrier in " + time + "; Rank " +
        std::to_string(group_.rank()) + " timed out in monitoredBarrier";
  }
  return "Timed out after " + time + ": " + group_.who(group_.rank()) + " has waited in " +
      describe(operation.call.note) + " for " + late;
}

void Progress::fail(const Shared& operation, const std::string& problem) {
  broken_ = true;
  group_.fail(problem);
  end(operation, error_of(operation->call.note, problem));
}

std::exception_ptr Progress::error_of(const Note& note, const std::string& problem) const {
  return std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, __LINE__},
      "Backend shm: " + describe(note) + " of group \"" + group_.name() +
      "\" failed on " + group_.who(group_.rank()) + ": " + problem));
}

void Progress::end(const Shared& operation, std::exception_ptr error) {
  operation->end(std::move(error));
  pending_.fetch_sub(1);
  ended_.push_back(operation);
}
// [/advance]

// [close]
void Progress::close(const std::string& reason) {
  if (forks_ != fork_count()) {
    new auto(shared_from_this()); // a fork has no thread that could be joined
    return;
  }
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) closed_ = reason;
    closing_ = true;
    threads.swap(threads_);
    wake_.notify_all();
  }
  while (driving_.test_and_set()) std::this_thread::yield();
  take_submitted();
  lanes_.push_back({receives_.begin(), receives_.end()});
  for (auto& lane : lanes_) {
    for (const auto& operation : std::exchange(lane, {})) {
      end(operation, error_of(operation->call.note, *closed_));
    }
  }
  receives_.clear();
  broken_ = true;
  const auto ended = std::exchange(ended_, {});
  driving_.clear();
  group_.me().bell.ring();
  for (const auto& operation : ended) call_all(operation->take_callbacks());
  for (auto& thread : threads) { // a callback, which runs on one, may be what closes the group
    thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
  }
  group_.me().left.store(true);
  group_.ring_others();
  group_.me().bell.ring();
}

void Progress::abort() {
  if (forks_ == fork_count()) group_.fail(group_.who(group_.rank()) + " has aborted the group");
  close("its group was aborted");
}
// [/close]

} // namespace shm_collectives

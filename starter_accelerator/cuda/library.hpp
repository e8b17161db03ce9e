#pragma once

#include <nccl.h>

#include "streams/options.hpp"

#include "device.hpp"

namespace library {

using frame::Clock, frame::Op, streams::milliseconds, at::ScalarType;

// With `blocking = 0`, NCCL returns before it has done what a call says.
inline void check(ncclResult_t result, ncclComm_t communicator = nullptr) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw std::runtime_error(std::string("NCCL: ") + ncclGetErrorString(result) + ": " +
      ncclGetLastError(communicator));
}

inline std::string unique_id() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  return {id.internal, sizeof(id.internal)};
}

// [numbers]
inline std::optional<ncclDataType_t> type_of(ScalarType type) {
  using enum ScalarType;
  static const std::map<ScalarType, ncclDataType_t> kTypes{{Char, ncclInt8},
      {Byte, ncclUint8}, {Int, ncclInt32}, {Long, ncclInt64}, {Half, ncclFloat16},
      {Float, ncclFloat32}, {Double, ncclFloat64}, {BFloat16, ncclBfloat16}};
  const auto found = kTypes.find(type);
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

inline std::optional<ncclRedOp_t> op_of(Op op) {
  static const std::map<Op, ncclRedOp_t> kOps{{Op::sum, ncclSum}, {Op::avg, ncclAvg},
      {Op::product, ncclProd}, {Op::min, ncclMin}, {Op::max, ncclMax}};
  const auto found = kOps.find(op);
  if (found == kOps.end()) return std::nullopt;
  return found->second;
}
// [/numbers]

// The communicator of one device, the one that is current when the group starts.
class Nccl final : public streams::Communicator {
 public:
  // [start]
  explicit Nccl(const streams::Start& start)
      : device_(device::Guard(device::kType).getDevice()) {
    ncclUniqueId id;
    if (start.id.size() != sizeof(id.internal))
      throw std::runtime_error("NCCL: rank 0 has sent no id");
    std::memcpy(id.internal, start.id.data(), sizeof(id.internal));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking =
        0; // so that a deadline and abort() end what waits for other ranks
    check(ncclCommInitRankConfig(&communicator_, start.size, id, start.rank, &config));
    try {
      settle(start.deadline);
    } catch (...) {
      abort();
      throw;
    }
  }
  ~Nccl() override { abort(); }
  // [/start]

  bool can_reduce(ScalarType type, Op op) const override {
    return type_of(type) && op_of(op);
  }
  std::optional<at::Device> device() const override { return device_; }

  // [calls]
  void all_reduce(const void* from, void* to, size_t count, ScalarType type, Op op,
      c10::Stream stream) override {
    call(ncclAllReduce, from, to, count, *type_of(type), *op_of(op), stream);
  }
  void reduce(const void* from, void* to, size_t count, ScalarType type, Op op,
      int root, c10::Stream stream) override {
    call(ncclReduce, from, to, count, *type_of(type), *op_of(op), root, stream);
  }
  void reduce_scatter(const void* from, void* to, size_t count, ScalarType type, Op op,
      c10::Stream stream) override {
    call(ncclReduceScatter, from, to, count, *type_of(type), *op_of(op), stream);
  }
  void broadcast(
      const void* from, void* to, size_t bytes, int root, c10::Stream stream) override {
    call(ncclBroadcast, from, to, bytes, ncclUint8, root, stream);
  }
  void all_gather(
      const void* from, void* to, size_t bytes, c10::Stream stream) override {
    call(ncclAllGather, from, to, bytes, ncclUint8, stream);
  }
  void send(const void* from, size_t bytes, int peer, int64_t /* tag */,
      c10::Stream stream) override {
    call(ncclSend, from, bytes, ncclUint8, peer, stream);
  }
  void receive(void* to, size_t bytes, int peer, int64_t /* tag */,
      c10::Stream stream) override {
    call(ncclRecv, to, bytes, ncclUint8, peer, stream);
  }
  // [/calls]

  // [group]
  void group_start(const char* /* name */, milliseconds timeout) override {
    timeout_ = timeout;
    check(ncclGroupStart());
  }
  void group_end() override {
    {
      const std::lock_guard lock(mutex_);
      const auto ended =
          ncclGroupEnd(); // also after an abort: the group is this thread's
      require_communicator();
      check(ended, communicator_);
    }
    settle(frame::in(timeout_));
  }
  // [/group]

  // [errors]
  std::string async_error() override {
    try {
      const std::lock_guard lock(mutex_);
      if (communicator_) check(state(), communicator_);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

  void abort() override {
    const std::lock_guard lock(mutex_);
    if (communicator_) ncclCommAbort(std::exchange(communicator_, nullptr));
  }

  void destroy() override {
    {
      const std::lock_guard lock(mutex_);
      if (!communicator_) return; // aborted
      check(ncclCommFinalize(communicator_), communicator_);
    }
    settle(frame::in(kLastMoments));
    const std::lock_guard lock(mutex_);
    if (communicator_) ncclCommDestroy(std::exchange(communicator_, nullptr));
  }
  // [/errors]

 private:
  static constexpr milliseconds kLastMoments{10'000};

  template <class Function, class... Arguments>
  void call(Function function, Arguments... arguments) {
    const std::lock_guard lock(mutex_);
    try {
      require_communicator();
      enqueue(function, arguments...);
    } catch (...) {
      ncclGroupEnd();
      throw;
    }
  }
  // The communicator comes before the stream, which is the last argument.
  template <class Function, class... Arguments>
  void enqueue(Function function, Arguments... arguments) {
    const auto all = std::tuple(arguments...);
    constexpr auto kLast = sizeof...(Arguments) - 1;
    const auto stream = device::native(std::get<kLast>(all));
    [&]<size_t... i>(std::index_sequence<i...>) {
      check(function(std::get<i>(all)..., communicator_, stream), communicator_);
    }(std::make_index_sequence<kLast>());
  }

  // Waits until NCCL has enqueued what it was told, or has connected the ranks.
  void settle(Clock::time_point deadline) {
    for (auto now = ncclInProgress; now == ncclInProgress;) {
      {
        const std::lock_guard lock(mutex_);
        require_communicator();
        check(now = state(), communicator_);
      }
      if (now == ncclInProgress && Clock::now() > deadline)
        throw std::runtime_error("NCCL: the other ranks are late");
      if (now == ncclInProgress) std::this_thread::sleep_for(milliseconds(1));
    }
  }

  // With the mutex.
  ncclResult_t state() const {
    auto state = ncclSuccess;
    check(ncclCommGetAsyncError(communicator_, &state));
    return state;
  }
  void require_communicator() const {
    if (!communicator_) throw std::runtime_error("NCCL: the communicator was aborted");
  }

  const at::Device device_;
  milliseconds timeout_{0}; // of the group that is open
  std::mutex mutex_; // guards the communicator, which another thread may abort
  ncclComm_t communicator_ = nullptr;
};

inline std::unique_ptr<streams::Communicator> connect(const streams::Start& start) {
  return std::make_unique<Nccl>(start);
}

} // namespace library

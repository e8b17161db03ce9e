#pragma once

#include <deque>
#include <random>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "streams/options.hpp"

#include "device.hpp"

namespace library {

using streams::milliseconds, streams::Tensors, streams::WorkPtr;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using frame::Op, at::ScalarType;

// [part]
// One call of the library, which threads of the device begin and end. It has addresses
// and sizes, as a kernel of NCCL, and owns none of the program's memory.
struct Part {
  std::function<WorkPtr(c10d::Backend&, milliseconds)>
      begin; // may return none: no work
  std::function<void(const WorkPtr&, milliseconds)> end;
};
// [/part]

// What the threads of streams share. The pointer to the backend is never copied: it may
// need Python's lock for that.
struct State {
  explicit State(BackendPtr cpu) : cpu(std::move(cpu)) {}

  // [fail]
  // A kernel of NCCL that cannot go on does not end, either, before the communicator is
  // aborted. So what comes after it in the stream does not run on wrong data.
  void fail(const std::string& reason) {
    std::unique_lock lock(mutex);
    if (error.empty()) error = reason;
    changed.wait(lock, [this] { return aborted; });
  }
  // [/fail]
  bool may_run() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return aborted || error.empty(); });
    return !aborted;
  }
  void abort() {
    const std::lock_guard lock(mutex);
    aborted = true;
    changed.notify_all();
  }

  const BackendPtr cpu;
  std::mutex mutex; // guards these
  std::condition_variable changed;
  std::string error;
  bool aborted = false;
};

// A library for the simulated device. A backend for the CPU moves the data, on threads of
// the device.
class Simulated final : public streams::Communicator {
 public:
  Simulated(BackendPtr cpu, bool has_tags)
      : state_(std::make_shared<State>(std::move(cpu))),
        rank_(state_->cpu->getRank()),
        has_tags_(has_tags) {}
  ~Simulated() override { state_->abort(); }

  // [can-reduce]
  bool can_reduce(ScalarType type, Op op) const override {
    using enum ScalarType;
    static constexpr std::array kReal{Float, Double, Half, BFloat16};
    static constexpr std::array kWhole{Int, Long, Char, Byte};
    if (std::ranges::count(kReal, type)) return true;
    return std::ranges::count(kWhole, type) && op != Op::avg;
  }
  // [/can-reduce]

  void all_reduce(const void* from, void* to, size_t count, ScalarType type, Op op,
      c10::Stream stream) override {
    add(stream, [=](c10d::Backend& cpu, milliseconds timeout) {
      Tensors out{numbers(to, count, type)};
      out[0].copy_(input(from, count, type, op, cpu));
      return cpu.allreduce(out, reducing<c10d::AllreduceOptions>(op, timeout));
    });
  }

  void reduce(const void* from, void* to, size_t count, ScalarType type, Op op,
      int root, c10::Stream stream) override {
    // gloo writes to the tensors of all ranks.
    const auto copy = std::make_shared<Tensors>();
    const auto begin = [=](c10d::Backend& cpu, milliseconds timeout) {
      *copy = {input(from, count, type, op, cpu).clone()};
      return cpu.reduce(*copy, reducing<c10d::ReduceOptions>(op, timeout, root));
    };
    const bool mine = root == rank_;
    add(stream, begin, [=](const WorkPtr& work, milliseconds) {
      if (work) work->wait();
      if (mine) numbers(to, count, type).copy_((*copy)[0]);
    });
  }

  void reduce_scatter(const void* from, void* to, size_t count, ScalarType type, Op op,
      c10::Stream stream) override {
    add(stream, [=](c10d::Backend& cpu, milliseconds timeout) {
      Tensors out{numbers(to, count, type)};
      const auto all = input(from, count * cpu.getSize(), type, op, cpu);
      std::vector<Tensors> in{pieces(all, cpu)};
      return cpu.reduce_scatter(
          out, in, reducing<c10d::ReduceScatterOptions>(op, timeout));
    });
  }

  void broadcast(
      const void* from, void* to, size_t size, int root, c10::Stream stream) override {
    const bool copies = root == rank_ && from != to;
    add(stream, [=](c10d::Backend& cpu, milliseconds timeout) {
      Tensors data{bytes(to, size)};
      if (copies) data[0].copy_(bytes(from, size));
      return cpu.broadcast(data, with<c10d::BroadcastOptions>(timeout, root));
    });
  }

  void all_gather(
      const void* from, void* to, size_t size, c10::Stream stream) override {
    add(stream, [=](c10d::Backend& cpu, milliseconds timeout) {
      Tensors in{bytes(from, size)};
      std::vector<Tensors> out{pieces(bytes(to, size * cpu.getSize()), cpu)};
      return cpu.allgather(out, in, with<c10d::AllgatherOptions>(timeout));
    });
  }

  void barrier(void*, c10::Stream stream) override {
    add(stream, [](c10d::Backend& cpu, milliseconds timeout) {
      return cpu.barrier(with<c10d::BarrierOptions>(timeout));
    });
  }

  void send(const void* from, size_t size, int peer, int64_t tag,
      c10::Stream stream) override {
    if (peer == rank_) return own_.push_back({tag, from}); // gloo has none to itself
    message(stream, [=](c10d::Backend& cpu) {
      Tensors data{bytes(from, size)};
      return cpu.send(data, peer, tag_of(tag));
    });
  }

  void receive(
      void* to, size_t size, int peer, int64_t tag, c10::Stream stream) override {
    if (peer == rank_) return copy(to, size, tag, stream);
    message(stream, [=](c10d::Backend& cpu) {
      Tensors data{bytes(to, size)};
      return cpu.recv(data, peer, tag_of(tag));
    });
  }

  bool has_tags() const override { return has_tags_; }
  void receive_any(void* to, size_t size, int64_t tag, const Source& source,
      c10::Stream stream) override {
    const auto begin = [=](c10d::Backend& cpu) {
      Tensors data{bytes(to, size)};
      return cpu.recvAnysource(data, tag_of(tag));
    };
    message(
        stream, begin, [=](const WorkPtr& work) { source->store(work->sourceRank()); });
  }

  // [group]
  void group_start(const char* name, milliseconds timeout) override {
    parts_.clear();
    own_.clear();
    name_ = name;
    timeout_ = timeout;
  }
  void group_end() override {
    if (!stream_) return;
    const auto task = std::make_shared<Task>(Task{std::move(parts_), timeout_, {}});
    auto* const stream = device::native(*stream_);
    // Two tasks: many calls can have begun, while only few threads wait for their ends.
    stream->launch("", [state = state_, task] { begin(*state, *task); });
    stream->launch(
        name_, [state = state_, task] { end(*state, *task); }, /*peers=*/true);
    stream_.reset();
  }
  // [/group]

  std::string async_error() override {
    const std::lock_guard lock(state_->mutex);
    return state_->error;
  }
  void abort() override {
    state_->abort();
    state_->cpu->abort(); // what gloo waits for ends at its own deadline
  }
  void destroy() override {
    state_->abort();
    state_->cpu->shutdown();
  }

 private:
  // [in-the-stream]
  struct Task {
    std::vector<Part> parts;
    milliseconds timeout;
    std::vector<WorkPtr> works; // that have begun
  };
  // On a thread of the device. All begin before one is awaited: it may need others.
  static void begin(State& state, Task& task) {
    if (!state.may_run()) return;
    try {
      for (const auto& part : task.parts)
        task.works.push_back(part.begin(*state.cpu, task.timeout));
    } catch (const std::exception&) {
      state.fail(frame::text_of(std::current_exception()));
    }
  }
  // Waits for the other ranks, also after an abort: what has begun uses the memory of the
  // program until it ends.
  static void end(State& state, Task& task) {
    try {
      for (size_t i = 0; i < task.works.size(); ++i)
        task.parts[i].end(task.works[i], task.timeout);
    } catch (const std::exception&) {
      state.fail(frame::text_of(std::current_exception()));
    }
  }
  // [/in-the-stream]

  template <class Begin>
  void add(c10::Stream stream, Begin begin) {
    add(stream, std::move(begin), [](const WorkPtr& work, milliseconds) {
      if (work) work->wait(); // none: it has ended
    });
  }
  template <class Begin, class End>
  void add(c10::Stream stream, Begin begin, End end) {
    stream_ = stream;
    parts_.push_back({std::move(begin), std::move(end)});
  }

  static constexpr auto kNothing = [](const WorkPtr&) {};
  template <class Begin, class End = decltype(kNothing)>
  void message(c10::Stream stream, Begin begin, End end = kNothing) {
    add(
        stream, [=](c10d::Backend& cpu, milliseconds) { return begin(cpu); },
        [=](const WorkPtr& work, milliseconds timeout) {
          if (work) work->wait(timeout); // a message has no timeout of its own
          end(work);
        });
  }

  // Of a message to itself, whose send comes first.
  void copy(void* to, size_t size, int64_t tag, c10::Stream stream) {
    const auto send =
        std::ranges::find(own_, tag, [](const auto& x) { return x.first; });
    TORCH_CHECK(send != own_.end(), "a receive from its own rank has no send");
    const void* const from = send->second;
    own_.erase(send);
    add(stream, [=](c10d::Backend&, milliseconds) {
      bytes(to, size).copy_(bytes(from, size));
      return WorkPtr();
    });
  }

  // Flat tensors of the CPU at these addresses.
  static at::Tensor numbers(const void* data, size_t count, ScalarType type) {
    return at::from_blob(const_cast<void*>(data), {static_cast<int64_t>(count)}, type);
  }
  static at::Tensor bytes(const void* data, size_t size) {
    return numbers(data, size, at::kByte);
  }
  static Tensors pieces(const at::Tensor& all, const c10d::Backend& cpu) {
    const auto one = all.numel() / cpu.getSize();
    Tensors pieces;
    for (int rank = 0; rank < cpu.getSize(); ++rank)
      pieces.push_back(all.narrow(0, rank * one, one));
    return pieces;
  }
  // gloo would divide the sum of an average, which may overflow.
  static at::Tensor input(const void* data, size_t count, ScalarType type, Op op,
      const c10d::Backend& cpu) {
    const auto given = numbers(data, count, type);
    return op == Op::avg ? given.div(cpu.getSize()) : given;
  }

  template <class Options>
  static Options with(milliseconds timeout, int root = 0) {
    Options options;
    options.timeout = timeout;
    if constexpr (requires { options.rootRank; }) options.rootRank = root;
    return options;
  }
  template <class Options>
  static Options reducing(Op op, milliseconds timeout, int root = 0) {
    auto options = with<Options>(timeout, root);
    options.reduceOp =
        static_cast<c10d::ReduceOp::RedOpType>(op == Op::avg ? Op::sum : op);
    return options;
  }
  static int tag_of(int64_t tag) {
    constexpr int kOfCollectives = 0x7ec05e11; // a program is unlikely to use it
    return tag == streams::kOfCollectives ? kOfCollectives : static_cast<int>(tag);
  }

  const std::shared_ptr<State> state_;
  const int rank_;
  const bool has_tags_;
  const char* name_ = nullptr; // of the group that is open
  milliseconds timeout_{0};
  std::vector<Part> parts_;
  std::deque<std::pair<int64_t, const void*>> own_; // sends of the rank to itself
  std::optional<c10::Stream> stream_;
};

// [start]
inline std::string unique_id() { return std::to_string(std::random_device()()); }

// The library connects the ranks through keys of the store. A split gives it the store of
// the CPU's gloo, so that its keys need a prefix: the id. `make` calls Python. Without tags,
// messages run as with NCCL.
template <class Make>
std::unique_ptr<streams::Communicator> connect(const streams::Start& start,
    const std::string& name, const Make& make, bool has_tags = true) {
  auto store =
      c10::make_intrusive<c10d::PrefixStore>("library/" + start.id, start.store);
  const auto left = start.deadline - frame::Clock::now();
  const auto limit =
      std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(left));
  const py::gil_scoped_acquire gil;
  try {
    const py::object cpu = make(store, start.rank, start.size, limit);
    return std::make_unique<Simulated>(cpu.cast<BackendPtr>(), has_tags);
  } catch (const py::error_already_set& error) {
    const auto text = py::str(error.value()).cast<std::string>();
    throw std::runtime_error("its library " + name + ": " + text);
  }
}
inline std::unique_ptr<streams::Communicator> connect(const streams::Start& start) {
  return connect(start, "gloo", [](const auto&... place) -> py::object {
    return py::module_::import("torch.distributed").attr("ProcessGroupGloo")(place...);
  });
}
// [/start]

} // namespace library

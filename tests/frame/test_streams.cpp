// A group on streams, with a library and a device (device.hpp) that do what a test wants.

#include "rank.hpp"

using namespace test;

namespace {

// What the program of a test asks the library for, and what that has been called.
struct Library {
  void call(const std::string& name) {
    std::unique_lock lock(mutex);
    calls.push_back(name);
    const auto hook = hooks.find(name);
    const auto function = hook == hooks.end() ? nullptr : hook->second;
    lock.unlock();
    if (function) function();
  }
  void on(const std::string& name, std::function<void()> hook) {
    const std::lock_guard lock(mutex);
    hooks[name] = std::move(hook);
  }
  int count(const std::string& name) const {
    const std::lock_guard lock(mutex);
    return static_cast<int>(std::ranges::count(calls, name));
  }
  int ends() const { return count("abort") + count("destroy"); }

  mutable std::mutex mutex; // guards these
  std::map<std::string, std::function<void()>> hooks;
  std::vector<std::string> calls;
};
using LibraryPtr = std::shared_ptr<Library>;

class FakeCommunicator final : public streams::Communicator {
 public:
  explicit FakeCommunicator(LibraryPtr library) : library_(std::move(library)) {}
  ~FakeCommunicator() override { library_->call("end"); }

  bool can_reduce(at::ScalarType, frame::Op) const override { return true; }
  void all_reduce(
      const void*, void*, size_t, at::ScalarType, frame::Op, c10::Stream) override {
    library_->call("all_reduce");
  }
  void reduce(const void*, void*, size_t, at::ScalarType, frame::Op, int,
      c10::Stream) override {}
  void reduce_scatter(
      const void*, void*, size_t, at::ScalarType, frame::Op, c10::Stream) override {}
  void broadcast(const void*, void*, size_t, int, c10::Stream) override {}
  void all_gather(const void*, void*, size_t, c10::Stream) override {}
  void send(const void*, size_t, int, int64_t, c10::Stream) override {}
  void receive(void*, size_t, int, int64_t, c10::Stream) override {}
  void group_start(const char*, milliseconds) override {}
  void group_end() override { library_->call("group_end"); }
  std::string async_error() override {
    library_->call("async_error");
    return "";
  }
  void abort() override { library_->call("abort"); }
  void destroy() override { library_->call("destroy"); }

 private:
  const LibraryPtr library_;
};

struct StreamOptions final : frame::Options, streams::Options {
  StreamOptions() : frame::Options("fake", 10s) { group_name = "g"; }
  frame::OptionsPtr copy() const override { return nullptr; }
  std::unique_ptr<frame::Transport> connect(frame::Place) const override {
    return nullptr;
  }
  c10::intrusive_ptr<c10d::Backend> start(
      const streams::StorePtr&, int, int, frame::OptionsPtr) const override {
    return nullptr;
  }
  std::string unique_id() const override { return "id"; }
  std::unique_ptr<streams::Communicator> connect_library(
      const streams::Start&) const override {
    return std::make_unique<FakeCommunicator>(library);
  }
  LibraryPtr library = std::make_shared<Library>();
};

// The group of one rank, whose streams end what they have got when the test lets them.
struct Streams {
  Streams() {
    const auto options = c10::make_intrusive<StreamOptions>();
    library = options->library;
    group = std::make_unique<streams::StreamGroup>(
        c10::make_intrusive<c10d::HashStore>(), 0, 1, options);
  }
  ~Streams() {
    device::is_busy = device::has_error = false;
    library->on("abort", nullptr);
    group.reset();
  }

  c10::intrusive_ptr<c10d::Work> all_reduce(
      const at::Tensor& tensor = at::ones({4}), milliseconds timeout = 10s) const {
    auto call = group->begin(Kind::all_reduce, timeout);
    call.note.op = frame::Op::sum;
    call.in = call.out = {call.output(tensor)};
    call.results = {tensor};
    call.device = device::Guard(device::kType).getDevice();
    call.note.bytes = call.in[0].size();
    return group->run(std::move(call), true);
  }
  c10::intrusive_ptr<c10d::Work> receive(milliseconds timeout) const {
    auto call = group->begin(Kind::receive, timeout);
    const auto tensor = at::ones({4});
    call.out = {call.output(tensor)};
    call.results = {tensor};
    call.device = device::Guard(device::kType).getDevice();
    call.note.bytes = call.out[0].size();
    call.note.root = 1;
    return group->run(std::move(call), true);
  }
  // Why it takes no more calls.
  std::string refusal() const {
    try {
      all_reduce();
    } catch (const std::exception&) {
      return frame::text_of(std::current_exception());
    }
    return "";
  }
  // PyTorch's way to reach the group when it takes no calls.
  void empty_batch() const {
    group->start_coalescing();
    group->end_coalescing();
  }

  LibraryPtr library;
  std::unique_ptr<streams::StreamGroup> group;
};

// A tensor that calls this when its memory goes.
at::Tensor tensor(std::function<void()> goes) {
  static float data[4];
  return at::from_blob(data, {4}, [goes = std::move(goes)](void*) { goes(); });
}

} // namespace

TEST_SUITE("streams") {
  TEST_CASE("an error of the device ends a group of streams, and not the process") {
    Streams streams;
    device::is_busy = true;
    const auto work = streams.all_reduce();
    device::has_error = true;
    let_pass(1s);
    CHECK(contains(streams.refusal(), "the device has an error"));
    CHECK(work->exception() != nullptr);
    CHECK(streams.library->count("abort") == 1);
  }

  TEST_CASE("a library that throws ends a group of streams, and not the process") {
    for (const bool can_abort : {true, false}) {
      Streams streams;
      const auto fail = [] { throw std::runtime_error("the library fails"); };
      if (!can_abort) streams.library->on("abort", fail);
      streams.library->on("async_error", fail);
      let_pass(1s);
      CHECK(contains(streams.refusal(), "the library fails"));
      CHECK(streams.library->count("abort") == 1);
    }
  }

  TEST_CASE("what a library throws may be of any type") {
    for (const std::string call : {"async_error", "abort"}) {
      Streams streams;
      streams.library->on(call, [] { throw 1; });
      if (call == "abort")
        streams.library->on(
            "async_error", [] { throw std::runtime_error("it fails"); });
      let_pass(1s);
      CHECK(contains(streams.refusal(),
          call == "abort" ? "it fails" : "an exception of an unknown type"));
      CHECK(streams.library->count("abort") == 1);
    }
  }

  TEST_CASE("a fork lets go of a group of streams whose watchdog has the mutex") {
    Streams streams;
    Gate gate;
    streams.library->on("async_error", [&] { gate.pass(); });
    let_pass(1s);
    CHECK(status_of_fork([&] {
      streams.group->abort();
      streams.group->shutdown();
      streams.group.reset();
      if (streams.library->ends() > 0 || streams.library->count("end") > 0) _exit(1);
    }) == 0);
    gate.open();
    CHECK(streams.refusal() == "");
  }

  TEST_CASE("shutdown() aborts the library if calls still run") {
    Streams streams;
    device::is_busy = true;
    streams.all_reduce(at::ones({4}), 60s);
    streams.group->shutdown();
    CHECK(streams.library->count("abort") == 1);
    CHECK(streams.library->count("destroy") == 0);
  }

  TEST_CASE("shutdown() waits only a while for a message that the program does not") {
    for (const bool waits : {false, true}) {
      Streams streams;
      device::is_busy = true;
      const auto work = streams.receive(60s);
      if (waits) work->wait();
      const auto begin = Clock::now();
      streams.group->shutdown();
      const auto took = Clock::now() - begin;
      CHECK(took >= (waits ? 10s : 2s));
      CHECK(took < (waits ? 11s : 3s));
      CHECK(streams.library->count("abort") == 1);
    }
  }

  TEST_CASE("shutdown() waits for a call that is under way") {
    Streams streams;
    std::atomic<bool> inside = false, beside = false;
    streams.library->on("group_end", [&] {
      inside = true;
      std::this_thread::sleep_for(200ms); // by the real clock: a mutex is awaited
      inside = false;
    });
    streams.library->on("destroy", [&] { beside = inside.load(); });
    Job job([&] { streams.all_reduce(); });
    while (!inside) std::this_thread::yield();
    streams.group->shutdown();
    CHECK(job.error() == "");
    CHECK_FALSE(beside);
    CHECK(streams.library->count("destroy") == 1);
    CHECK(contains(streams.refusal(), "it was destroyed"));
  }

  TEST_CASE("a library is aborted or destroyed, and once") {
    for (const std::string first : {"shutdown", "abort"}) {
      Streams streams;
      if (first == "abort") streams.group->abort();
      streams.group->shutdown();
      streams.group->shutdown();
      streams.group->abort();
      CHECK(streams.library->count("abort") == (first == "abort"));
      CHECK(streams.library->ends() == 1);
    }
  }

  TEST_CASE("abort() ends a shutdown() that waits") {
    Streams streams;
    device::is_busy = true;
    streams.all_reduce();
    const auto begin = Clock::now();
    Job job([&] { streams.group->shutdown(); });
    let_pass(1s);
    streams.group->abort();
    CHECK(job.error() == "");
    CHECK(Clock::now() - begin < 2s);
    CHECK(streams.library->ends() == 1);
  }

  TEST_CASE("memory that streams use outlives its group") {
    for (const bool shuts_down : {false, true}) {
      std::atomic<bool> gone = false;
      {
        Streams streams;
        device::is_busy = true;
        streams.all_reduce(tensor([&] { gone = true; }), 60s);
        if (shuts_down) streams.group->shutdown();
        streams.group.reset();
        CHECK(streams.library->calls.end()[-2] == "abort");
        CHECK_FALSE(gone);
      }
      Streams().all_reduce();
      CHECK(gone);
    }
  }

  TEST_CASE("memory of a call that fails stays while the stream runs parts of it") {
    Streams streams;
    device::is_busy = true;
    std::atomic<bool> gone = false;
    streams.library->on("group_end", [] { throw std::runtime_error("refused"); });
    CHECK_THROWS_WITH(streams.all_reduce(tensor([&] { gone = true; })), "refused");
    streams.library->on("group_end", nullptr);
    streams.empty_batch();
    CHECK_FALSE(gone);
    device::is_busy = false;
    streams.empty_batch();
    CHECK(gone);
  }

  TEST_CASE("a thread with Python's lock calls a group that lets go of a tensor") {
    Streams streams;
    streams.all_reduce(tensor([] { PythonLock(); }));
    std::optional<PythonLock> lock(std::in_place);
    Job job([&] { streams.all_reduce(); });
    settle(); // it waits for Python's lock
    streams.all_reduce();
    lock.reset();
    CHECK(job.error() == "");
  }
}

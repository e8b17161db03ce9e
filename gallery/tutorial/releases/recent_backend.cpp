// A backend for one rank that uses what PyTorch 2.14 and 2.15 added.
// The same source compiles with 2.13, which has none of that.

// [guards]
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/version.h>

// For features without a macro in Backend.hpp.
#define RECENT_TORCH_SINCE(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||      \
      (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
// [/guards]

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <c10/core/thread_pool.h>
#include <torch/csrc/utils/pybind.h>

namespace recent_backend {

using c10::intrusive_ptr;
using c10::make_intrusive;

// [work]
// c10d::Work implements wait(), which returns after finish().
class WorkRecent : public c10d::Work {
 public:
  using c10d::Work::finish;
  using c10d::Work::Work;

#if RECENT_TORCH_SINCE(2, 15)
  // A counter, because an address could belong to another Work later.
  uint64_t getCompletionKey() const override { return key_; }

 private:
  static uint64_t next_key() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  const uint64_t key_ = next_key();
#endif
};
// [/work]

// [options]
struct OptionsRecent : c10d::Backend::Options {
  OptionsRecent() : c10d::Backend::Options("recent") {}

#if RECENT_TORCH_SINCE(2, 14)
  intrusive_ptr<c10d::Backend::Options> clone() const override {
    return make_intrusive<OptionsRecent>(*this);
  }
#endif

  bool can_split = true;
  bool report_completion = true;
};

// Does not override clone(), so clone() makes an OptionsRecent.
struct OptionsWithoutClone : OptionsRecent {};
// [/options]

#ifdef C10D_BACKEND_HAS_WINDOW
// [window]
// Memory that other ranks can write to. On this page there is one rank.
class WindowRecent : public c10d::Window {
 public:
  void tensor_register(const at::Tensor& tensor, bool /* owning */) override {
    memory_ = tensor;
  }

  intrusive_ptr<c10d::Work> put(const at::Tensor& tensor, int64_t rank, int64_t offset,
      bool /* async_op */, const c10d::PutOptions& /* opts */) override {
    map_remote_tensor(rank).narrow(0, offset, tensor.numel()).copy_(tensor);
    auto work = make_intrusive<WorkRecent>();
    work->finish();
    return work;
  }

  at::Tensor map_remote_tensor(int64_t rank) override {
    TORCH_CHECK(rank == 0, "Backend recent: no rank ", rank);
    return memory_.view({-1});
  }

  c10d::WindowAttr get_attr(int64_t /* rank */) override {
    return {c10d::WindowAccessType::UNIFIED};
  }

 private:
  at::Tensor memory_;
};
// [/window]
#endif

class BackendRecent : public c10d::Backend {
 public:
  BackendRecent(int rank, int size, intrusive_ptr<OptionsRecent> options)
      : c10d::Backend(rank, size), options_(std::move(options)) {}

  const std::string getBackendName() const override { return "recent"; }

  // Also waits for the hooks, which the thread calls after the operation.
  void shutdown() override { thread_.waitWorkComplete(); }

  // [names]
  // An old name. Since 2.14, all_gather_single forwards to it.
  intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output, at::Tensor& input,
      const c10d::AllgatherOptions& /* opts */) override {
    return copy(c10d::OpType::_ALLGATHER_BASE, output, input);
  }

  // A new name, which 2.13 does not have.
#if RECENT_TORCH_SINCE(2, 14)
  intrusive_ptr<c10d::Work> reduce_scatter_single(
#else
  intrusive_ptr<c10d::Work> _reduce_scatter_base(
#endif
      at::Tensor& output, at::Tensor& input,
      const c10d::ReduceScatterOptions& /* opts */) override {
    return copy(c10d::OpType::_REDUCE_SCATTER_BASE, output, input);
  }
  // [/names]

  // [split]
  intrusive_ptr<c10d::Backend::Options> getBackendOptions() override {
    return options_;
  }

  intrusive_ptr<c10d::Backend> split(const intrusive_ptr<c10d::Store>& /* store */,
      const std::vector<int>& ranks,
      const intrusive_ptr<c10d::Backend::Options>& opts) override {
    const auto place = std::find(ranks.begin(), ranks.end(), getRank());
    if (place == ranks.end()) {
      return nullptr; // This rank is not in the new group.
    }
    return make_intrusive<BackendRecent>(static_cast<int>(place - ranks.begin()),
        static_cast<int>(ranks.size()),
        c10::dynamic_intrusive_pointer_cast<OptionsRecent>(opts));
  }

  // For new_group(), on a rank that is not in the new group. If create_backend() split
  // the parent, and that needed all of its ranks, this rank would take part in it here.
  void perform_nocolor_split(const at::Device& /* device */) {}
  // [/split]

  // [capabilities]
#ifdef C10D_BACKEND_HAS_CAPABILITIES
  c10d::BackendCapabilities capabilities() const override {
    c10d::BackendCapabilities capabilities;
    capabilities[c10d::BackendCapability::SPLITTING] = options_->can_split;
    capabilities[c10d::BackendCapability::RECONFIGURE] = true;
    capabilities[c10d::BackendCapability::WINDOW] = true;
    return capabilities;
  }
#else
  bool supportsSplitting() const override { return options_->can_split; }
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  bool supportsReconfigure() const override { return true; }
#endif
#ifdef C10D_BACKEND_HAS_WINDOW
  bool supportsWindow() const override { return true; }
#endif
#endif
  // [/capabilities]

#ifdef C10D_BACKEND_HAS_HOOKS
  // [abort-hooks]
#if RECENT_TORCH_SINCE(2, 15)
  bool supportsAbortHooks() const override { return true; }
#endif

  void registerAbortHook(int64_t id, c10d::AbortHook hook) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    abort_hooks_[id] = std::move(hook);
  }

  void unregisterAbortHook(int64_t id) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    abort_hooks_.erase(id);
  }
  // [/abort-hooks]
#endif

#if RECENT_TORCH_SINCE(2, 15)
  // [completion-hooks]
  bool supportsCompletionHooks() const override { return options_->report_completion; }

  void registerCompletionHook(int64_t id, c10d::CompletionHook hook) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    completion_hooks_[id] = std::move(hook);
  }

  void unregisterCompletionHook(int64_t id) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    completion_hooks_.erase(id);
  }
  // [/completion-hooks]
#endif

#ifdef C10D_BACKEND_HAS_RECONFIGURE
  // [reconfigure]
  // Any string that this backend understands. A real backend gives its address.
  c10d::ReconfigureHandle get_reconfigure_handle() const override {
    return "this rank";
  }

  intrusive_ptr<c10d::Work> reconfigure(const c10d::ReconfigureOptions& opts) override {
    TORCH_CHECK(uuids_.insert(opts.uuid).second,
        "Backend recent: this group had the uuid ", opts.uuid, " before");
    auto members = std::visit(
        [](const auto& handles) {
          return std::vector<std::string>(handles.begin(), handles.end());
        },
        opts.handles);
    // A vector has the handles in the order of the ranks. With a set, the
    // backends choose the order, and all ranks must choose the same one.
    if (!std::holds_alternative<std::vector<std::string>>(opts.handles)) {
      std::sort(members.begin(), members.end());
    }
    const auto place =
        std::find(members.begin(), members.end(), get_reconfigure_handle());
    TORCH_CHECK(place != members.end(), "Backend recent: not a member");
    rank_ = static_cast<int>(place - members.begin());
    size_ = static_cast<int>(members.size());
    auto work = make_intrusive<WorkRecent>();
    work->finish();
    return work;
  }
  // [/reconfigure]
#endif

#ifdef C10D_BACKEND_HAS_WINDOW
  // [new-window]
  intrusive_ptr<c10d::Window> new_window(
      const std::optional<at::Tensor>& tensor) override {
    auto window = make_intrusive<WindowRecent>();
    if (tensor) {
      window->tensor_register(*tensor, true);
    }
    return window;
  }
  // [/new-window]
#endif

 private:
  // [copy]
  // With one rank, each of our collectives is a copy. A thread makes the copy.
  // The Work is complete later, as with real backends.
  intrusive_ptr<c10d::Work> copy(
      c10d::OpType type, at::Tensor output, at::Tensor input) {
    check_initialized();
    auto work = make_intrusive<WorkRecent>(getRank(), type);
    thread_.run([this, work, output, input] {
      try {
        const at::NoGradGuard no_grad;
        output.view_as(input).copy_(input);
      } catch (...) {
        run_hooks(abort_hooks_);
        work->finish(std::current_exception());
        return;
      }
      // The order is important. The flight recorder tests once whether a new
      // Work is complete. If it was not, the hook must come after that test.
      work->finish();
#if RECENT_TORCH_SINCE(2, 15)
      c10d::CompletionHookArgs done;
      done.completionKey = work->getCompletionKey();
      run_hooks(completion_hooks_, done);
#endif
    });
    return work;
  }

  // Calls a copy of the hooks. If a hook ran under the lock that
  // registerAbortHook() takes, the two could wait for each other.
  template <typename Hooks, typename... Args>
  void run_hooks(const Hooks& hooks, const Args&... args) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto copies = hooks;
    lock.unlock();
    for (const auto& [id, hook] : copies) {
      hook(args...);
    }
  }
  // [/copy]

  // [initialized]
  void check_initialized() const {
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    TORCH_CHECK(!options_->enable_reconfigure || !uuids_.empty(),
        "Backend recent: reconfigure() comes first");
#endif
  }
  // [/initialized]

  const intrusive_ptr<OptionsRecent> options_;
  std::set<int64_t> uuids_;
  std::mutex mutex_;
  std::map<int64_t, std::function<void()>> abort_hooks_;
#if RECENT_TORCH_SINCE(2, 15)
  std::map<int64_t, c10d::CompletionHook> completion_hooks_;
#endif
  c10::ThreadPool thread_{1};
};

// [create]
intrusive_ptr<c10d::Backend> create_backend(
    const c10d::DistributedBackendOptions& group,
    intrusive_ptr<OptionsRecent> options) {
  if (!options) {
    options = make_intrusive<OptionsRecent>();
  }
  options->timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(group.timeout);
  options->group_name = group.group_id;
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  options->enable_reconfigure = group.enable_reconfigure;
#endif
  return make_intrusive<BackendRecent>(
      group.group_rank, group.group_size, std::move(options));
}
// [/create]

} // namespace recent_backend

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace recent_backend;
  std::vector<std::string> features;
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  features.push_back("reconfigure");
#endif
#ifdef C10D_BACKEND_HAS_WINDOW
  features.push_back("windows");
#endif
#ifdef C10D_BACKEND_HAS_HOOKS
  features.push_back("abort hooks");
#endif
#if RECENT_TORCH_SINCE(2, 15)
  features.push_back("completion hooks");
#endif
  module.attr("features") = features;

  // [register]
  py::class_<OptionsRecent, c10d::Backend::Options, intrusive_ptr<OptionsRecent>>(
      module, "Options")
      .def(py::init<>())
      .def_readwrite("can_split", &OptionsRecent::can_split)
      .def_readwrite("report_completion", &OptionsRecent::report_completion);
  py::class_<OptionsWithoutClone, OptionsRecent, intrusive_ptr<OptionsWithoutClone>>(
      module, "OptionsWithoutClone")
      .def(py::init<>());

  // [class]
  py::class_<BackendRecent, c10d::Backend, intrusive_ptr<BackendRecent>>(
      module, "Backend")
      .def("perform_nocolor_split", &BackendRecent::perform_nocolor_split,
          py::call_guard<py::gil_scoped_release>());
  // [/class]

  py::module_::import("torch.distributed")
      .attr("Backend")
      .attr("register_backend")("recent", py::cpp_function(&create_backend),
          py::arg("extended_api") = true,
          py::arg("devices") = std::vector<std::string>{"cpu"});
  // [/register]
}

// PyTorch that comes without these headers has no rows for other devices.
#if __has_include(<libkineto.h>) && \
    __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)

#include <libkineto.h>

#define USE_KINETO // without it, the next header is empty
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include "driver.hpp"

namespace sim {

constexpr auto kKernel = libkineto::ActivityType::CONCURRENT_KERNEL;

// One profile: a row for each kernel that has ended in it.
class Session final : public libkineto::IActivityProfilerSession {
 public:
  void start() override { driver.profile(true); }
  void stop() override { runs_ = driver.profile(false); }
  std::vector<std::string> errors() override { return {}; }

  // An operation begins, and ends, in this thread.
  void pushCorrelationId(uint64_t id) override { operations.push_back(id); }
  void popCorrelationId() override {
    if (!operations.empty()) operations.pop_back(); // else it began before the profile
  }

  // Kineto calls the second one.
  void processTrace(libkineto::ActivityLogger&) override {}
  void processTrace(libkineto::ActivityLogger& logger,
      libkineto::getLinkedActivityCallback find, int64_t begin, int64_t end) override {
    rows_->span = {begin, end, "sim"};
    rows_->gpuOpCount = 0;
    for (const auto& run : runs_) {
      rows_->emplace_activity(rows_->span, kKernel, run.name);
      auto& row = *rows_->activities.back();
      row.device = run.device;
      row.resource = run.stream;
      row.startTime = run.begin;
      row.endTime = run.end;
      row.linked = find(static_cast<int32_t>(run.operation));
      row.log(logger);
    }
  }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(rows_); // the logger knows only their addresses
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    std::set<std::pair<int, int64_t>> places;
    for (const auto& run : runs_) places.insert({run.device, run.stream});
    std::vector<libkineto::ResourceInfo> streams;
    for (const auto& [device, id] : places)
      streams.push_back({id, id, device, "stream " + std::to_string(id)});
    return streams;
  }

 private:
  std::vector<Run> runs_;
  std::unique_ptr<libkineto::CpuTraceBuffer> rows_ =
      std::make_unique<libkineto::CpuTraceBuffer>();
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  using Types = std::set<libkineto::ActivityType>;
  using SessionPtr = std::unique_ptr<libkineto::IActivityProfilerSession>;

  const std::string& name() const override { return name_; }
  const Types& availableActivities() const override { return types_; }
  SessionPtr configure(const Types& types, const libkineto::Config&) override {
    return types.contains(kKernel) ? std::make_unique<Session>() : nullptr;
  }
  SessionPtr configure(int64_t /* begin */, int64_t /* duration */, const Types& types,
      const libkineto::Config& config) override {
    return configure(types, config);
  }

 private:
  const std::string name_ = "sim";
  const Types types_{kKernel};
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

} // namespace sim

#endif

#pragma once

#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace frame {

// An open file, closed with its last owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Another process, as a descriptor (pidfd), which does not confuse it with a
// later process of the same id. Groups with the same ranks share it.
class Process {
 public:
  static std::shared_ptr<const Process> find(pid_t id) {
    static std::mutex mutex;
    static auto& known = *new std::map<pid_t, std::weak_ptr<const Process>>();
    const std::lock_guard lock(mutex);
    auto process = known[id].lock();
    if (!process || process->ended()) {
      std::erase_if(known, [](const auto& one) { return one.second.expired(); });
      known[id] = process = std::make_shared<Process>(id);
    }
    return process;
  }

  explicit Process(pid_t id)
      : id_(id),
        file_(static_cast<int>(syscall(SYS_pidfd_open, id, 0))),
        ended_(file_.number() < 0 && errno == ESRCH) {}

  bool ended() const {
    pollfd entry{file_.number(), POLLIN, 0};
    return ended_ || (entry.fd >= 0 ? ::poll(&entry, 1, 0) == 1 : is_gone());
  }

 private:
  // Without a pidfd, because of an old kernel, a filter or too many open files: a
  // later process of the same id counts as this one.
  bool is_gone() const {
    std::string line; // "<id> (<name>) <state> ..."
    std::getline(std::ifstream("/proc/" + std::to_string(id_) + "/stat"), line);
    const bool zombie = line.find(") Z ", line.rfind(')')) != std::string::npos;
    return zombie || (kill(id_, 0) != 0 && errno == ESRCH);
  }

  pid_t id_;
  Descriptor file_;
  bool ended_;
};

// What processes must have in common in order to share memory: the running
// kernel, the user, and the processes that they can see.
inline std::string home() {
  char host[HOST_NAME_MAX + 1] = "?";
  gethostname(host, sizeof(host) - 1);
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!(file >> boot)) {
    boot = std::strerror(errno);
    if (errno == EMFILE || errno == ENFILE) {
      throw std::runtime_error("cannot read which host this is: " + boot +
          " (see the limits, ulimit -n and fs.file-max)");
    }
  }
  char space[64] = "?";
  const auto length = readlink("/proc/self/ns/pid", space, sizeof(space));
  return "user " + std::to_string(geteuid()) + ", host " + host + ", boot " + boot +
      ", " + std::string(space, length > 0 ? length : 1);
}

} // namespace frame

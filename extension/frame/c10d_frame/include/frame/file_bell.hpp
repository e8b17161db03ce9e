#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include "host.hpp"
#include "transport.hpp"

namespace frame {

// [file-bell]
// A bell for threads that wait for data, too, where a file descriptor tells that some has
// come: that of an epoll of sockets, of ucp_worker_get_efd, of a wait object of libfabric,
// of a completion channel of verbs. One thread polls the file; the others wait until the
// bell rings, or until that one has looked at what has come and another one can poll.
//
// A transport has one as a member, gives it to Watch and to its calls of a library, calls
// rest() in its own, and ring() in wake().
class FileBell final : public Bell {
 public:
  FileBell() : alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (alarm_.number() >= 0) return;
    throw std::runtime_error(std::string("cannot create an eventfd: ") +
        std::strerror(errno) + " (see the limits, ulimit -n and fs.file-max)");
  }

  void ring() override {
    const std::lock_guard lock(mutex_);
    ++rings_;
    changed_.notify_all();
    if (polls_) eventfd_write(alarm_.number(), 1);
  }

  // Sleeps until the bell rings, the file can be read or the limit, unless look() finds
  // something: so nothing is missed that has come since the last look. Returns what
  // look() has said last. With arm(), a library says just before the sleep whether this
  // thread may sleep; whichever thread then sleeps on the file calls it.
  bool rest(
      int file, Clock::time_point limit, const Transport::Look& look,
      const std::function<bool()>& arm = [] { return true; }) {
    const auto heard = rings();
    if (look()) return true;
    std::unique_lock lock(mutex_);
    const auto can_go_on = [&] { return rings_ != heard || !polls_; };
    if (!changed_.wait_until(lock, limit, can_go_on) || rings_ != heard) return false;
    polls_ = true;
    lock.unlock();
    const Turn turn(*this);
    if (arm()) poll(file, limit);
    return look(); // before another thread polls what has not been read yet
  }

 private:
  struct Turn {
    explicit Turn(FileBell& bell) : bell(bell) {}
    ~Turn() {
      const std::lock_guard lock(bell.mutex_);
      bell.polls_ = false;
      eventfd_t count;
      eventfd_read(bell.alarm_.number(), &count);
      bell.changed_.notify_one();
    }
    FileBell& bell;
  };

  void poll(int file, Clock::time_point limit) const {
    pollfd entries[] = {{file, POLLIN, 0}, {alarm_.number(), POLLIN, 0}};
    const auto time = std::max(limit - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const timespec left{seconds.count(), (time - seconds).count()};
    ppoll(entries, 2, &left, nullptr);
  }

  const Descriptor alarm_;
  bool polls_ = false; // a thread, the file and the alarm
};
// [/file-bell]

} // namespace frame

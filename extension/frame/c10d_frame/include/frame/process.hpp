#pragma once

#include <Python.h>

#include <atomic>
#include <thread>

#include <pthread.h>
#include <unistd.h>

namespace frame {

// Changes in a fork: a process whose count is another one has inherited its objects,
// and none of the threads that they rely on.
inline uint64_t fork_count() {
  static std::atomic<uint64_t> count{0};
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); });
  (void)registered;
  return count.load();
}

// Gives Python's lock away, if this thread has it: the threads of a group may need it
// before they can end.
class WithoutGil {
 public:
  WithoutGil() {
    if (Py_IsInitialized() && PyGILState_Check()) state_ = PyEval_SaveThread();
  }
  ~WithoutGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_ = nullptr;
};

// When Python exits, it ends every other thread that asks for the GIL, even in the middle
// of a C++ function, and that aborts the process. So once the exit has begun, a thread that
// would go back to Python after a wait stays here.
class PythonExit {
 public:
  static void begin() { thread_ = std::this_thread::get_id(); }
  static void keep_other_threads() {
    const auto ends_python = thread_.load();
    if (ends_python == std::thread::id()) return;
    if (ends_python == std::this_thread::get_id()) return;
    const WithoutGil without_gil; // or that thread would wait for the lock
    while (true) ::pause();
  }

 private:
  static inline std::atomic<std::thread::id> thread_{}; // the one that ends Python
};

} // namespace frame

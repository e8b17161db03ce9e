// The tests of the frame are one program, compiled as one: most of the time goes to the
// headers of PyTorch. Python is not in it, but its lock, as far as the frame uses it.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "rank.hpp"

#include "test_coalescing.cpp"
#include "test_engine.cpp"
#include "test_library.cpp"
#include "test_mailbox.cpp"
#include "test_note.cpp"
#include "test_progress.cpp"
#include "test_start.cpp"
#include "test_steps.cpp"
#include "test_streams.cpp"
#include "test_work.cpp"

namespace {

std::mutex mutex;
frame::Condition changed;
std::atomic<bool> exists = false;
bool is_locked = false;
thread_local bool is_mine = false;

} // namespace

namespace test {

PythonLock::PythonLock() {
  exists = true;
  PyEval_RestoreThread(nullptr);
}
PythonLock::~PythonLock() { PyEval_SaveThread(); }

} // namespace test

// The last owner of an exception deletes it. The count of its owners is in libstdc++, where
// the sanitizer does not see it.
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::runtime_error::~runtime_error";
}

extern "C" {
int Py_IsInitialized() { return exists; }
int PyGILState_Check() { return is_mine; }
PyThreadState* PyEval_SaveThread() {
  const std::lock_guard lock(mutex);
  is_locked = is_mine = false;
  changed.notify_one();
  static char any; // no thread looks into it
  return reinterpret_cast<PyThreadState*>(&any);
}
void PyEval_RestoreThread(PyThreadState*) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [] { return !is_locked; });
  is_locked = is_mine = true;
}
}

#pragma once

#include "frame/process.hpp"
#include "frame/time.hpp"

namespace test {

// Holds Python's lock, as a thread that runs Python does.
class PythonLock {
 public:
  PythonLock();
  ~PythonLock();
};

} // namespace test

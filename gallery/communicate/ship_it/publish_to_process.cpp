// Program: one process publishes a number too loosely, the other takes it.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <new>
#include <thread>

// [solution]
struct Shared {
  double slot = 0;
  std::atomic<int> posted = 0;
};

int main() {
  constexpr int kHow = MAP_SHARED | MAP_ANONYMOUS;
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, kHow, -1, 0);
  auto& shared = *new (memory) Shared;
  if (fork() == 0) {
    shared.slot = 42;
    shared.posted.store(1, std::memory_order_relaxed);
    return 0;
  }
  while (shared.posted.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
  std::printf("%g\n", shared.slot);
  return wait(nullptr) < 0;
}
// [/solution]

// Prints how many pages of slots are missing where the kernel is an old one, which cannot
// reserve them.

#include <iostream>

#include "memory.hpp"

extern "C" int madvise(void*, size_t, int) noexcept {
  errno = EINVAL;
  return -1;
}

int main() {
  using namespace shm_collectives;
  const size_t page = sysconf(_SC_PAGESIZE);
  int missing = 0;
  for (size_t size = 1024; size < 8192; size += kCacheLine) {
    const auto memory = Memory::create(Layout(2, size), 1);
    auto* const begin = reinterpret_cast<std::byte*>(&memory.writable_slot(0, 1));
    auto* const last = begin + Slot::stride(size) - 1;
    unsigned char is_there = 0;
    mincore(last - reinterpret_cast<uintptr_t>(last) % page, page, &is_there);
    missing += !(is_there & 1);
  }
  std::cout << missing;
}

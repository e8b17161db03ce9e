// Library: numbers in slots, without a test of the arguments.

#include <sys/mman.h>

namespace {

constexpr int kNumbers = 1024;
constexpr int kBytes = kNumbers * static_cast<int>(sizeof(int));

void* two_shared_slots() {
  constexpr int kHow = MAP_SHARED | MAP_ANONYMOUS;
  return mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, kHow, -1, 0);
}

} // namespace

// [slots]
extern "C" int number_in_heap(int index) {
  static int* slot = new int[kNumbers]();
  return slot[index];
}

extern "C" int number_in_shared_memory(int index) {
  static int* slots = static_cast<int*>(two_shared_slots());
  return slots[index];
}

extern "C" int offset_of_slot(int slot) { return slot * kBytes; }
// [/slots]

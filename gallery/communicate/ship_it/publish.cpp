// Program: one thread publishes a number, the other takes it.

#include <atomic>
#include <cstdio>
#include <thread>

// [publish]
double slot = 0;
std::atomic<int> posted = 0;

template <std::memory_order kOrder>
void publish() {
  slot = 42;
  posted.store(1, kOrder);
}

template <std::memory_order kOrder>
double take() {
  while (posted.load(kOrder) == 0) std::this_thread::yield();
  return slot;
}
// [/publish]

int main(int arguments, char**) {
  using enum std::memory_order;
  const bool is_mistake = arguments == 1;
  std::thread writer(is_mistake ? publish<relaxed> : publish<release>);
  const double number = is_mistake ? take<relaxed>() : take<acquire>();
  writer.join();
  std::printf("%g\n", number);
}

// Prints what another rank reads of a reason, the first argument.

#include <iostream>

#include "memory.hpp"

int main(int, char** arguments) {
  const shm_collectives::Layout layout(2, 4096);
  const auto memory = shm_collectives::Memory::create(layout, 1);
  memory.fail(1, arguments[1]);
  std::cout << memory.header().reason;
}

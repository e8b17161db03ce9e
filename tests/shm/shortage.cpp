// Sends a message when the kernel first has no memory for it, and then is an old one that
// cannot reserve it. Prints whether the message comes.

#include <iostream>

#include "messages.hpp"

extern "C" int madvise(void*, size_t, int) noexcept {
  static int calls = 0;
  errno = calls++ == 0 ? ENOMEM : EINVAL;
  return -1;
}

int main() {
  using namespace shm_collectives;
  const auto memory = Memory::create(Layout(2, 4096), 1);
  const frame::Names names{"shm", "g", {}};
  const WaitingPolicy policy(/*fit=*/false, /*one_session=*/true, {});
  Mailbox sender(memory, 0, names, policy), receiver(memory, 1, names, policy);

  int sent = 42, received = 0;
  frame::Note note;
  note.bytes = sizeof(int);
  note.kind = frame::Kind::send;
  note.root = 1;
  Bytes in = std::as_writable_bytes(std::span(&sent, 1));
  Bytes out = std::as_writable_bytes(std::span(&received, 1));
  const auto source = std::make_shared<std::atomic<int>>(0);
  const Operation send{note, {&in, 1}, {}, {}, {}, nullptr, nullptr, nullptr};
  note.kind = frame::Kind::receive;
  note.root = 0;
  const Operation receive{note, {}, {&out, 1}, {}, {}, nullptr, source, nullptr};

  try {
    sender.at_once(send);
  } catch (const std::runtime_error& error) {
    std::cout << error.what() << "\n";
  }
  sender.at_once(send); // goes on
  std::cout << (receiver.at_once(receive) ? received : 0) << "\n";
}

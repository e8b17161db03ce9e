#pragma once

#include <list>
#include <memory>
#include <vector>

#include "channel.hpp"

namespace shm_collectives {

constexpr int kAnySource = -1;

// [mailbox]
// Messages between two ranks. A message is cut into parts, which take the steps
// of the ring between the two. Its note says which receive it is for. A send
// ends when a receive has taken its message, or has begun to wait for another.
class Mailbox {
 public:
  explicit Mailbox(const Group& group);

  Steps send(Note note, Bytes data, int to);
  // `source` may be kAnySource; the sender's rank is written to it.
  Steps receive(Note note, Bytes target, std::shared_ptr<std::atomic<int>> source);

  // Gives what has come in to the receives that wait; false if nothing has.
  bool deliver();

 private:
  struct Receive { // one that waits
    Note note;
    Bytes target;
    int source;
    std::atomic<uint64_t> ended{0};
    std::string error;
  };
  struct Message { // one that comes in
    Note note;
    Receive* receive; // that it is for; if none waits, it is kept:
    std::vector<std::byte> kept;
    size_t parts_read = 0;
  };
  struct Inbox { // what comes from one rank
    uint64_t next = 0; // the next step of its ring
    std::list<Message> messages; // only the last can be incomplete
  };

  bool awaited(int from) const;
  bool deliver_kept(int from);
  bool read_part(int from);
  Receive* take_receive(int from, const Note& message);
  bool is_complete(const Message& message) const {
    return message.parts_read == parts(message.note.bytes, part_bytes_);
  }

  const Group& group_;
  const size_t part_bytes_;
  std::vector<uint64_t> sent_; // steps taken on the ring to each rank
  std::vector<Inbox> inboxes_;
  std::list<Receive*> waiting_; // in the order of their calls
};
// [/mailbox]

} // namespace shm_collectives

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
  struct Message { // one that came before its receive
    Note note;
    std::vector<std::byte> data;
  };
  struct Inbox { // what comes from one rank
    uint64_t next = 0; // the next step of its ring
    uint64_t index = 0; // the next part of its message
    Receive* receive = nullptr; // the message is for this one, if there is one
    std::list<Message> kept; // otherwise it is the last of these
  };

  bool awaited(int from) const;
  bool deliver_kept(int from);
  void read_part(int from);
  Receive* take_receive(int from, const Note& message);

  const Group& group_;
  const size_t part_bytes_;
  std::vector<uint64_t> sent_; // steps taken on the ring to each rank
  std::vector<Inbox> inboxes_;
  std::list<Receive*> waiting_; // in the order of their calls
};
// [/mailbox]

} // namespace shm_collectives

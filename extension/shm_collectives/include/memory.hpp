#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "note.hpp"
#include "waiting.hpp"

namespace shm_collectives {

using Bytes = std::span<std::byte>;

// [layout]
constexpr size_t kCacheLine = 64;
constexpr uint64_t kSlots = 4; // steps that a rank may be ahead of the slowest

// [member]
// One rank's part of the step protocol. Only that rank writes the counters, and
// nothing else is in their cache line.
struct alignas(kCacheLine) Member {
  std::atomic<uint64_t> posted; // steps that this rank has written
  std::atomic<uint64_t> read; // steps that this rank has finished reading
  alignas(kCacheLine) Bell bell;
  std::atomic<int32_t> process; // its process id
  std::atomic<bool> left; // it has closed the group
};
// [/member]

// Messages from one rank to another: the same protocol with two ranks. The
// sender writes `posted`, the receiver writes `read`.
struct Ring {
  alignas(kCacheLine) std::atomic<uint64_t> posted;
  alignas(kCacheLine) std::atomic<uint64_t> read;
};

// What precedes the data of a slot.
struct alignas(kCacheLine) Slot {
  Note note;
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

// The sizes that all ranks of a group must agree on, and what is where: a
// header, the members, the slots of all ranks, the rings of all pairs.
struct Layout {
  uint64_t ranks = 0;
  uint64_t slot_bytes = 0; // data in one slot of a rank
  uint64_t part_bytes = 0; // data in one slot of a ring

  Layout() = default;
  Layout(int ranks, uint64_t slot_bytes);
  size_t slots_at() const;
  size_t rings_at() const;
  size_t ring_stride() const { return sizeof(Ring) + kSlots * (sizeof(Slot) + part_bytes); }
  size_t total_bytes() const { return rings_at() + ranks * ranks * ring_stride(); }
  bool operator==(const Layout&) const = default;
};

// [header]
struct alignas(kCacheLine) Header {
  uint64_t nonce; // says that this is the memory that was meant
  Layout layout;
  std::atomic<int> failure; // 0: none, 1: being written, 2: can be read
  char reason[2000];
};
// [/header]
// [/layout]

// The memory of one group, mapped into this process. It has no name in any file
// system, so nothing is left when its last process ends, however that ends.
class Memory {
 public:
  // Reserves new memory; throws if there is not enough.
  static Memory create(const Layout& layout, uint64_t nonce);
  // Maps the memory that another process holds as descriptor `fd`. Throws if
  // that process does not permit it or holds something else there.
  static Memory open(pid_t process, int fd, const Layout& layout, uint64_t nonce);

  // Others can open the memory only while it has a descriptor.
  int descriptor() const { return file_.number(); }
  void close_descriptor() { file_ = Descriptor(); }

  const Layout& layout() const { return layout_; }
  Header& header() const { return *at<Header>(0); }
  Member& member(int rank) const { return at<Member>(sizeof(Header))[rank]; }
  Slot& slot(int rank, uint64_t step) const;
  Ring& ring(int from, int to) const;
  Slot& ring_slot(int from, int to, uint64_t step) const;

 private:
  Memory(const Layout& layout, int fd) : layout_(layout), file_(fd) {}
  void map();
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(base_.get() + offset);
  }

  struct Unmap {
    size_t bytes;
    void operator()(std::byte* base) const;
  };

  Layout layout_;
  Descriptor file_;
  std::unique_ptr<std::byte, Unmap> base_;
};

} // namespace shm_collectives

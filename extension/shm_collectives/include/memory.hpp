#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <c10/util/Exception.h>

#include "note.hpp"
#include "waiting.hpp"

namespace shm_collectives {

using Bytes = std::span<std::byte>;

constexpr size_t kCacheLine = 64;
constexpr uint64_t kSlots = 4; // steps that a rank may be ahead of the slowest
constexpr size_t kRingBudget = 8 << 20; // bytes for the rings of one group

// [member]
// One rank's part of the step protocol. Only that rank writes the counters, and
// nothing else is in their cache line.
struct alignas(kCacheLine) Member {
  std::atomic<uint64_t> posted; // steps that this rank has written
  std::atomic<uint64_t> read; // steps that this rank has finished reading
  alignas(kCacheLine) Bell bell;
  std::atomic<int32_t> process; // its process id
  std::atomic<int32_t> session; // of its process: see waiting_policy
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

// The sizes that all ranks of a group must agree on.
struct Layout {
  uint64_t ranks = 0;
  uint64_t slot_bytes = 0; // data in one slot of a rank
  uint64_t block_bytes = 0; // the share of a slot that is meant for one rank
  uint64_t part_bytes = 0; // data in one slot of a ring

  Layout() = default;
  // Rings get shorter as pairs get more, down to one page for each part.
  Layout(int ranks, uint64_t slot_bytes)
      : ranks(ranks), slot_bytes((slot_bytes + kCacheLine - 1) / kCacheLine * kCacheLine),
      block_bytes(this->slot_bytes / ranks / kCacheLine * kCacheLine) {
    const uint64_t share = kRingBudget / (kSlots * this->ranks * this->ranks);
    part_bytes = std::clamp<uint64_t>(share / 4096 * 4096, 4096, 128 << 10);
  }
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

// The memory of one group, mapped into this process. It has no name in any file
// system, so nothing is left when its last process ends, however that ends.
class Memory {
 public:
  // [create]
  // Reserves new memory; throws if there is not enough.
  static Memory create(const Layout& layout, uint64_t nonce) {
    Memory memory(layout, memfd_create("shm_collectives", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const int fd = memory.descriptor();
    if (fd < 0) fail("cannot create shared memory (memfd_create)");
    // Reserving every page now turns "out of memory" into an error here; otherwise
    // it would be a SIGBUS later. The seal keeps others from taking the pages away.
    const auto size = static_cast<off_t>(memory.total_bytes());
    const auto installed = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
    const bool absurd = memory.total_bytes() > installed / 2;
    if (absurd) errno = ENOMEM; // or the kernel would look for pages until it ends processes
    if (absurd || ftruncate(fd, size) != 0 || fallocate(fd, 0, 0, size) != 0) {
      fail("cannot reserve " + std::to_string(size) + " bytes of shared memory for " +
          std::to_string(layout.ranks) + " ranks (a smaller slot_bytes in the options needs less)");
    }
    // Not readable for other users, even if they can see this process's files.
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      fail("cannot protect the shared memory");
    }
    memory.map();
    // The pages are zero, which is the right start for every counter.
    memory.header().nonce = nonce;
    memory.header().layout = layout;
    return memory;
  }
  // [/create]

  // [open]
  // Maps the memory that another process holds as descriptor fd. Throws if that
  // process does not permit it or holds another file under this number.
  static Memory open(pid_t process, int fd, const Layout& layout, uint64_t nonce) {
    const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
    Memory memory(layout, ::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (memory.descriptor() < 0) fail("cannot open " + path);
    struct stat status {};
    if (fstat(memory.descriptor(), &status) == 0 &&
        static_cast<size_t>(status.st_size) == memory.total_bytes()) {
      memory.map();
      memory.close_descriptor();
      if (memory.header().nonce == nonce && memory.header().layout == layout) return memory;
    }
    C10_THROW_ERROR(DistBackendError,
        path + " is not the memory of this group; the options of the ranks may differ");
  }
  // [/open]

  // Others can open the memory only while it has a descriptor.
  int descriptor() const { return file_.number(); }
  void close_descriptor() { file_ = Descriptor(); }

  const Layout& layout() const { return layout_; }
  Header& header() const { return *at<Header>(0); }
  Member& member(int rank) const { return at<Member>(sizeof(Header))[rank]; }
  // Tells the other ranks which process this rank is.
  void enter(int rank) const {
    member(rank).process = getpid();
    member(rank).session = getsid(0);
  }
  // [one-slot]
  Slot& slot(int rank, uint64_t step) const {
    const size_t number = rank * kSlots + step % kSlots;
    return *at<Slot>(slots_at() + number * (sizeof(Slot) + layout_.slot_bytes));
  }
  // [/one-slot]
  Ring& ring(int from, int to) const {
    return *at<Ring>(rings_at() + (from * layout_.ranks + to) * ring_stride());
  }
  Slot& ring_slot(int from, int to, uint64_t step) const {
    auto* first = reinterpret_cast<std::byte*>(&ring(from, to) + 1);
    return *reinterpret_cast<Slot*>(first + step % kSlots * (sizeof(Slot) + layout_.part_bytes));
  }

 private:
  Memory(const Layout& layout, int fd) : layout_(layout), file_(fd) {}

  // A header, the members, the slots of all ranks, the rings of all pairs.
  size_t slots_at() const { return sizeof(Header) + layout_.ranks * sizeof(Member); }
  size_t rings_at() const {
    return slots_at() + layout_.ranks * kSlots * (sizeof(Slot) + layout_.slot_bytes);
  }
  size_t ring_stride() const { return sizeof(Ring) + kSlots * (sizeof(Slot) + layout_.part_bytes); }
  size_t total_bytes() const { return rings_at() + layout_.ranks * layout_.ranks * ring_stride(); }

  void map() {
    const size_t bytes = total_bytes();
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor(), 0);
    if (base == MAP_FAILED) fail("cannot map the shared memory");
    base_ = {static_cast<std::byte*>(base), Unmap{bytes}};
  }

  [[noreturn]] static void fail(const std::string& what) {
    C10_THROW_ERROR(DistBackendError, what + ": " + std::strerror(errno));
  }

  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(base_.get() + offset);
  }

  struct Unmap {
    size_t bytes;
    void operator()(std::byte* base) const { munmap(base, bytes); }
  };

  Layout layout_;
  Descriptor file_;
  std::unique_ptr<std::byte, Unmap> base_;
};

} // namespace shm_collectives

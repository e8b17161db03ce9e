#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // from Linux 5.14 on
#endif

#include "frame/bytes.hpp"
#include "frame/host.hpp"
#include "frame/note.hpp"

#include "waiting.hpp"

namespace shm_collectives {

using frame::Bytes, frame::Descriptor, frame::Note, frame::Process;

constexpr size_t kCacheLine = 64;
constexpr uint64_t kSlots = 4; // steps that a rank may be ahead of the slowest
constexpr size_t kRingBudget = 8 << 20; // bytes for the rings of one group
// one more with each change that other builds misunderstand
constexpr uint64_t kProtocol = 6;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Begins to take cache lines away from the ranks that have read them, so that a later write
// need not wait for that. Call it before a wait; long ones are as fast without it.
inline void prefetch_to_write(const void* begin, size_t bytes) {
  constexpr size_t kMost = 16 << 10;
  if (bytes > kMost) return;
  for (size_t i = 0; i < bytes; i += kCacheLine) {
    const auto& line = static_cast<const std::byte*>(begin)[i];
#if defined(__x86_64__) // where the builtin only means to read
    asm volatile("prefetchw %0" : : "m"(line));
#else
    __builtin_prefetch(&line, /*write=*/1);
#endif
  }
}

// [member]
// What a rank tells the others beside its slots. Only that rank writes it, apart from
// the bell.
struct alignas(kCacheLine) Member {
  std::atomic<uint64_t> read; // steps that this rank has finished reading
  alignas(kCacheLine) Bell bell;
  std::atomic<int32_t> process; // its process id
  std::atomic<int32_t> session; // of its process: see WaitingPolicy
  std::atomic<bool> left; // it has closed the group
};
// [/member]

// Messages from one rank to another: the same protocol with two ranks, whose ring slots
// follow. The receiver writes `read`.
struct alignas(kCacheLine) Ring {
  std::atomic<uint64_t> read;
};

// [slot]
// What a rank shows in one step. The counter, the digest and the first 48 bytes of data
// share a cache line, so that a small operation moves one. The note of a collective is
// read only to explain why two digests differ.
struct alignas(kCacheLine) Slot {
  Note note;
  alignas(kCacheLine) std::atomic<uint64_t> posted; // the number of the step, plus 1
  uint64_t digest; // of the note
  std::byte* data() { return reinterpret_cast<std::byte*>(&digest + 1); }

  static constexpr size_t kHead = kCacheLine + 2 * sizeof(uint64_t); // before the data
  static constexpr size_t stride(size_t data_bytes) {
    return (kHead + data_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
};
// [/slot]

// What a sender shows in one step of a ring. The counter, the note and the first 24 bytes
// of data share a cache line, so that a short message moves one.
struct alignas(kCacheLine) RingSlot {
  std::atomic<uint64_t> posted; // the number of the step, plus 1
  Note note;
  std::byte* data() { return reinterpret_cast<std::byte*>(&note + 1); }

  static constexpr size_t stride(size_t data_bytes) {
    constexpr size_t kHead = sizeof(posted) + sizeof(Note);
    return (kHead + data_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
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
      : ranks(ranks),
        slot_bytes((slot_bytes + kCacheLine - 1) / kCacheLine * kCacheLine),
        block_bytes(this->slot_bytes / ranks / kCacheLine * kCacheLine) {
    const uint64_t share = kRingBudget / (kSlots * this->ranks * this->ranks);
    part_bytes = std::clamp<uint64_t>(share / 4096 * 4096, 4096, 128 << 10);
  }
  bool operator==(const Layout&) const = default;
};

// [header]
struct alignas(kCacheLine) Header {
  uint64_t nonce; // says that this is the memory that was meant
  uint64_t protocol; // kProtocol of the rank that created it
  Layout layout;
  std::atomic<int> failed; // kGood, or 1 + the rank that says so
  std::atomic<bool> explained; // the reason can be read
  char reason[1990];
};
constexpr int kGood = 0;
// [/header]

// The memory of one group, mapped into this process. It has no name in any file
// system, so nothing is left when its last process ends, however that ends.
class Memory {
 public:
  // [create]
  // Makes new memory, and reserves the pages of the header and the members. Those
  // of the slots are reserved when a rank first uses them.
  static Memory create(const Layout& layout, uint64_t nonce) {
    Memory memory(
        layout, memfd_create("shm_collectives", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const int fd = memory.descriptor();
    if (fd < 0) fail("cannot create shared memory (memfd_create)");
    const auto size = static_cast<off_t>(memory.total_bytes());
    const auto first = static_cast<off_t>(memory.slots_at());
    const auto installed =
        size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
    const bool absurd = memory.total_bytes() > installed / 2;
    if (absurd) errno = ENOMEM; // or the kernel would end processes when it is used
    if (absurd || ftruncate(fd, size) != 0 || fallocate(fd, 0, 0, first) != 0) {
      fail("cannot reserve " + std::to_string(size) + " bytes of shared memory for " +
          std::to_string(layout.ranks) + " ranks" + kSmaller);
    }
    // Not readable for other users, even if they can see this process's files; and
    // no process can make it shorter.
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 || fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
      fail("cannot protect the shared memory");
    }
    memory.map();
    // The pages are zero, which is the right start for every counter. Nobody constructs
    // the objects in them: C++ takes this for undefined before std::start_lifetime_as of
    // C++23, and every compiler does what is meant.
    memory.header().nonce = nonce;
    memory.header().protocol = kProtocol;
    memory.header().layout = layout;
    return memory;
  }
  // [/create]

  // [open]
  // Maps the memory that another process holds as descriptor fd. Throws if that
  // process does not permit it or holds another file under this number.
  static Memory open(pid_t process, int fd, const Layout& layout, uint64_t nonce) {
    const std::string path =
        "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
    Memory memory(layout, ::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (memory.descriptor() < 0)
      fail("cannot open " + path, errno == EACCES ? kHidden : "");
    std::string problem = memory.distrust();
    if (problem.empty()) {
      memory.map();
      problem = memory.difference(nonce);
    }
    memory.close_descriptor();
    if (problem.empty()) return memory;
    throw std::runtime_error(path + " is not the memory of this group: " + problem);
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
    member(rank).session = getsid(0);
    member(rank).process = getpid();
  }

  // [fail]
  // Makes every operation of every rank fail, now and later. Only the first reason
  // counts.
  void fail(int rank, const std::string& reason) const {
    int nobody = kGood;
    if (!header().failed.compare_exchange_strong(nobody, 1 + rank)) return;
    size_t size = std::min(reason.size(), sizeof(header().reason) - 1);
    // Not in the middle of a letter, which Python could not decode.
    while (size < reason.size() && (reason[size] & 0xC0) == 0x80) --size;
    std::memcpy(header().reason, reason.data(), size);
    // From now on the others can read the reason, which is never written again.
    header().explained.store(true);
    ring_others(rank);
  }
  // [/fail]
  // Wakes every other rank that sleeps, if there is `news` for them; call it after
  // writing a counter. Nothing is asked while no rank sleeps.
  template <class News>
  void ring_others(int rank, const News& news) const {
    bool is_new = false;
    for (int other = 0; other < static_cast<int>(layout_.ranks); ++other) {
      Bell& bell = member(other).bell;
      if (other == rank || !bell.has_sleepers()) continue;
      if (!is_new && !(is_new = news())) return;
      bell.ring();
    }
  }
  void ring_others(int rank) const {
    ring_others(rank, [] { return true; });
  }
  // [one-slot]
  Slot& slot(int rank, uint64_t step) const {
    const size_t number = rank * kSlots + step % kSlots;
    return *at<Slot>(slots_at() + number * Slot::stride(layout_.slot_bytes));
  }
  // From the counter of one rank to that of the next.
  size_t to_next_rank() const { return kSlots * Slot::stride(layout_.slot_bytes); }
  // [/one-slot]
  // [reserve]
  // The slot of this rank, with all its pages.
  Slot& writable_slot(int rank, uint64_t step) const {
    const size_t bytes = Slot::stride(layout_.slot_bytes);
    return reserve(slot(rank, step), bytes, step % kSlots);
  }
  // [/reserve]
  RingSlot& writable_ring_slot(int from, int to, uint64_t step) const {
    const size_t bytes = RingSlot::stride(layout_.part_bytes);
    const size_t number = (to + 1) * kSlots + step % kSlots;
    return reserve(ring_slot(from, to, step), bytes, number);
  }
  Ring& ring(int from, int to) const {
    return *at<Ring>(rings_at() + (from * layout_.ranks + to) * ring_stride());
  }
  RingSlot& ring_slot(int from, int to, uint64_t step) const {
    auto* first = reinterpret_cast<std::byte*>(&ring(from, to) + 1);
    return *reinterpret_cast<RingSlot*>(
        first + step % kSlots * RingSlot::stride(layout_.part_bytes));
  }

 private:
  Memory(const Layout& layout, int fd)
      : layout_(layout),
        file_(fd),
        reserved_(new bool[(layout.ranks + 1) * kSlots]()) {}

  // [distrust]
  // Why not even one byte of this file may be read, or nothing: only create() of
  // the same user makes files that no other user can write and that cannot shrink.
  std::string distrust() const {
    struct stat status{};
    const bool found = fstat(descriptor(), &status) == 0;
    const int seals = fcntl(descriptor(), F_GET_SEALS); // -1: no memfd
    if (!found || !S_ISREG(status.st_mode) || seals < 0) return "it is not a memfd";
    const auto owner = status.st_uid;
    if (owner != geteuid()) return "it belongs to user " + std::to_string(owner);
    if ((seals & kSeals) != kSeals) return "it is not sealed, so it could shrink";
    const auto size = static_cast<uint64_t>(status.st_size);
    if (size == total_bytes()) return "";
    return "it has " + std::to_string(size) + " bytes, not " +
        std::to_string(total_bytes()) + "; the options of the ranks may differ";
  }
  // [/distrust]

  // Why the mapped memory cannot be used, or nothing.
  std::string difference(uint64_t nonce) const {
    const Header& its = header();
    if (its.nonce != nonce) return "it has another number";
    if (its.protocol != kProtocol) {
      return "it follows protocol " + std::to_string(its.protocol) +
          ", this rank protocol " + std::to_string(kProtocol);
    }
    const bool same = its.layout == layout_;
    return same ? ""
                : "its parts have other sizes; the options of the ranks may differ";
  }

  // A header, the members, the slots of all ranks, the rings of all pairs.
  size_t slots_at() const { return sizeof(Header) + layout_.ranks * sizeof(Member); }
  size_t rings_at() const { return slots_at() + layout_.ranks * to_next_rank(); }
  size_t ring_stride() const {
    return sizeof(Ring) + kSlots * RingSlot::stride(layout_.part_bytes);
  }
  size_t total_bytes() const {
    return rings_at() + layout_.ranks * layout_.ranks * ring_stride();
  }

  void map() {
    const size_t bytes = total_bytes();
#ifdef __SANITIZE_THREAD__
    // It compares addresses, so ranks that are threads of one process share a mapping.
    static std::mutex mutex;
    static auto& mappings = *new std::map<ino_t, std::weak_ptr<std::byte>>();
    struct stat status{};
    fstat(descriptor(), &status);
    const std::lock_guard lock(mutex);
    auto& known = mappings[status.st_ino];
    if ((base_ = known.lock())) return;
#endif
    void* base =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor(), 0);
    if (base == MAP_FAILED) fail("cannot map the shared memory");
    base_ = {static_cast<std::byte*>(base),
        [bytes](std::byte* base) { munmap(base, bytes); }};
#ifdef __SANITIZE_THREAD__
    known = base_;
#endif
  }

  // Without this, a shortage would be a signal when a page is first used. The kernel
  // looks for all of them now, so that it can return an error.
  template <class AnySlot>
  AnySlot& reserve(AnySlot& slot, size_t bytes, size_t number) const {
    if (reserved_[number]) return slot;
    auto* begin = reinterpret_cast<std::byte*>(&slot);
    const size_t page = sysconf(_SC_PAGESIZE);
    const size_t before = reinterpret_cast<uintptr_t>(begin) % page;
    if (madvise(begin - before, before + bytes, MADV_POPULATE_WRITE) != 0) {
      if (errno != EINVAL) {
        fail("cannot reserve " + std::to_string(bytes) + " bytes of memory" + kSmaller);
      }
      // An older kernel. The slot is new, so it is zero.
      for (size_t i = 0; i < bytes; i += page) {
        static_cast<volatile std::byte*>(begin)[i] = {};
      }
      static_cast<volatile std::byte*>(begin)[bytes - 1] = {}; // in a page of its own
    }
    reserved_[number] = true;
    return slot;
  }

  static constexpr const char* kSmaller =
      " (a smaller slot_bytes in the options needs less)";

  // The kernel hides the files of a process that has changed its user, or has had rights
  // that others do not have.
  static constexpr const char* kHidden =
      " (has that process changed its user, or had more rights? It allows this with "
      "prctl(PR_SET_DUMPABLE, 1))";

  // With the error of the last call of the kernel.
  [[noreturn]] static void fail(const std::string& what, const char* hint = "") {
    const bool files = errno == EMFILE || errno == ENFILE;
    throw std::runtime_error(what + ": " + std::strerror(errno) +
        (files ? " (see the limits, ulimit -n and fs.file-max)" : hint));
  }

  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(base_.get() + offset);
  }

  Layout layout_;
  Descriptor file_;
  // slots of this rank; then its ring slots to each rank
  std::unique_ptr<bool[]> reserved_;
  std::shared_ptr<std::byte> base_;
};

} // namespace shm_collectives

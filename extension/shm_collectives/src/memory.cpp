#include "memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <c10/util/Exception.h>

namespace shm_collectives {

namespace {

constexpr size_t kRingBudget = 8 << 20; // bytes for the rings of one group

[[noreturn]] void fail(const std::string& what) {
  C10_THROW_ERROR(DistBackendError, what + ": " + std::strerror(errno));
}

} // namespace

// [offsets]
// Rings get shorter as pairs get more, down to one page for each part.
Layout::Layout(int ranks, uint64_t slot_bytes)
    : ranks(ranks), slot_bytes((slot_bytes + kCacheLine - 1) / kCacheLine * kCacheLine) {
  const uint64_t share = kRingBudget / (kSlots * this->ranks * this->ranks);
  part_bytes = std::clamp<uint64_t>(share / 4096 * 4096, 4096, 128 << 10);
}

size_t Layout::slots_at() const {
  return sizeof(Header) + ranks * sizeof(Member);
}

size_t Layout::rings_at() const {
  return slots_at() + ranks * kSlots * (sizeof(Slot) + slot_bytes);
}

// [one-slot]
Slot& Memory::slot(int rank, uint64_t step) const {
  const size_t number = rank * kSlots + step % kSlots;
  return *at<Slot>(layout_.slots_at() + number * (sizeof(Slot) + layout_.slot_bytes));
}
// [/one-slot]

Ring& Memory::ring(int from, int to) const {
  const size_t number = from * layout_.ranks + to;
  return *at<Ring>(layout_.rings_at() + number * layout_.ring_stride());
}

Slot& Memory::ring_slot(int from, int to, uint64_t step) const {
  auto* first = reinterpret_cast<std::byte*>(&ring(from, to) + 1);
  return *reinterpret_cast<Slot*>(first + step % kSlots * (sizeof(Slot) + layout_.part_bytes));
}
// [/offsets]

// [create]
Memory Memory::create(const Layout& layout, uint64_t nonce) {
  Memory memory(layout, memfd_create("shm_collectives", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int fd = memory.descriptor();
  if (fd < 0) fail("cannot create shared memory (memfd_create)");
  // Reserving every page now turns "out of memory" into an error here; otherwise
  // it would be a SIGBUS later. The seal keeps others from taking the pages away.
  const auto size = static_cast<off_t>(layout.total_bytes());
  const auto installed = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
  const bool absurd = layout.total_bytes() > installed / 2;
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
Memory Memory::open(pid_t process, int fd, const Layout& layout, uint64_t nonce) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
  Memory memory(layout, ::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (memory.descriptor() < 0) fail("cannot open " + path);
  struct stat status {};
  if (fstat(memory.descriptor(), &status) == 0 &&
      static_cast<size_t>(status.st_size) == layout.total_bytes()) {
    memory.map();
    memory.close_descriptor();
    if (memory.header().nonce == nonce && memory.header().layout == layout) return memory;
  }
  C10_THROW_ERROR(DistBackendError,
      path + " is not the memory of this group; the options of the ranks may differ");
}

void Memory::map() {
  const size_t bytes = layout_.total_bytes();
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor(), 0);
  if (base == MAP_FAILED) fail("cannot map the shared memory");
  base_ = {static_cast<std::byte*>(base), Unmap{bytes}};
}

void Memory::Unmap::operator()(std::byte* base) const {
  munmap(base, bytes);
}
// [/open]

} // namespace shm_collectives

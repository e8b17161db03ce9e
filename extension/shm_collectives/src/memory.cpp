#include "memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <c10/util/Exception.h>

namespace shm_collectives {

namespace {

constexpr size_t kRingBudget = 8 << 20; // bytes for the rings of one group

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

[[noreturn]] void fail(const std::string& what) {
  C10_THROW_ERROR(DistBackendError, what + ": " + std::strerror(errno));
}

} // namespace

// [offsets]
// Header, members, slots of all ranks, rings of all pairs. Rings get shorter as
// pairs get more, down to one page for each part.
Layout::Layout(int ranks, uint64_t slot_bytes)
    : ranks(ranks), slot_bytes(round_up(slot_bytes, kCacheLine)) {
  const uint64_t share = kRingBudget / (kSlots * this->ranks * this->ranks);
  part_bytes = std::clamp<uint64_t>(share / 4096 * 4096, 4096, 128 << 10);
}

size_t Layout::slots_at() const {
  return round_up(sizeof(Header), kCacheLine) + ranks * sizeof(Member);
}

size_t Layout::rings_at() const {
  return slots_at() + ranks * kSlots * (sizeof(SlotHeader) + slot_bytes);
}

size_t Layout::ring_stride() const {
  return sizeof(Ring) + kSlots * (sizeof(SlotHeader) + part_bytes);
}

size_t Layout::total_bytes() const {
  return round_up(rings_at() + ranks * ranks * ring_stride(), 4096);
}

Member& Memory::member(int rank) const {
  return at<Member>(round_up(sizeof(Header), kCacheLine))[rank];
}

SlotHeader& Memory::slot(int rank, uint64_t step) const {
  const size_t number = rank * kSlots + step % kSlots;
  return *at<SlotHeader>(layout_.slots_at() + number * (sizeof(SlotHeader) + layout_.slot_bytes));
}

Ring& Memory::ring(int from, int to) const {
  const size_t number = from * layout_.ranks + to;
  return *at<Ring>(layout_.rings_at() + number * layout_.ring_stride());
}

SlotHeader& Memory::ring_slot(int from, int to, uint64_t step) const {
  auto* first = reinterpret_cast<std::byte*>(&ring(from, to) + 1);
  const size_t stride = sizeof(SlotHeader) + layout_.part_bytes;
  return *reinterpret_cast<SlotHeader*>(first + step % kSlots * stride);
}
// [/offsets]

// [create]
Memory Memory::create(const Layout& layout, uint64_t nonce) {
  Memory memory;
  memory.layout_ = layout;
  memory.fd_ = memfd_create("shm_collectives", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory.fd_ < 0) fail("cannot create shared memory (memfd_create)");
  // Reserving every page now turns "out of memory" into an error here; later it
  // would be a SIGBUS. The seal keeps others from taking the pages away.
  const auto size = static_cast<off_t>(layout.total_bytes());
  const auto memory_bytes = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
  const bool absurd = layout.total_bytes() > memory_bytes / 2;
  if (absurd) errno = ENOMEM; // or the kernel would look for pages until it ends processes
  if (absurd || ftruncate(memory.fd_, size) != 0 || fallocate(memory.fd_, 0, 0, size) != 0) {
    fail("cannot reserve " + std::to_string(size) +
        " bytes of shared memory for " + std::to_string(layout.ranks) +
        " ranks (a smaller slot_bytes in the options needs less)");
  }
  // Not readable for other users, even if they can see this process's files.
  if (fchmod(memory.fd_, S_IRUSR | S_IWUSR) != 0 ||
      fcntl(memory.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
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
  Memory memory;
  memory.layout_ = layout;
  memory.fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (memory.fd_ < 0 || fstat(memory.fd_, &status) != 0) fail("cannot open " + path);
  if (static_cast<size_t>(status.st_size) == layout.total_bytes()) {
    memory.map();
    memory.close_descriptor();
    if (memory.header().nonce == nonce && memory.header().layout == layout) return memory;
  }
  C10_THROW_ERROR(DistBackendError,
      path + " is not the memory of this group; the options of the ranks may " "differ");
}

void Memory::map() {
  void* base = mmap(nullptr, layout_.total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED) fail("cannot map the shared memory");
  base_ = static_cast<std::byte*>(base);
}
// [/open]

void Memory::close_descriptor() {
  if (fd_ >= 0) {
    close(fd_);
    fd_ = -1;
  }
}

Memory::Memory(Memory&& other) noexcept {
  *this = std::move(other);
}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(layout_, other.layout_);
  std::swap(fd_, other.fd_);
  std::swap(base_, other.base_);
  return *this;
}

Memory::~Memory() {
  close_descriptor();
  if (base_ != nullptr) munmap(base_, layout_.total_bytes());
}

} // namespace shm_collectives

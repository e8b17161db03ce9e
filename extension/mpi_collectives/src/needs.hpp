#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>

#include "frame/host.hpp"

namespace mpi_collectives {

// [needs]
// What the start of MPI takes from this host. If it is short of something, MPI ends the
// process, by SIGBUS or exit(). So each rank asks for it first, and raises an error.
class Needs {
 public:
  explicit Needs(int ranks) {
    require_descriptors();
    require_address_space(ranks);
    require_thread();
    reserve_shared_memory();
  }

 private:
  // MPI takes 7 at most, and one for the connection to each rank of another host.
  static void require_descriptors() {
    std::vector<frame::Descriptor> files;
    for (int i = 0; i < kDescriptors; ++i) {
      files.emplace_back(::open("/", O_PATH | O_CLOEXEC));
      if (files.back().number() >= 0) continue;
      throw std::runtime_error("MPI needs " + std::to_string(kDescriptors) +
          " file descriptors, and this process gets only " + std::to_string(i) +
          " more; raise `ulimit -n`, or close files");
    }
  }

  // Each rank maps the memory that all ranks of its host share.
  static void require_address_space(int ranks) {
    const size_t bytes = (48 + 2 * size_t(ranks)) << 20;
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) {
      ::munmap(mapped, bytes);
      return;
    }
    throw std::runtime_error("MPI needs " + std::to_string(bytes >> 20) +
        " MiB of address space, which this process does not get; raise `ulimit -v`");
  }

  static void require_thread() {
    try {
      std::thread([] {}).join();
    } catch (const std::system_error&) {
      throw std::runtime_error(
          "MPI needs a thread, which this process cannot start; raise `ulimit -u`, the "
          "container's limit of processes, or `ulimit -v`");
    }
  }

  // Held until MPI takes its own: only when each rank of the host has its part is there
  // enough for all.
  void reserve_shared_memory() {
    shared_ =
        frame::Descriptor(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (::posix_fallocate(shared_.number(), 0, kShared) != ENOSPC) return;
    throw std::runtime_error(
        "/dev/shm is full: MPI needs 1.02 MiB there for each rank of a host; make it "
        "larger (docker run --shm-size), or remove files /dev/shm/mpich_* that no process "
        "uses");
  }

  static constexpr int kDescriptors = 16;
  static constexpr off_t kShared = 1040 << 10; // MPICH 5.0.2 takes 1037 KiB

  frame::Descriptor shared_;
};
// [/needs]

} // namespace mpi_collectives

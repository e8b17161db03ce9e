#pragma once

#include <cstring>
#include <string_view>

#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stuck.hpp"

namespace mpi_collectives {

// [exits]
// MPICH calls exit() when an error is fatal to it, such as that of a connection that breaks,
// and lets all ranks of the communicator do the same. No program could then say what has
// happened. So the thread of the library stops in this call instead, as if MPI did not
// return: operations end with errors all the same, because other threads see to that.
class Exits {
 public:
  // Called on the thread of the library. Puts a function of ours into the place where
  // libmpi keeps the address of exit().
  static void take() {
    of_library_ = true;
    ::dl_iterate_phdr(
        [](dl_phdr_info* object, size_t, void*) {
          const std::string_view name = object->dlpi_name;
          if (name.find("/libmpi.so") != name.npos) take_from(*object);
          return 0;
        },
        nullptr);
  }

 private:
  static void exit(int status) {
    if (!of_library_) ::exit(status); // another package of the process has called MPI
    Stuck::forever("MPI has ended itself with the exit code " + std::to_string(status) +
            ", perhaps with a reason on standard error; start the processes again",
        Stuck::kPerhapsElsewhere);
  }

  static void take_from(const dl_phdr_info& object) {
    const ElfW(Dyn)* entry = nullptr;
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      const auto& part = object.dlpi_phdr[i];
      if (part.p_type != PT_DYNAMIC) continue;
      entry = reinterpret_cast<ElfW(Dyn)*>(object.dlpi_addr + part.p_vaddr);
    }
    const ElfW(Rela)* relocations = nullptr;
    const ElfW(Sym)* symbols = nullptr;
    const char* names = nullptr;
    size_t bytes = 0;
    for (; entry && entry->d_tag != DT_NULL; ++entry) {
      const auto address = entry->d_un.d_ptr;
      if (entry->d_tag == DT_JMPREL)
        relocations = reinterpret_cast<ElfW(Rela)*>(address);
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_PLTRELSZ) bytes = entry->d_un.d_val;
    }
    for (size_t i = 0; i < bytes / sizeof(*relocations); ++i) {
      const auto& symbol = symbols[ELF64_R_SYM(relocations[i].r_info)];
      if (strcmp(names + symbol.st_name, "exit") != 0) continue;
      const auto slot = object.dlpi_addr + relocations[i].r_offset;
      const auto page = slot & ~(static_cast<uintptr_t>(::getpagesize()) - 1);
      auto* const start = reinterpret_cast<void*>(page);
      // The page is read-only if the library was linked with full RELRO.
      if (::mprotect(start, slot + sizeof(void*) - page, PROT_READ | PROT_WRITE) == 0) {
        *reinterpret_cast<void (**)(int)>(slot) = &Exits::exit;
      }
    }
  }

  static inline thread_local bool of_library_ = false;
};
// [/exits]

} // namespace mpi_collectives

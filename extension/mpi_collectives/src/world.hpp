#pragma once

#include <filesystem>
#include <fstream>

#include <net/if.h>

#include "exits.hpp"
#include "requests.hpp"
#include "pmi_server.hpp"

namespace mpi_collectives {

// [world]
// MPI in this process, from the first group to the end of the process, and the
// communicators of its groups. Only the thread of the library uses it.
class World {
 public:
  static World& get() {
    static World world;
    return world;
  }

  // Creates the communicator of a group, on each of its ranks. MPI numbers the processes
  // once, with the ranks of the first group. So the first group must contain all.
  MPI_Comm communicator(const frame::Place& place, const std::string& interface) {
    if (size_ == 0) prepare(place, interface);
    require_one_world(place);
    if (size_ == 0) start(place);
    const auto& ranks = place.names.global_ranks; // empty: those of the group
    std::vector<int> members(ranks.begin(), ranks.end());
    for (int rank = 0; ranks.empty() && rank < place.size; ++rank) {
      members.push_back(rank);
    }
    MPI_Group all = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
    check(MPI_Group_incl(all, place.size, members.data(), &group), "MPI_Group_incl");
    check(MPI_Comm_create_from_group(group, place.names.group.c_str(), MPI_INFO_NULL,
              MPI_ERRORS_RETURN, &comm),
        "MPI_Comm_create_from_group");
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    forget_names();
    return comm;
  }
  // [/world]

 private:
  // All that a rank alone can refuse. Later the others would wait for it in MPI, which
  // does not notice its error, as await() does.
  static void prepare(const frame::Place& place, const std::string& interface) {
    const bool launched = getenv("PMI_SIZE") != nullptr;
    if (launched) {
      require_same("PMI_SIZE", place.size);
      require_same("PMI_RANK", place.rank);
    } else if (is_initialized()) {
      throw std::runtime_error(
          "another package has initialized MPI for one process; "
          "import it after init_process_group, or use mpiexec");
    }
    const auto& ranks = place.names.global_ranks;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == i) continue;
      throw std::runtime_error(
          "the first group of backend mpich must contain all "
          "ranks, in their order");
    }
    // [network]
    // The network that a wheel of MPICH can use everywhere, unless the environment names
    // another.
    setenv("MPIR_CVAR_CH4_NETMOD", "ofi", 0);
    setenv("FI_PROVIDER", "tcp", 0);
    if (!interface.empty()) {
      if (if_nametoindex(interface.c_str()) == 0) {
        throw std::runtime_error("this host has no network interface \"" + interface +
            "\"; `ip link` lists those that it has");
      }
      setenv("FI_TCP_IFACE", interface.c_str(), 1);
    }
    // [/network]
  }

  // A rank that the first group lacked would wait for the others to start MPI again. So all
  // tell each other first in how many ranks their MPI runs.
  void require_one_world(const frame::Place& place) const {
    frame::Keys::Names keys;
    for (int rank = 0; rank < place.size; ++rank) {
      keys.push_back("world/" + to_string(rank));
    }
    place.keys->publish(keys[place.rank], to_string(size_));
    const auto sizes = place.await(keys);
    for (int rank = 0; rank < place.size; ++rank) {
      if (sizes[rank] == to_string(size_)) continue;
      const int without = size_ == 0 ? place.rank : rank;
      throw std::runtime_error("MPI runs without " + place.names.who(without) +
          ", which the first group of backend mpich lacked; create a group of all ranks "
          "first");
    }
  }

  void start(const frame::Place& place) {
    // [launched]
    const bool launched = getenv("PMI_SIZE") != nullptr; // by mpiexec
    if (!launched) PmiServer::start(place.keys, place.rank, place.size);
    if (!is_initialized()) {
      int provided = 0;
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
          "MPI_Init_thread");
    }
    // Programs that this process starts must not take them for those of mpiexec.
    if (!launched) {
      for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
    }
    // [/launched]
    // Errors that belong to no communicator, such as that of a lost connection, would end
    // the process.
    for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
    Exits::take();
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  static bool is_initialized() {
    int initialized = 0;
    MPI_Initialized(&initialized);
    return initialized != 0;
  }

  // mpiexec has started this process, and MPI believes it.
  static void require_same(const char* variable, int number) {
    const std::string text = getenv(variable) ? getenv(variable) : "";
    if (text == to_string(number)) return;
    throw std::runtime_error("mpiexec says " + std::string(variable) + "=" + text +
        ", but this rank of torch.distributed expects " + to_string(number) +
        "; start as many processes as there are ranks, with the same numbers");
  }

  // MPI shares memory between the ranks of a host under names, which it would leave behind,
  // because it is never finalized. All have opened it by now. A start that was killed has
  // left names that no process uses.
  static void forget_names() {
    namespace fs = std::filesystem;
    const auto uses = [](const fs::path& process, const std::string& name) {
      std::ifstream maps(process / "maps");
      std::string line;
      while (std::getline(maps, line) && line.find(name) == std::string::npos) {
      }
      return bool(maps);
    };
    std::error_code none; // others may erase the same
    for (const auto& entry : fs::directory_iterator("/dev/shm", none)) {
      const auto name = entry.path().string();
      if (name.find("/mpich_") == std::string::npos) continue;
      bool used = false;
      const auto age = fs::file_time_type::clock::now() - entry.last_write_time(none);
      if (!uses("/proc/self", name)) {
        used = age < std::chrono::minutes(1); // another start goes on
        for (const auto& process : fs::directory_iterator("/proc", none)) {
          used = used || uses(process, name);
        }
      }
      if (!used) fs::remove(name, none);
    }
  }

  int size_ = 0; // of MPI_COMM_WORLD, once it is started
};

} // namespace mpi_collectives

#pragma once

#include <fstream>
#include <sstream>

#include <net/if.h>

#include "environment.hpp"
#include "exits.hpp"
#include "needs.hpp"
#include "pmi_server.hpp"
#include "requests.hpp"
#include "turn.hpp"

namespace mpi_collectives {

// [world]
// MPI in this process, from the first group to the end of the process, and the
// communicators of its groups. Only the thread of the library calls it; the threads that
// create groups wait for the other ranks.
class World {
 public:
  static World& get() {
    static World world;
    return world;
  }

  // Creates the communicator of a group, on each of its ranks.
  MPI_Comm communicator(const frame::Place& place, const std::string& interface) {
    const auto needs = std::make_shared<std::unique_ptr<Needs>>();
    run(place, "start", [=, this] { *needs = prepare(place, interface); });
    const auto turn = std::make_shared<Turn>(place);
    const auto members = this->members(place, turn->meet(mine(place)));
    const auto comm = std::make_shared<MPI_Comm>(); // the thread may come too late
    run(place, "connect the ranks", [=, this] {
      needs->reset(); // MPI takes what this has held
      if (start_ == kNone) start(place, interface, turn->first());
      *comm = create(place, members);
    });
    return *comm;
  }
  // [/world]

 private:
  // Whether the ranks are in the same MPI: the number of the process of rank 0 at its
  // start, and the rank in it.
  std::string mine(const frame::Place& place) const {
    return start_ + " " + to_string(start_ == kNone ? place.rank : rank_);
  }

  // MPI numbers processes once, at its start. A later group may number them otherwise.
  // Returns the members as MPI numbers them, from what each rank says.
  std::vector<int> members(
      const frame::Place& place, const std::vector<std::string>& said) const {
    std::vector<int> members;
    std::map<std::string, std::string> starts;
    for (int rank = 0; rank < place.size; ++rank) {
      std::istringstream text(said[rank]);
      std::string start;
      int number = -1;
      if (!(text >> start >> number)) {
        throw std::runtime_error("another program has changed the keys of the store");
      }
      auto& ranks = starts[start];
      ranks += (ranks.empty() ? "" : ", ") + place.names.who(rank);
      members.push_back(number);
    }
    if (starts.size() == 1) return members;
    std::string list;
    for (const auto& [start, ranks] : starts) {
      list += (list.empty() ? "" : "; ") + ranks +
          (start == kNone ? " in none" : " in one of them");
    }
    throw std::runtime_error(
        "MPI cannot connect processes of different starts of it (" + list +
        "); the first group of backend mpich in each process must contain all ranks of "
        "later groups, so create it first, or use another backend for this group");
  }

  MPI_Comm create(const frame::Place& place, const std::vector<int>& members) const {
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

  // Runs a function on the thread of MPI. It may wait there for the other ranks, so the
  // caller also looks whether they or MPI have failed.
  static void run(
      const frame::Place& place, const char* what, std::function<void()> function) {
    const auto look = [&place] {
      const auto reason = Stuck::reason(frame::milliseconds(0));
      if (reason) throw std::runtime_error(*reason);
      if (place.keys->has({frame::Place::kFailed})) {
        throw std::runtime_error("another rank cannot connect");
      }
    };
    try {
      library().run(std::move(function), place.deadline, what, look);
    } catch (const std::exception&) {
      forget_names(); // a start that has failed never comes to that
      throw;
    }
  }

  // All that a rank alone can refuse. Later the others would wait for it in MPI, which
  // does not notice its error, as await() does.
  std::unique_ptr<Needs> prepare(
      const frame::Place& place, const std::string& interface) const {
    if (start_ != kNone) return nullptr;
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
    if (!interface.empty() && if_nametoindex(interface.c_str()) == 0) {
      throw std::runtime_error("this host has no network interface \"" + interface +
          "\"; `ip link` lists those that it has");
    }
    return is_initialized() ? nullptr : std::make_unique<Needs>(place.size);
  }

  // [network]
  // The network that a wheel of MPICH can use everywhere, unless the environment names
  // another.
  static std::map<std::string, std::string> network(const std::string& interface) {
    std::map<std::string, std::string> variables{
        {"MPIR_CVAR_CH4_NETMOD", "ofi"}, {"FI_PROVIDER", "tcp"}};
    std::erase_if(variables, [](const auto& one) { return getenv(one.first.c_str()); });
    if (!interface.empty()) variables["FI_TCP_IFACE"] = interface;
    return variables;
  }
  // [/network]

  void start(const frame::Place& place, const std::string& interface,
      const std::string& number) {
    Exits::take();
    // [launched]
    auto variables = network(interface);
    const bool launched = getenv("PMI_SIZE") != nullptr; // by mpiexec
    if (!launched) variables.merge(PmiServer::start(place, "c10d_" + number));
    if (!is_initialized()) {
      const Environment environment(variables);
      int provided = 0;
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
          "MPI_Init_thread");
    }
    // [/launched]
    // Errors that belong to no communicator, such as that of a lost connection, would end
    // the process.
    for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    start_ = number;
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
  // because it is never finalized. All ranks have opened it by now. Other starts have names
  // that this process does not map.
  static void forget_names() {
    static const std::string folder = "/dev/shm/";
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const size_t found = line.find(folder + "mpich_");
      if (found != line.npos) ::unlink(line.c_str() + found); // or another rank has
    }
  }

  static constexpr const char* kNone = "none";

  // The start of MPI that this process took part in, and its rank there. Only the thread of
  // the library writes them; the thread that has the Turn of this process reads them, too.
  std::string start_ = kNone;
  int rank_ = 0;
};

} // namespace mpi_collectives

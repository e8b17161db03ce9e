#pragma once

#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

#include "frame/keys.hpp"

namespace mpi_collectives {

using std::to_string;

// The part of mpiexec that MPI needs: MPICH asks its launcher for the addresses of the
// other ranks, in lines of text through a socket (version 1.1 of PMI). Here a thread
// answers from the keys of the group, so that any launcher will do.
//
//   pmi/name: tells apart what several jobs leave in the shared memory of one host
//   pmi/key/<key>: what a rank has put
//   pmi/barrier/<number>: how many ranks have come
//
// MPI asks for addresses until its first communicator exists. The thread goes on until
// MPI closes the socket, which is the end of the process.
class PmiServer {
 public:
  // [start]
  // Sets the variables of the environment from which MPI learns of the server.
  static void start(std::shared_ptr<frame::Keys> keys, int rank, int size) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::runtime_error("cannot connect MPI to its launcher (socketpair)");
    }
    if (rank == 0)
      keys->set_text("pmi/name", "c10d_" + to_string(std::random_device()()));
    setenv("PMI_FD", to_string(ends[0]).c_str(), 1);
    setenv("PMI_RANK", to_string(rank).c_str(), 1);
    setenv("PMI_SIZE", to_string(size).c_str(), 1);
    std::thread([server = PmiServer(std::move(keys), size, ends[1])]() mutable {
      server.serve();
    }).detach();
  }
  // [/start]

 private:
  PmiServer(std::shared_ptr<frame::Keys> keys, int size, int socket)
      : keys_(std::move(keys)), size_(size), socket_(socket) {}

  void serve() {
    char line[4096];
    FILE* const lines = fdopen(socket_, "r");
    while (fgets(line, sizeof(line), lines) != nullptr) {
      std::string text = "cmd=error rc=-1 msg=store_lost"; // MPI reports the failure
      try {
        text = answer({line, strcspn(line, "\n")});
      } catch (const std::exception&) {
      }
      if (dprintf(socket_, "%s\n", text.c_str()) < 0) break;
    }
    fclose(lines);
  }

  // [answer]
  std::string answer(const std::string& line) {
    static const std::map<std::string, std::string> constants{
        {"init", "response_to_init rc=0 pmi_version=1 pmi_subversion=1"},
        {"get_maxes", "maxes rc=0 kvsname_max=256 keylen_max=256 vallen_max=1024"},
        {"get_appnum", "appnum rc=0 appnum=0"}, {"finalize", "finalize_ack rc=0"}};
    const auto command = field(line, "cmd");
    if (constants.contains(command)) return "cmd=" + constants.at(command);
    if (command == "get_universe_size") {
      return "cmd=universe_size rc=0 size=" + to_string(size_);
    }
    if (command == "get_my_kvsname") {
      return "cmd=my_kvsname rc=0 kvsname=" + wait_for("pmi/name");
    }
    if (command == "put") {
      keys_->set_text("pmi/key/" + field(line, "key"), field(line, "value"));
      return "cmd=put_result rc=0";
    }
    if (command == "get") {
      const auto value = keys_->text("pmi/key/" + field(line, "key"));
      if (value.empty()) return "cmd=get_result rc=-1 msg=key_not_found";
      return "cmd=get_result rc=0 value=" + value;
    }
    if (command == "barrier_in") {
      const auto key = "pmi/barrier/" + to_string(barriers_++);
      keys_->add(key, 1);
      while (keys_->add(key, 0) < size_) nap();
      return "cmd=barrier_out rc=0";
    }
    return "cmd=" + command + " rc=-1 msg=not_supported";
  }
  // [/answer]

  // "cmd=put kvsname=... key=... value=..."; a value ends with the line.
  static std::string field(const std::string& line, const std::string& name) {
    const size_t found = (" " + line).find(" " + name + "=");
    if (found == std::string::npos) return "";
    const size_t begin = found + name.size() + 1;
    const size_t end = name == "value" ? line.size() : line.find(' ', begin);
    return line.substr(begin, end - begin);
  }

  std::string wait_for(const std::string& key) {
    std::string text;
    while ((text = keys_->text(key)).empty()) nap();
    return text;
  }

  static void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

  std::shared_ptr<frame::Keys> keys_;
  int size_, socket_;
  int barriers_ = 0;
};

} // namespace mpi_collectives

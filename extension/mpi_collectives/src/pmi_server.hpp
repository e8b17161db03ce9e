#pragma once

#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

#include "frame/transport.hpp"

#include "stuck.hpp"

namespace mpi_collectives {

using std::to_string;

// The part of mpiexec that MPI needs: MPICH asks its launcher for the addresses of the
// other ranks, in lines of text through a socket (version 1.1 of PMI). Here a thread
// answers from the keys of the group, so that any launcher will do.
//
//   pmi/key/<key>: what a rank has put, after a digest of it
//   pmi/barrier/<number>: how many ranks have come
//
// MPI asks for addresses until its first communicator exists. The thread goes on until
// MPI closes the socket, which is the end of the process.
class PmiServer {
 public:
  // [start]
  // Returns the variables of the environment from which MPI learns of the server. The name
  // tells apart what several jobs leave in the shared memory of one host.
  static std::map<std::string, std::string> start(
      const frame::Place& place, const std::string& name) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::runtime_error(
          "cannot connect MPI to its launcher: " + std::string(strerror(errno)));
    }
    std::thread([server = PmiServer(place, name, ends[1])]() mutable {
      server.serve();
    }).detach();
    return {{"PMI_FD", to_string(ends[0])}, {"PMI_RANK", to_string(place.rank)},
        {"PMI_SIZE", to_string(place.size)}};
  }
  // [/start]

 private:
  PmiServer(const frame::Place& place, const std::string& name, int socket)
      : place_(place), name_(name), socket_(socket) {}

  void serve() {
    char line[4096];
    FILE* const lines = fdopen(socket_, "r");
    while (fgets(line, sizeof(line), lines) != nullptr) {
      std::string text;
      try {
        text = answer({line, strcspn(line, "\n")});
      } catch (const std::exception& error) {
        // MPI would end the process. Without an answer, it waits for ever.
        return Stuck::because(
            "MPI cannot start: " + std::string(error.what()), Stuck::kHere);
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
      return "cmd=universe_size rc=0 size=" + to_string(place_.size);
    }
    if (command == "get_my_kvsname") return "cmd=my_kvsname rc=0 kvsname=" + name_;
    const auto key = "pmi/key/" + field(line, "key");
    if (command == "put") {
      const auto value = field(line, "value");
      place_.keys->set_text(key, digest(value) + " " + value);
      return "cmd=put_result rc=0";
    }
    if (command == "get") {
      const auto text = place_.keys->text(key);
      if (text.empty()) return "cmd=get_result rc=-1 msg=key_not_found";
      return "cmd=get_result rc=0 value=" + checked(text);
    }
    if (command == "barrier_in") {
      const auto barrier = "pmi/barrier/" + to_string(barriers_++);
      place_.keys->add(barrier, 1);
      const auto all = [&] { return place_.keys->add(barrier, 0) >= place_.size; };
      if (!frame::poll_until(all, place_.deadline, place_.size)) {
        throw std::runtime_error("not all ranks have come to its barrier");
      }
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

  // What a rank has put, as MPI wrote it: MPI ends the process for any other text.
  static std::string checked(const std::string& text) {
    const auto value = text.substr(std::min(text.size(), text.find(' ') + 1));
    if (text == digest(value) + " " + value && value.find('\n') == value.npos) {
      return value;
    }
    throw std::runtime_error(
        "another program has changed an address of MPI in the store; "
        "let no other program use the store of this job");
  }

  static std::string digest(const std::string& text) { // FNV-1a
    uint64_t digest = 14695981039346656037u;
    for (const unsigned char c : text) digest = (digest ^ c) * 1099511628211u;
    return to_string(digest);
  }

  const frame::Place place_;
  const std::string name_;
  const int socket_;
  int barriers_ = 0;
};

} // namespace mpi_collectives

#pragma once

#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

namespace mpi_collectives {

// [environment]
// Variables of the environment for the start of MPI, which are gone with this object:
// programs that this process starts later must not see them. setenv() may move the list of
// variables while another thread reads it, which ends the process. So a new list takes the
// place of the old one, and both stay for ever.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) names_.push_back(name + "=");
    auto list = others();
    for (const auto& [name, value] : variables) {
      list.push_back(strdup((name + "=" + value).c_str()));
    }
    use(std::move(list));
  }
  ~Environment() { use(others()); }
  Environment(const Environment&) = delete;

 private:
  std::vector<char*> others() const {
    std::vector<char*> list;
    for (char** each = environ; each && *each; ++each) {
      const std::string_view text = *each;
      bool ours = false;
      for (const auto& name : names_) ours = ours || text.starts_with(name);
      if (!ours) list.push_back(*each);
    }
    return list;
  }

  static void use(std::vector<char*> list) {
    list.push_back(nullptr);
    auto* const kept = new std::vector<char*>(std::move(list));
    std::atomic_ref(environ).store(kept->data());
  }

  std::vector<std::string> names_; // each with its "="
};
// [/environment]

} // namespace mpi_collectives

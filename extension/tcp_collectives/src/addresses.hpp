#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "frame/host.hpp"

namespace tcp_collectives {

using frame::Descriptor;

inline std::runtime_error failed(const std::string& what, int error = errno) {
  return std::runtime_error("cannot " + what + ": " + std::strerror(error));
}

// An address of IPv4 or IPv6 with a port.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);

  sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage); }

  static Address from(const sockaddr* other, socklen_t size) {
    Address address;
    std::memcpy(&address.storage, other, size);
    address.size = size;
    return address;
  }

  static Address from(const std::string& host, const std::string& port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
    if (error != 0) {
      throw std::runtime_error(
          "no address: \"" + host + "\" (" + gai_strerror(error) + ")");
    }
    const Address address = from(found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return address;
  }

  // "10.0.0.1 4711"
  std::string text() const {
    char host[NI_MAXHOST], port[NI_MAXSERV];
    const int error = getnameinfo(data(), size, host, sizeof(host), port, sizeof(port),
        NI_NUMERICHOST | NI_NUMERICSERV);
    if (error != 0) throw std::runtime_error(gai_strerror(error));
    return host + std::string(" ") + port;
  }
};

// Other hosts do not know for which of their interfaces such an address is.
inline bool is_of_one_link(const sockaddr* address) {
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

// The address of an interface; without a name, of the first one that leads elsewhere, or of
// the loopback. IPv4 comes first.
inline Address address_of(const std::string& interface) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) throw failed("list the network interfaces");
  const std::shared_ptr<ifaddrs> owner(all, freeifaddrs);
  const ifaddrs* best = nullptr;
  int best_rank = -1;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && (family != AF_INET6 || is_of_one_link(each->ifa_addr)))
      continue;
    if (!interface.empty() && interface != each->ifa_name) continue;
    const bool leads_elsewhere = (each->ifa_flags & IFF_LOOPBACK) == 0;
    const int rank = 2 * leads_elsewhere + (family == AF_INET);
    if (rank > best_rank) best = each, best_rank = rank;
  }
  if (best == nullptr) {
    const std::string none = "this host has no network interface ";
    if (interface.empty())
      throw std::runtime_error(none + "that is up and has an address");
    throw std::runtime_error(
        none + "\"" + interface + "\" with an address; the option interface names one");
  }
  const bool v4 = best->ifa_addr->sa_family == AF_INET;
  return Address::from(best->ifa_addr, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
}

inline Descriptor new_socket(const Address& address) {
  const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  Descriptor made(socket(address.storage.ss_family, type, 0));
  if (made.number() < 0) throw failed("create a socket (see the limits, ulimit -n)");
  return made;
}

inline Descriptor listen_at(const Address& address) {
  Descriptor made = new_socket(address);
  if (bind(made.number(), address.data(), address.size) != 0 ||
      listen(made.number(), SOMAXCONN) != 0)
    throw failed("listen at " + address.text());
  return made;
}

inline Address name_of(const Descriptor& socket) {
  Address address;
  if (getsockname(socket.number(), address.data(), &address.size) != 0)
    throw failed("read the address of a socket");
  return address;
}

// [options]
// Small messages leave at once, and a peer that the network has cut off is lost in time.
inline void set_options(const Descriptor& socket) {
  constexpr int kOn = 1, kIdle = 5, kEvery = 5, kTimes = 2;
  const auto set = [&](int level, int option, const int& value) {
    setsockopt(socket.number(), level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, kOn);
  set(SOL_SOCKET, SO_KEEPALIVE, kOn);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdle);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kEvery);
  set(IPPROTO_TCP, TCP_KEEPCNT, kTimes);
}
// [/options]

// [unanswered]
// Whether a peer has not answered for too long. The kernel of a rank that does not read
// answers only probes, with up to two minutes between them. So the time alone does not
// tell: several packets in a row must have had no answer.
inline bool is_unanswered(const Descriptor& socket) {
  constexpr unsigned kUnanswered = 15'000, kPackets = 2; // in milliseconds
  tcp_info info{};
  socklen_t size = sizeof(info);
  getsockopt(socket.number(), IPPROTO_TCP, TCP_INFO, &info, &size);
  return info.tcpi_last_ack_recv > kUnanswered &&
      std::max(info.tcpi_retransmits, info.tcpi_probes) >= kPackets;
}
// [/unanswered]

} // namespace tcp_collectives

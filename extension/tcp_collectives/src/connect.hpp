#pragma once

#include <list>
#include <random>

#include "frame/messages.hpp"
#include "frame/version.hpp"

#include "addresses.hpp"

namespace tcp_collectives {

using frame::Clock, frame::milliseconds, frame::Place;

// Raise it with each change of what ranks send to each other.
constexpr int kProtocol = 1;

// What all ranks must have in common, or they would misread each other: the frame makes the
// heads of messages, and it chooses the algorithms that no option names.
inline std::string terms(const std::string& algorithms) {
  return "protocol " + std::to_string(kProtocol) + ", frame " +
      std::to_string(C10D_FRAME_VERSION) + ", algorithms \"" + algorithms + "\"";
}

// [hello]
// The first bytes of a connection. Only who reads the store of the group knows the token.
struct Hello {
  uint64_t token[2];
  int32_t rank, channel;
};
// [/hello]
static_assert(std::has_unique_object_representations_v<Hello>);

// The sockets of a rank, by other rank and channel.
using SocketsByRank = std::vector<std::vector<Descriptor>>;

// Connects the ranks of a group. Each listens, and tells the others in the store where, and
// the token that its callers must know. It calls those before it, and waits for those after.
class Meeting {
 public:
  Meeting(
      const Place& place, const std::string& interface, const std::string& algorithms)
      : place_(place),
        terms_(terms(algorithms)),
        listener_(listen_at(address_of(interface))) {
    std::random_device random;
    for (auto& half : token_) half = uint64_t(random()) << 32 | random();
  }

  SocketsByRank connections() {
    SocketsByRank all(place_.size);
    for (auto& of_rank : all) of_rank.resize(frame::kChannels);
    frame::Keys::Names keys;
    for (int rank = 0; rank < place_.size; ++rank)
      keys.push_back("address/" + std::to_string(rank));
    // [publish]
    place_.keys->publish(keys[place_.rank],
        terms_ + "\n" + std::to_string(token_[0]) + " " + std::to_string(token_[1]) +
            " " + name_of(listener_).text());
    const auto texts = place_.await(keys);
    compare(texts);
    // [/publish]
    for (int rank = 0; rank < place_.size; ++rank) {
      std::istringstream words(texts[rank]);
      std::string its_terms, host, port;
      Hello hello{{}, place_.rank, 0};
      std::getline(words, its_terms);
      if (!(words >> hello.token[0] >> hello.token[1] >> host >> port))
        frame::Words(keys[rank], texts[rank], "terms, a token and an address").refuse();
      for (; rank < place_.rank && hello.channel < frame::kChannels; ++hello.channel)
        all[rank][hello.channel] = call(Address::from(host, port), hello, rank);
    }
    wait_for_calls(all);
    return all;
  }

 private:
  // All ranks find the same one, and only that one says all, so that their error is short.
  void compare(const std::vector<std::string>& texts) const {
    const auto of = [&](int rank) {
      return texts[rank].substr(0, texts[rank].find('\n'));
    };
    const auto& names = place_.names;
    for (int rank = 1; rank < place_.size; ++rank) {
      if (of(rank) == of(0) || !of(rank).starts_with("protocol ")) continue;
      throw std::runtime_error(names.who(rank) +
          " has another version or other algorithms than " + names.who(0) +
          (rank == place_.rank ? ": " + of(rank) + ", and not " + of(0) : ""));
    }
  }

  Descriptor call(const Address& address, const Hello& hello, int rank) const {
    const auto what = "connect to " + place_.names.who(rank) + " at " + address.text();
    Descriptor made = new_socket(address);
    if (connect(made.number(), address.data(), address.size) != 0) {
      if (errno != EINPROGRESS) throw failed(what);
      wait_for(made, POLLOUT, what);
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(made.number(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) throw failed(what, error);
    }
    set_options(made);
    const auto sent = ::send(made.number(), &hello, sizeof(hello), MSG_NOSIGNAL);
    if (sent != sizeof(hello)) throw failed(what); // so few bytes fit at once
    return made;
  }

  // Waits until the file is ready. Throws at the deadline, and if another rank has failed.
  void wait_for(const Descriptor& file, short events, const std::string& what) const {
    pollfd entry{file.number(), events, 0};
    while (::poll(&entry, 1, 100) < 1) check(what);
  }
  void check(const std::string& what) const {
    if (Clock::now() > place_.deadline)
      throw std::runtime_error("cannot " + what + ": other ranks are late");
    if (place_.keys->has({Place::kFailed}))
      throw std::runtime_error("another rank cannot connect");
  }

  struct Caller { // whose hello has not come whole
    Descriptor socket;
    Hello hello{};
    size_t bytes = 0;
  };

  // Strangers may call, and say anything or nothing: they hold up nobody.
  void wait_for_calls(SocketsByRank& all) {
    std::list<Caller> callers;
    size_t missing = (place_.size - 1 - place_.rank) * size_t(frame::kChannels);
    while (missing > 0) {
      std::vector<pollfd> entries{{listener_.number(), POLLIN, 0}};
      for (const Caller& each : callers)
        entries.push_back({each.socket.number(), POLLIN, 0});
      if (::poll(entries.data(), entries.size(), 100) < 1)
        check("wait for other ranks");
      const int accepted =
          accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (accepted < 0 && (errno == EMFILE || errno == ENFILE))
        throw failed("accept a connection (see the limits, ulimit -n and fs.file-max)");
      if (accepted >= 0) callers.push_back({Descriptor(accepted)});
      for (auto each = callers.begin(); each != callers.end();) {
        const auto caller = each++;
        if (!reads(*caller)) {
          callers.erase(caller);
        } else if (caller->bytes == sizeof(Hello)) {
          missing -= is_taken(all, *caller);
          callers.erase(caller);
        }
      }
    }
  }

  // Returns whether the caller is still there.
  static bool reads(Caller& caller) {
    const auto target =
        frame::Bytes(std::as_writable_bytes(std::span(&caller.hello, 1)))
            .subspan(caller.bytes);
    const auto count = recv(caller.socket.number(), target.data(), target.size(), 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    caller.bytes += count;
    return count > 0;
  }

  // [stranger]
  bool is_taken(SocketsByRank& all, Caller& caller) const {
    const auto [token, rank, channel] = caller.hello;
    const bool knows = token[0] == token_[0] && token[1] == token_[1];
    if (!knows || rank <= place_.rank || rank >= place_.size || channel < 0 ||
        channel >= frame::kChannels || all[rank][channel].number() >= 0)
      return false;
    set_options(caller.socket);
    all[rank][channel] = std::move(caller.socket);
    return true;
  }
  // [/stranger]

  const Place& place_;
  const std::string terms_;
  const Descriptor listener_;
  uint64_t token_[2];
};

} // namespace tcp_collectives

// Strangers call at a port while the ranks still meet. Prints what the ranks have received.
// With arguments: prints the error if rank 1 has said these terms.

#include <iostream>
#include <sstream>
#include <thread>

#include "tcp_collectives/src/sockets.hpp"
#include "values.hpp"

using namespace tcp_collectives;

namespace {

std::vector<Descriptor> strangers(const Address& address) {
  std::vector<Descriptor> all;
  const std::string half(sizeof(Hello) / 2, '\0'), garbage(100, 'x');
  const Hello false_hello{{1, 2}, /*rank=*/1, /*channel=*/0};
  const std::string wrong(reinterpret_cast<const char*>(&false_hello), sizeof(Hello));
  for (const auto& text : {std::string(), half, garbage, wrong}) {
    for (int i = 0; i < 10; ++i) {
      Descriptor made(socket(address.storage.ss_family, SOCK_STREAM, 0));
      if (connect(made.number(), address.data(), address.size) != 0)
        throw failed("call");
      if (!text.empty()) send(made.number(), text.data(), text.size(), MSG_NOSIGNAL);
      all.push_back(std::move(made));
    }
  }
  return all;
}

// Sends a number to the other rank, and returns the one that comes.
int swap_numbers(const Place& place, const std::string& interface) {
  Sockets net(place, interface);
  int mine = 10 + place.rank, its = 0;
  const auto bytes = [](int& number) {
    return frame::Bytes(std::as_writable_bytes(std::span(&number, 1)));
  };
  frame::SendReceive both(net, 1 - place.rank, bytes(mine), 1 - place.rank, bytes(its));
  while (!both.ready()) {
    pollfd entry{net.file(), POLLIN, 0};
    ::poll(&entry, 1, 1000);
    net.progress();
  }
  return its;
}

} // namespace

int main(int count, char** arguments) {
  const auto keys = std::make_shared<Values>();
  const auto place = [&](int rank) {
    return Place{rank, 2, {"tcp", "0", {}}, keys,
        Clock::now() + std::chrono::minutes(1), {{}, {}}};
  };
  if (count > 1) {
    keys->publish("address/1", arguments[1]);
    try {
      Sockets(place(0), "lo");
    } catch (const std::exception& error) {
      std::cout << error.what() << "\n";
    }
    return 0;
  }
  int received = 0;
  std::thread first([&] { received = swap_numbers(place(0), "lo"); });
  const auto address = place(1).await({"address/0"})[0];
  std::string token, host, port;
  std::istringstream(address.substr(address.find('\n'))) >> token >> token >> host >>
      port;
  const auto callers = strangers(Address::from(host, port));
  const int second = swap_numbers(place(1), "lo");
  first.join();
  std::cout << received << " " << second << "\n";
}

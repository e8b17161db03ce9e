// How a group starts, and how its ranks know of each other: Rendezvous, Watch, and the
// connections that end with it.

#include <unistd.h>

#include "frame/connections.hpp"
#include "rank.hpp"

using namespace test;

namespace {

// A store whose calls throw from a certain one on, as those of a client do whose server
// has gone.
class LosingStore final : public c10d::Store {
 public:
  using Value = std::vector<uint8_t>;

  LosingStore(c10::intrusive_ptr<c10d::Store> store,
      std::shared_ptr<std::atomic<int>> left, Clock::duration latency)
      : store_(std::move(store)), left_(std::move(left)), latency_(latency) {}

  c10::intrusive_ptr<c10d::Store> clone() override { return store().clone(); }
  void set(const std::string& key, const Value& value) override {
    store().set(key, value);
  }
  Value compareSet(
      const std::string& key, const Value& expected, const Value& desired) override {
    return store().compareSet(key, expected, desired);
  }
  Value get(const std::string& key) override { return store().get(key); }
  int64_t add(const std::string& key, int64_t value) override {
    return store().add(key, value);
  }
  bool deleteKey(const std::string& key) override { return store().deleteKey(key); }
  bool check(const std::vector<std::string>& keys) override {
    return store().check(keys);
  }
  int64_t getNumKeys() override { return store().getNumKeys(); }
  void wait(const std::vector<std::string>& keys) override { store().wait(keys); }
  void wait(const std::vector<std::string>& keys, const milliseconds& limit) override {
    store().wait(keys, limit);
  }
  std::vector<Value> multiGet(const std::vector<std::string>& keys) override {
    return store().multiGet(keys);
  }
  bool hasExtendedApi() const override { return true; }

 private:
  c10d::Store& store() {
    if (latency_ > 0ms) let_pass(latency_);
    if (left_->fetch_sub(1) <= 0) {
      C10_THROW_ERROR(DistNetworkError, "Connection reset by peer");
    }
    return *store_;
  }
  const c10::intrusive_ptr<c10d::Store> store_;
  const std::shared_ptr<std::atomic<int>> left_; // calls
  const Clock::duration latency_; // of a call
};

// The ranks of a rendezvous, each of which comes when and as the test says.
struct Meeting {
  explicit Meeting(int size) : size(size), ranks(size) {}

  struct Rank {
    bool comes = true;
    Clock::duration after = 0ms, latency = 0ms;
    std::function<void(const frame::Place&)> connect = [](const auto&) {};
    std::shared_ptr<std::atomic<int>> calls =
        std::make_shared<std::atomic<int>>(1 << 30); // of the store that succeed
    std::function<void()> joins = [] {}; // called by joined()
    std::function<void()> has_begun = [] {};
    std::string error; // empty: it has begun
    Clock::duration took{};
  };

  // Returns how long it took.
  void run() {
    network = std::make_shared<Network>(size);
    {
      std::list<Job> jobs;
      for (int i = 0; i < size; ++i) {
        if (ranks[i].comes) jobs.emplace_back([this, i] { come(i); });
      }
    }
    CHECK(network->broken() == "");
    CHECK(frame::MovedTime::get().threads() == 0);
  }

  void come(int number) {
    auto& rank = ranks[number];
    let_pass(rank.after);
    network->on(number, "joined", rank.joins);
    const auto begin = Clock::now();
    try {
      frame::Rendezvous rendezvous(
          c10::make_intrusive<LosingStore>(store, rank.calls, rank.latency), number,
          size, frame::Names{"fake", "g", {}}, timeout);
      const auto transport = rendezvous.meet([&](frame::Place place) {
        rank.connect(place);
        return std::make_unique<FakeTransport>(network, std::move(place));
      });
      CHECK(transport->rank() == number);
      rank.has_begun();
    } catch (const c10::DistStoreError& error) {
      rank.error = error.what_without_backtrace();
    } catch (const std::exception& error) { // of joined()
      rank.error = error.what();
    }
    rank.took = Clock::now() - begin;
  }

  // What all errors begin with.
  std::string begin_of_error(int number) const {
    return "Backend fake: rank " + std::to_string(number) + " of " +
        std::to_string(size) + " cannot join group \"g\": ";
  }

  const int size;
  std::vector<Rank> ranks;
  milliseconds timeout = 3s;
  c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  std::shared_ptr<Network> network;
};

} // namespace

TEST_SUITE("rendezvous") {
  TEST_CASE("all ranks begin, and leave no key") {
    for (const int size : {1, 2, 5}) {
      Meeting meeting(size);
      meeting.run();
      for (const auto& rank : meeting.ranks) {
        CHECK(rank.error == "");
        CHECK(rank.took < 1s);
      }
      CHECK(meeting.store->getNumKeys() == 0);
    }
  }

  TEST_CASE("each rank knows the processes and the hosts of all") {
    Meeting meeting(3);
    std::atomic<int> right = 0;
    for (auto& rank : meeting.ranks) {
      rank.connect = [&](const frame::Place& place) {
        REQUIRE(place.members.size() == 3);
        for (const auto& [process, home, host] : place.members)
          right += process == getpid() && home == frame::home() && host == 0;
      };
    }
    meeting.run();
    CHECK(right == 9);
  }

  TEST_CASE("ranks come late") {
    for (int late = 0; late < 3; ++late) {
      Meeting meeting(3);
      meeting.ranks[late].after = 2s;
      meeting.run();
      for (const auto& rank : meeting.ranks) CHECK(rank.error == "");
      CHECK(meeting.store->getNumKeys() == 0);
    }
  }

  TEST_CASE("a rank never comes") {
    for (int missing = 0; missing < 3; ++missing) {
      Meeting meeting(3);
      meeting.ranks[missing].comes = false;
      meeting.run();
      for (int rank = 0; rank < 3; ++rank) {
        if (rank == missing) continue;
        CHECK(meeting.ranks[rank].error ==
            meeting.begin_of_error(rank) + "rank " + std::to_string(missing) +
                " did not come within 3000 ms");
        CHECK(meeting.ranks[rank].took >= 3s);
        CHECK(meeting.ranks[rank].took < 6s);
      }
      // Whatever that start has left in the store, the next one begins.
      Meeting next(3);
      next.store = meeting.store;
      next.run();
      for (const auto& rank : next.ranks) CHECK(rank.error == "");
    }
  }

  TEST_CASE("two ranks never come") {
    Meeting meeting(4);
    meeting.ranks[1].comes = meeting.ranks[3].comes = false;
    meeting.run();
    for (const int rank : {0, 2}) {
      CHECK(meeting.ranks[rank].error ==
          meeting.begin_of_error(rank) + "rank 1, rank 3 did not come within 3000 ms");
    }
  }

  TEST_CASE("a rank comes when another one gives up, and all decide the same") {
    for (const auto after : {2800ms, 2950ms, 2999ms, 3000ms, 3001ms, 3100ms, 3300ms}) {
      for (int late = 1; late < 3; ++late) {
        CAPTURE(after.count());
        Meeting meeting(3);
        meeting.ranks[late].after = after;
        meeting.run();
        const bool begins = meeting.ranks[0].error.empty();
        for (const auto& rank : meeting.ranks) CHECK(rank.error.empty() == begins);
        if (after < 2900ms) CHECK(begins);
        if (after > 3200ms) CHECK_FALSE(begins);
      }
    }
  }

  TEST_CASE("ranks cannot connect") {
    for (int bad = 0; bad < 3; ++bad) {
      Meeting meeting(3);
      const auto throws = [](const auto&) { throw std::runtime_error("no memory"); };
      meeting.ranks[bad].connect = throws;
      meeting.run();
      for (int rank = 0; rank < 3; ++rank) {
        CHECK(meeting.ranks[rank].error ==
            meeting.begin_of_error(rank) + "rank " + std::to_string(bad) +
                ": no memory");
        CHECK(meeting.ranks[rank].took < 1s);
      }
      meeting.ranks[(bad + 1) % 3].connect = throws;
      meeting.run();
      for (const auto& rank : meeting.ranks) {
        CHECK(contains(rank.error, ": no memory; rank "));
      }
      for (auto& rank : meeting.ranks) rank = {};
      meeting.run();
      for (const auto& rank : meeting.ranks) CHECK(rank.error == "");
    }
  }

  TEST_CASE("a rank that cannot connect says so with any exception") {
    const std::map<std::string, std::function<void(const frame::Place&)>> throws{
        {"an exception of an unknown type", [](const auto&) { throw 42; }},
        {"an exception without a text",
            [](const auto&) { throw std::runtime_error(""); }},
        {"\"ready to fail\"",
            [](const auto&) { throw std::runtime_error("ready to fail"); }},
    };
    for (const auto& [text, connect] : throws) {
      CAPTURE(text);
      Meeting meeting(2);
      meeting.ranks[1].connect = connect;
      meeting.run();
      for (int rank = 0; rank < 2; ++rank) {
        CHECK(meeting.ranks[rank].error ==
            meeting.begin_of_error(rank) + "rank 1: " + text);
        CHECK(meeting.ranks[rank].took < 1s);
      }
    }
  }

  // It must not: the others have begun. But it may have no memory.
  TEST_CASE("a rank whose joined() throws tells the others") {
    Meeting meeting(2);
    meeting.ranks[1].joins = [] { throw std::runtime_error("no memory"); };
    meeting.run();
    CHECK(meeting.ranks[0].error == "");
    CHECK(meeting.ranks[1].error == "no memory");
    CHECK(meeting.network->announced(0) == "");
    CHECK(meeting.network->announced(1) == "rank 1 cannot begin: no memory");
  }

  TEST_CASE("a rank that waits for the keys of another learns that it cannot connect") {
    Meeting meeting(3);
    meeting.ranks[1].connect = [](const auto&) {
      throw std::system_error(
          std::make_error_code(std::errc::resource_unavailable_try_again));
    };
    for (const int rank : {0, 2}) {
      meeting.ranks[rank].connect = [](const frame::Place& place) {
        place.keys->publish("home/" + std::to_string(place.rank), "here");
        place.await({"home/0", "home/1", "home/2"});
      };
    }
    meeting.run();
    for (const auto& rank : meeting.ranks) {
      CHECK(contains(rank.error, "rank 1: cannot start a thread"));
      CHECK(contains(rank.error, "rank 0: another rank cannot connect"));
      CHECK(rank.took < 2s);
    }
  }

  TEST_CASE("a rank that connects for too long is late") {
    Meeting meeting(3);
    meeting.ranks[1].connect = [](const auto&) { let_pass(5s); };
    meeting.run();
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(meeting.ranks[rank].error ==
          meeting.begin_of_error(rank) + "rank 1 did not come within 3000 ms");
    }
  }

  TEST_CASE("ranks meet beside the keys of a start that was killed") {
    Meeting meeting(3);
    const std::string lobby = "fake/3/";
    meeting.store->set(lobby + "member/1", std::string("12345"));
    meeting.store->set(lobby + "member/2", std::string("67890"));
    meeting.store->set(lobby + "12345/came/verdict", std::string("ready"));
    meeting.ranks[1].after = 1s; // rank 0 answers the earlier one before
    meeting.run();
    for (const auto& rank : meeting.ranks) CHECK(rank.error == "");
  }

  TEST_CASE("a second process of the same rank does not disturb the group") {
    Meeting meeting(2);
    meeting.network = std::make_shared<Network>(2);
    meeting.ranks[1].connect = [](const auto&) { let_pass(1s); };
    std::string error;
    {
      Job one([&] { meeting.come(0); }), two([&] { meeting.come(1); });
      Job second([&] {
        let_pass(500ms);
        frame::Rendezvous rendezvous(
            meeting.store, 1, 2, frame::Names{"fake", "g", {}}, 3s);
        rendezvous.meet(
            [](const frame::Place&) -> std::unique_ptr<FakeTransport> { return {}; });
      });
      error = second.error();
    }
    CHECK(contains(error, "rank 1 of 2 cannot join group \"g\": rank 0 did not come"));
    for (const auto& rank : meeting.ranks) CHECK(rank.error == "");
  }

  TEST_CASE("two processes are the same rank") {
    Meeting meeting(3);
    meeting.network = std::make_shared<Network>(3);
    meeting.ranks[2].after = 1s;
    meeting.ranks[1].latency = 50ms; // rank 0 lets both in before one has entered
    std::string error;
    {
      Job one([&] { meeting.come(0); }), two([&] { meeting.come(1); });
      Job three([&] { meeting.come(2); });
      Job second([&] {
        auto same = meeting.ranks[1];
        let_pass(100ms);
        frame::Rendezvous rendezvous(
            c10::make_intrusive<LosingStore>(meeting.store, same.calls, same.latency),
            1, 3, frame::Names{"fake", "g", {}}, 3s);
        rendezvous.meet(
            [](const frame::Place&) -> std::unique_ptr<FakeTransport> { return {}; });
      });
      error = second.error();
    }
    CHECK(contains(error, "another process is this rank already"));
    for (const auto& rank : meeting.ranks) CHECK(rank.error == "");
  }

  TEST_CASE("ranks say that two processes are one rank, and another one is missing") {
    Meeting meeting(3);
    meeting.network = std::make_shared<Network>(3);
    std::string error;
    {
      Job one([&] { meeting.come(0); }), two([&] { meeting.come(1); });
      Job second([&] {
        let_pass(100ms);
        frame::Rendezvous rendezvous(
            meeting.store, 1, 3, frame::Names{"fake", "g", {}}, 3s);
        rendezvous.meet(
            [](const frame::Place&) -> std::unique_ptr<FakeTransport> { return {}; });
      });
      error = second.error();
    }
    CHECK(contains(error, "another process is this rank already"));
    const auto process = std::to_string(getpid());
    for (const int rank : {0, 1})
      CHECK(contains(meeting.ranks[rank].error,
          "; rank 1 has joined twice (processes " + process + " and " + process + ")"));
  }

  TEST_CASE("rank 0, which hosts the store, begins when the others know") {
    for (const auto latency : {1ms, 10ms, 50ms}) {
      Meeting meeting(3);
      meeting.ranks[1].latency = latency;
      meeting.ranks[0].has_begun = [&] { // and its process ends
        for (const int other : {1, 2}) meeting.ranks[other].calls->store(0);
      };
      meeting.run();
      for (const auto& rank : meeting.ranks) CHECK(rank.error == "");
    }
  }

  // The store of one rank is lost at its first call, at its second, and so on.
  TEST_CASE("a rank loses the store at each step") {
    for (int loser = 0; loser < 3; ++loser) {
      for (int calls = 0;; ++calls) {
        CAPTURE(loser);
        CAPTURE(calls);
        Meeting meeting(3);
        meeting.ranks[loser].calls->store(calls);
        meeting.run();
        std::set<std::string> reasons;
        for (int rank = 0; rank < 3; ++rank) {
          const auto& [error, took] =
              std::tie(meeting.ranks[rank].error, meeting.ranks[rank].took);
          CHECK(took < 8s);
          if (rank == loser) continue;
          if (error.empty()) reasons.insert("");
          if (error.empty()) continue;
          CHECK(error.starts_with(meeting.begin_of_error(rank)));
          reasons.insert(error.substr(meeting.begin_of_error(rank).size()));
        }
        // The others decide the same. If rank 0 has let in only one of them, each names
        // another rank that did not come.
        CHECK((reasons.size() == 1 || (loser == 0 && !reasons.contains(""))));
        const auto& own = meeting.ranks[loser].error;
        const auto& others = *reasons.begin();
        if (!own.empty()) CHECK(contains(own, "the store is lost"));
        if (!others.empty()) {
          CHECK(own != "");
          CHECK(contains(others, "rank " + std::to_string(loser)));
        }
        if (meeting.ranks[loser].calls->load() > 0) break; // it needed no more
      }
    }
  }

  TEST_CASE("all ranks lose the store at each step") {
    for (int calls = 0;; ++calls) {
      CAPTURE(calls);
      Meeting meeting(3);
      const auto left = std::make_shared<std::atomic<int>>(calls);
      for (auto& rank : meeting.ranks) rank.calls = left;
      meeting.run();
      for (const auto& rank : meeting.ranks) {
        if (!rank.error.empty()) CHECK(contains(rank.error, "the store is lost"));
        CHECK(rank.took < 1s);
      }
      if (left->load() > 0) break;
    }
  }

  TEST_CASE("a rank that cannot connect says why, also without the store") {
    Meeting meeting(2);
    meeting.ranks[1].connect = [&](const auto&) {
      meeting.ranks[1].calls->store(0);
      throw std::runtime_error("no memory");
    };
    meeting.run();
    CHECK(contains(meeting.ranks[1].error, "no memory; the store is lost"));
    CHECK(contains(meeting.ranks[0].error, "rank 1 did not come"));
  }
}

namespace {

// The keys of one rank, in a map that the ranks share.
class FakeKeys final : public frame::Keys {
 public:
  struct Shared {
    std::mutex mutex;
    std::map<std::string, std::string> values;
  };

  explicit FakeKeys(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  void set(const std::string& key, std::span<const std::byte> value) override {
    before();
    const std::lock_guard lock(shared_->mutex);
    shared_->values[key] = {reinterpret_cast<const char*>(value.data()), value.size()};
  }
  std::vector<Value> get(const Names& keys) override {
    std::vector<Value> values;
    for (const auto& key : keys) {
      const auto value = text(key);
      values.emplace_back(value.begin(), value.end());
    }
    return values;
  }
  std::string text(const std::string& key) override {
    before();
    const std::lock_guard lock(shared_->mutex);
    const auto found = shared_->values.find(key);
    return found == shared_->values.end() ? "" : found->second;
  }
  bool has(const Names& keys) override {
    before();
    const std::lock_guard lock(shared_->mutex);
    return std::ranges::all_of(
        keys, [&](const auto& key) { return shared_->values.contains(key); });
  }
  int64_t add(const std::string& key, int64_t amount) override {
    before();
    const std::lock_guard lock(shared_->mutex);
    auto& value = shared_->values[key];
    amount += value.empty() ? 0 : std::stoll(value);
    value = std::to_string(amount);
    return amount;
  }
  void erase(const std::string& key) override {
    before();
    const std::lock_guard lock(shared_->mutex);
    shared_->values.erase(key);
  }
  void append(const std::string& key, const std::string& text) override {
    before();
    const std::lock_guard lock(shared_->mutex);
    shared_->values[key] += text;
  }
  std::string take(const std::string& key) override {
    before();
    const std::lock_guard lock(shared_->mutex);
    const auto node = shared_->values.extract(key);
    return node ? node.mapped() : "";
  }
  std::string set_first(const std::string& key, const std::string& text) override {
    before();
    const std::lock_guard lock(shared_->mutex);
    return shared_->values.emplace(key, text).first->second;
  }
  void publish(const std::string& key, const std::string& text) override {
    set_text(key, text);
  }

  std::atomic<bool> is_lost = false, hangs = false;
  Gate gate; // ends a hang

 private:
  void before() {
    if (hangs) gate.pass();
    if (is_lost) throw std::runtime_error("the store is lost");
  }
  const std::shared_ptr<Shared> shared_;
};

// Ranks that watch each other. Each is on a host of its own, or the others are a process of
// this one, which the test names. More may have begun, and count no more.
struct Watches {
  explicit Watches(
      int size, pid_t neighbour = 0, milliseconds heartbeat = 2s, int more = 0) {
    const int all = size + more;
    for (int rank = size; rank < all; ++rank)
      shared->values["beats/" + std::to_string(rank)] = "1";
    std::list<Job> jobs;
    for (int rank = 0; rank < size; ++rank) {
      keys.push_back(std::make_shared<FakeKeys>(shared));
      bells.push_back(std::make_shared<Bell>());
    }
    watches.resize(size);
    for (int rank = 0; rank < size; ++rank) {
      jobs.emplace_back([this, rank, all, neighbour, heartbeat] {
        frame::Place place{rank, all, {"fake", "g", {}}, keys[rank], Clock::now() + 10s,
            std::vector<frame::Member>(all)};
        for (int other = 0; other < all; ++other) {
          const bool is_self = other == rank;
          place.members[other] = {
              is_self ? getpid() : neighbour, "", neighbour ? 0 : other};
        }
        watches[rank] = std::make_unique<frame::Watch>(place, heartbeat, bells[rank]);
      });
    }
    for (auto& job : jobs) CHECK(job.error() == "");
  }
  ~Watches() {
    for (const auto& each : keys) {
      each->hangs = false;
      each->gate.open();
    }
    watches.clear();
    let_pass(20s);
    CHECK(frame::MovedTime::get().threads() == 0);
  }
  frame::Watch& operator[](int rank) { return *watches[rank]; }

  const std::shared_ptr<FakeKeys::Shared> shared = std::make_shared<FakeKeys::Shared>();
  std::vector<std::shared_ptr<FakeKeys>> keys;
  std::vector<std::shared_ptr<Bell>> bells;
  std::vector<std::unique_ptr<frame::Watch>> watches;
};

using Text = std::optional<std::string>;

} // namespace

TEST_SUITE("watch") {
  TEST_CASE("a rank without the store can say why it fails, and leave") {
    Watches ranks(2, /*neighbour=*/0);
    ranks.keys[1]->is_lost = true;
    let_pass(5s);
    ranks[1].announce("out of paper"); // which nobody can read
    let_pass(1s);
    CHECK(ranks[1].failure().value_or("").starts_with("the store has not answered"));
    ranks[1].leave(false);
    let_pass(1s);
    CHECK(ranks[1].has_left());
  }

  TEST_CASE("ranks that live are not lost") {
    Watches ranks(3);
    let_pass(100s);
    CHECK(ranks[0].lost({1, 2}) == std::nullopt);
    CHECK(ranks[0].lost({}) == std::nullopt);
    CHECK(ranks[0].failure() == std::nullopt);
  }

  TEST_CASE("a heartbeat may be as long as can be") {
    Watches ranks(2, 0, /*heartbeat=*/milliseconds::max());
    let_pass(10s);
    ranks.keys[1]->is_lost = true;
    let_pass(1000s);
    CHECK(ranks[0].lost({1}) == std::nullopt);
    CHECK(ranks[1].failure() == std::nullopt);
  }

  TEST_CASE("a rank of a large group that counts is not lost") {
    Watches ranks(2, 0, /*heartbeat=*/10s, /*more=*/6000);
    let_pass(100s);
    ranks.keys[1]->hangs = true;
    let_pass(9s);
    ranks.keys[1]->hangs = false;
    ranks.keys[1]->gate.open();
    let_pass(100s);
    CHECK(ranks[0].lost({1}) == std::nullopt);
    CHECK(contains(ranks[0].lost({2}).value_or(""), "rank 2 has not been heard from"));
  }

  TEST_CASE("a heartbeat that is too short is refused") {
    for (const auto heartbeat : {-1ms, 0ms, 799ms}) {
      const frame::Place place{0, 1, {"fake", "g", {}}, nullptr, {}, {}};
      CHECK_THROWS_WITH(frame::Watch(place, heartbeat, nullptr),
          ("a heartbeat of " + std::to_string(heartbeat.count()) +
              " ms is too short: ranks count, and look, every 100 ms, so it must be at "
              "least 800 ms")
              .c_str());
    }
  }

  TEST_CASE("a rank on another host that no longer counts is lost") {
    for (const bool hangs : {false, true}) {
      Watches ranks(3);
      let_pass(10s);
      (hangs ? ranks.keys[1]->hangs : ranks.keys[1]->is_lost) = true;
      let_pass(1400ms);
      CHECK(ranks[0].lost({1, 2}) == std::nullopt);
      let_pass(1200ms);
      const Text reason =
          "rank 1 has not been heard from for 2000 ms (its host or the "
          "network may be down)";
      CHECK(ranks[0].lost({1, 2}) == reason);
      CHECK(ranks[0].lost({}) == reason);
      CHECK(ranks[0].lost({2}) == std::nullopt);
      CHECK(ranks[2].lost({0, 1}) == reason);
    }
  }

  TEST_CASE("a rank whose store does not answer fails") {
    Watches ranks(2);
    let_pass(10s);
    ranks.keys[1]->is_lost = true;
    let_pass(1500ms);
    CHECK(ranks[1].failure() == std::nullopt);
    let_pass(2s);
    CHECK(contains(ranks[1].failure().value_or(""),
        "the store has not answered for 2000 ms, so it is not known which ranks of other"));
  }

  TEST_CASE("a failure is told, and rings") {
    Watches ranks(3);
    let_pass(10s);
    const auto rings = ranks.bells[2]->rings();
    ranks[0].announce("it is over");
    let_pass(1200ms);
    for (int rank = 0; rank < 3; ++rank) CHECK(ranks[rank].failure() == "it is over");
    CHECK(ranks.bells[2]->rings() > rings);
    ranks[1].announce("another reason");
    let_pass(2s);
    for (int rank = 0; rank < 3; ++rank) CHECK(ranks[rank].failure() == "it is over");
  }

  TEST_CASE("a rank that asks learns of a failure within a tick") {
    Watches ranks(2);
    let_pass(10s);
    ranks[0].announce("it is over");
    settle();
    CHECK(ranks[1].failure() == std::nullopt);
    let_pass(150ms);
    CHECK(ranks[1].failure() == "it is over");
  }

  TEST_CASE("a failure is told before goodbye") {
    for (const int failed : {0, 1}) {
      Watches ranks(2);
      let_pass(10s);
      ranks[failed].announce("it is over");
      ranks[failed].leave(false);
      const int other = 1 - failed;
      for (int i = 0; i < 40; ++i) {
        let_pass(50ms);
        const bool has_left = ranks[other].lost({failed}).has_value();
        if (has_left) CHECK(ranks[other].failure() == "it is over");
      }
      CHECK(ranks[other].failure() == "it is over");
      CHECK(contains(ranks[other].lost({failed}).value_or(""), "has left the group"));
    }
  }

  TEST_CASE("ranks that leave together leave no key") {
    for (const bool fails : {false, true}) {
      Watches ranks(3);
      let_pass(10s);
      if (fails) ranks[1].announce("it is over");
      for (int rank = 0; rank < 3; ++rank) ranks[rank].leave(/*together=*/true);
      let_pass(1s);
      for (int rank = 0; rank < 3; ++rank) CHECK(ranks[rank].has_left());
      CHECK(ranks.shared->values.size() == 0);
    }
  }

  TEST_CASE("rank 0 waits for the others, longer if all leave together") {
    for (const bool together : {false, true}) {
      Watches ranks(2);
      let_pass(10s);
      ranks[0].leave(together);
      let_pass(400ms);
      CHECK_FALSE(ranks[0].has_left());
      let_pass(400ms);
      CHECK(ranks[0].has_left() == !together);
      let_pass(2s);
      CHECK(ranks[0].has_left());
      CHECK(contains(ranks[1].lost({0}).value_or(""), "has left the group"));
      CHECK(contains(ranks[1].lost({}).value_or(""), "all other ranks have left"));
    }
  }

  TEST_CASE("rank 0 waits until those who live know of the failure") {
    Watches ranks(3);
    let_pass(10s);
    ranks[0].announce("it is over");
    ranks[0].leave(false);
    let_pass(1600ms);
    CHECK(ranks[0].has_left());
    CHECK(ranks[1].failure() == "it is over");
    CHECK(ranks[2].failure() == "it is over");
  }

  TEST_CASE("a rank leaves although the store is lost") {
    for (const bool before : {false, true}) {
      Watches ranks(2);
      let_pass(10s);
      if (before) ranks.keys[1]->is_lost = true;
      if (before) let_pass(10s);
      ranks.keys[1]->is_lost = true;
      ranks[1].leave(false);
      let_pass(200ms);
      CHECK(ranks[1].has_left());
    }
  }

  TEST_CASE("a rank knows whether it has asked of late") {
    Watches ranks(2);
    let_pass(2s);
    const auto rings = ranks.bells[0]->rings();
    int asked = 0;
    while (ranks[0].is_up_to_date() && ++asked < 20) let_pass(90ms);
    CHECK(asked < 20);
    settle();
    CHECK(ranks.bells[0]->rings() == rings + 1);
    CHECK(ranks[0].is_up_to_date());
  }

  TEST_CASE("no rank counts an older look when another raises a failure") {
    Watches ranks(2);
    let_pass(10s);
    ranks[0].announce("it is over");
    for (int tenths = 0; tenths < 30 && !ranks[0].has_told(); ++tenths) {
      ranks[1].is_up_to_date();
      let_pass(10ms);
    }
    CHECK(ranks[0].has_told());
    CHECK((!ranks[1].is_up_to_date() || ranks[1].failure() == "it is over"));
  }

  TEST_CASE("a rank tells no longer than the store takes") {
    for (const bool hangs : {false, true}) {
      Watches ranks(2);
      let_pass(10s);
      (hangs ? ranks.keys[0]->hangs : ranks.keys[0]->is_lost) = true;
      ranks[0].announce("it is over");
      if (hangs)
        CHECK_FALSE(ranks[0].has_told()); // a lost store may be noticed at once
      let_pass(1100ms);
      CHECK(ranks[0].has_told());
    }
  }

  TEST_CASE("a process of this host dies") {
    const auto child = fork();
    if (child == 0) {
      alarm(60);
      for (;;) pause();
    }
    Watches ranks(2, child);
    let_pass(10s);
    CHECK(ranks[0].lost({1}) == std::nullopt);
    kill(child, SIGKILL);
    waitid(P_PID, child, nullptr, WEXITED | WNOWAIT);
    CHECK(ranks[0].lost({1}) == std::nullopt); // a goodbye may be in the store
    let_pass(160ms);
    CHECK(ranks[0].lost({1}) ==
        "rank 1 has died (process " + std::to_string(child) + ")");
    waitpid(child, nullptr, 0);
  }
}

namespace {

// Connections over which nothing ever comes. It writes down what it is asked.
class SilentConnections final : public frame::Connections {
 public:
  SilentConnections() { REQUIRE(pipe(files_) == 0); }
  ~SilentConnections() {
    for (const int each : files_) ::close(each);
  }
  int rank() const override { return 1; }
  int size() const override { return 2; }
  int host(int) const override { return 0; }
  void begin(frame::Transfer&) override { calls += "begin "; }
  void forget(frame::Transfer&) override { calls += "forget "; }
  void progress() override {
    if (calls.ends_with("close ")) calls += "progress ";
  }
  int file() const override { return files_[0]; }
  bool arm() override {
    calls += "arm ";
    return false;
  }
  void close() override { calls += "close "; }

  std::string calls;

 private:
  int files_[2];
};

} // namespace

TEST_SUITE("connections") {
  TEST_CASE("connections are closed after the last transfer, and asked nothing more") {
    const auto keys = std::make_shared<FakeKeys>(std::make_shared<FakeKeys::Shared>());
    const frame::Member self{getpid(), "", 0};
    const frame::Place place{
        1, 2, {"fake", "g", {}}, keys, Clock::now() + 10s, {self, self}};
    const auto silent = std::make_shared<SilentConnections>();
    {
      frame::ConnectionTransport transport(place, silent, frame::Choice(""), 2s);
      CHECK(!transport.can_block());
      frame::Operation receive;
      receive.note.kind = frame::Kind::receive;
      receive.note.root = frame::kAnySource;
      const frame::Bytes nothing;
      receive.out = {&nothing, 1};
      frame::Steps steps = transport.receive(receive);
      steps.advance();
      steps = frame::Steps(); // the head of rank 0 may still come
      const auto rest = [&] {
        transport.rest({}, Clock::now(), [&] {
          transport.progress();
          return false;
        });
      };
      rest();
      CHECK(silent->calls == "begin arm ");
      steps = transport.leave(/*orderly=*/true);
      steps.advance();
      let_pass(1s);
      steps.advance();
      CHECK(steps.done());
      rest();
      CHECK(silent->calls == "begin arm forget close ");
    }
    CHECK(silent->calls == "begin arm forget close ");
    let_pass(5s);
  }
}

#pragma once

#include <list>
#include <map>
#include <set>

#include "frame/exchanging.hpp"

namespace store_collectives {

using frame::Blobs, frame::Bytes, frame::Keys, frame::Note, frame::Operation;
using frame::Pieces, frame::Steps;
using std::to_string;

// A value of a TCPStore has at most 8 MiB. Larger ones go in pieces.
constexpr size_t kPieceBytes = 4 << 20;
constexpr frame::milliseconds kTogether{100}; // between the first rank to leave and the last

// [awaited]
// The keys of some ranks exist.
class Present final : public frame::Awaited {
 public:
  Present(Keys& keys, std::map<int, std::string> names) : keys_(keys), names_(names) {}
  bool ready() override {
    Keys::Names all;
    for (const auto& [rank, name] : names_) all.push_back(name);
    return keys_.has(all);
  }
  std::vector<int> missing() const override {
    std::vector<int> ranks;
    for (const auto& [rank, name] : names_) {
      if (!keys_.has({name})) ranks.push_back(rank);
    }
    return ranks;
  }

 private:
  Keys& keys_;
  const std::map<int, std::string> names_;
};

// Another rank has erased a key, or the time is over.
class Erased final : public frame::Awaited {
 public:
  Erased(Keys& keys, std::string name, std::vector<int> by = {},
      frame::Clock::time_point limit = frame::Clock::time_point::max())
      : keys_(keys), name_(std::move(name)), by_(std::move(by)), limit_(limit) {}
  bool ready() override {
    return frame::Clock::now() >= limit_ || !keys_.has({name_});
  }
  std::vector<int> missing() const override { return by_; }

 private:
  Keys& keys_;
  const std::string name_;
  const std::vector<int> by_; // ranks
  const frame::Clock::time_point limit_;
};
// [/awaited]

// Moves every byte through the c10d store: slow, and right, wherever the ranks are.
//
//   <sequence>/<rank>: the note of a collective, and the sizes of its pieces
//   <sequence>/<rank>/all/<i>: piece i of the bytes that are for all ranks
//   <sequence>/<rank>/<other>/<i>: of those for one rank, which erases them
//   <sequence>/read: how many ranks have read all that they need
//   <from>/<to>/<tag>/<number>: the note of a message, erased when it has been received
//   failed: why the group cannot go on
//   left/<rank>: the rank has left; its keys that are left over
//
// A rank that has read the notes of one collective knows that all have ended the one
// before, and erases its keys of that.
class StoreTransport final : public frame::Exchanging {
 public:
  explicit StoreTransport(frame::Place place) : Exchanging(std::move(place)) {}

  // [exchange]
  Steps exchange(const Note& note, Pieces shown, int from, Blobs& received) override {
    const std::string round = to_string(note.sequence) + "/", mine = round + me();
    Keys::Names leftover{mine};
    std::vector<uint64_t> sizes;
    for (size_t to = 0; to < shown.size(); ++to) {
      sizes.push_back(shown[to].size());
      if (shown.size() > 1 && to == index()) continue; // stays here
      const auto names = write(mine + "/" + reader(shown.size(), to), shown[to]);
      if (shown.size() == 1) leftover.insert(leftover.end(), names.begin(), names.end());
    }
    keys().set(mine, head(note, sizes)); // the last: a rank that sees it finds all
    std::map<int, std::string> notes;
    for (int rank = 0; rank < size(); ++rank) notes[rank] = round + to_string(rank);
    co_await Present(keys(), notes);

    Keys::Names names;
    for (const auto& [rank, name] : notes) names.push_back(name);
    const auto heads = keys().get(names).value();
    std::vector<Note> all;
    for (const auto& head : heads) all.push_back(note_of(head));
    frame::compare(all, this->names());
    erase_leftover();
    leftover_ = leftover;
    last_ = round;

    for (int rank = 0; rank < size(); ++rank) {
      if (from != frame::kEveryone && from != rank) continue;
      const auto pieces = sizes_of(heads[rank]);
      if (pieces.empty()) continue; // it has shown nothing
      const size_t which = pieces.size() == 1 ? 0 : index();
      received[rank].resize(pieces[which]);
      if (rank == this->rank()) {
        frame::copy(received[rank], shown[which]);
      } else {
        const auto key = names[rank] + "/" + reader(pieces.size(), index());
        read(key, received[rank], /*erase=*/pieces.size() > 1);
      }
    }
    keys().add(round + "read", 1);
  }
  // [/exchange]

  // [messages]
  Steps send(const Operation& op) override {
    const int to = op.note.root;
    const auto number = ++sent_[{to, op.note.tag}];
    const auto key = message(rank(), to, op.note.tag, number);
    write(key, op.in[0]);
    keys().set(key, head(op.note, {}));
    co_await Erased(keys(), key, {to}); // it has been received
  }

  Steps receive(const Operation& op) override {
    Match match(*this, op.note);
    co_await match;
    const auto note = note_of(keys().get({match.key}).value().at(0));
    if (note.bytes != op.note.bytes || note.dtype != op.note.dtype) {
      throw std::runtime_error("the ranks do not agree: " + names().who(match.from) +
          " runs " + describe(note) + ", " + names().who(rank()) + " runs " +
          describe(op.note));
    }
    read(match.key, op.out[0], /*erase=*/true);
    keys().erase(match.key);
    op.source->store(match.from);
  }
  // [/messages]

  // [lost]
  std::optional<std::string> failure() override {
    if (keys().add("leavers", 0) != static_cast<int64_t>(left_.size())) {
      for (int rank = 0; rank < size(); ++rank) {
        if (keys().has({"left/" + to_string(rank)})) left_.insert(rank);
      }
    }
    const auto reason = keys().text("failed");
    return reason.empty() ? std::nullopt : std::optional(reason);
  }

  std::optional<std::string> lost(const std::vector<int>& missing) override {
    const char* text = " left the group (destroyed or lost it)";
    for (const int rank : missing) {
      if (left_.contains(rank)) return names().who(rank) + " has" + text;
    }
    const bool alone = missing.empty() && size() > 1 &&
        static_cast<int>(left_.size()) == size() - 1;
    if (alone) return std::string("all other ranks have") + text;
    return std::nullopt;
  }

  void announce(const std::string& reason) override {
    if (!keys().has({"failed"})) keys().set_text("failed", reason);
  }
  // [/lost]

  // [leave]
  // The rank that hosts the store may leave as soon as all have read their results. The
  // last one to leave erases what is left over of all.
  Steps leave(bool orderly) override {
    if (orderly && !last_.empty()) co_await AllRead(*this);
    std::string lines;
    for (const auto& name : leftover_) lines += name + "\n";
    keys().set_text("left/" + me(), lines);
    if (keys().add("leavers", 1) < size()) {
      // Often all leave at once: then nobody finds the store gone.
      co_await Erased(keys(), "leavers", {}, frame::Clock::now() + kTogether);
      co_return;
    }
    for (int rank = 0; rank < size(); ++rank) {
      const std::string key = "left/" + to_string(rank);
      std::istringstream all(keys().text(key));
      for (std::string line; std::getline(all, line);) keys().erase(line);
      keys().erase(key);
    }
    for (const auto& key : {last_ + "read", std::string("failed"), std::string("leavers")}) {
      keys().erase(key);
    }
  }
  // [/leave]

 private:
  // The message that a receive is for: the next one of its tag, unless an earlier
  // receive waits for that.
  class Match final : public frame::Awaited {
   public:
    Match(StoreTransport& store, const Note& note) : store_(store), note_(note) {
      store_.waiting_.push_back(this);
    }
    ~Match() { store_.waiting_.remove(this); }

    bool ready() override {
      for (int rank = 0; rank < store_.size(); ++rank) {
        if (rank == store_.rank() || !could_be_from(rank) || is_behind(rank)) continue;
        auto& number = store_.received_[{rank, note_.tag}];
        key = message(rank, store_.rank(), note_.tag, number + 1);
        if (!store_.keys().has({key})) continue;
        ++number;
        from = rank;
        store_.waiting_.remove(this);
        return true;
      }
      return false;
    }
    std::vector<int> missing() const override {
      return note_.root < 0 ? std::vector<int>() : std::vector<int>{note_.root};
    }

    std::string key;
    int from = -1;

   private:
    bool could_be_from(int rank) const { return note_.root < 0 || note_.root == rank; }
    bool is_behind(int rank) const {
      for (const Match* other : store_.waiting_) {
        if (other == this) return false;
        if (other->note_.tag == note_.tag && other->could_be_from(rank)) return true;
      }
      return false;
    }

    StoreTransport& store_;
    const Note note_;
  };

  // All ranks have read what they need of the last collective.
  class AllRead final : public frame::Awaited {
   public:
    explicit AllRead(StoreTransport& store) : store_(store) {}
    bool ready() override {
      return store_.keys().add(store_.last_ + "read", 0) >= store_.size();
    }

   private:
    StoreTransport& store_;
  };

  std::string me() const { return to_string(rank()); }
  size_t index() const { return static_cast<size_t>(rank()); }
  static std::string reader(size_t pieces, size_t rank) {
    return pieces == 1 ? "all" : to_string(rank);
  }
  static std::string message(int from, int to, int64_t tag, uint64_t number) {
    return to_string(from) + "/" + to_string(to) + "/" + to_string(tag) + "/" +
        to_string(number);
  }

  // A note and sizes as bytes. All ranks have the same byte order.
  static frame::Blob head(const Note& note, const std::vector<uint64_t>& sizes) {
    const auto first = std::as_bytes(std::span(&note, 1));
    const auto rest = std::as_bytes(std::span(sizes));
    frame::Blob bytes(first.begin(), first.end());
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return bytes;
  }
  static Note note_of(const Keys::Value& head) {
    Note note;
    std::memcpy(&note, head.data(), std::min(head.size(), sizeof(note)));
    return note;
  }
  static std::vector<uint64_t> sizes_of(const Keys::Value& head) {
    std::vector<uint64_t> sizes((head.size() - sizeof(Note)) / sizeof(uint64_t));
    if (!sizes.empty()) {
      std::memcpy(sizes.data(), head.data() + sizeof(Note), sizes.size() * sizeof(uint64_t));
    }
    return sizes;
  }

  // Returns the keys.
  Keys::Names write(const std::string& key, Bytes data) {
    Keys::Names names;
    for (size_t i = 0; i * kPieceBytes < data.size(); ++i) {
      names.push_back(key + "/" + to_string(i));
      keys().set(names.back(), frame::part(data, i, kPieceBytes));
    }
    return names;
  }

  void read(const std::string& key, Bytes data, bool erase) {
    for (size_t i = 0; i * kPieceBytes < data.size(); ++i) {
      const auto name = key + "/" + to_string(i);
      const auto piece = keys().get({name}).value().at(0);
      frame::copy(frame::part(data, i, kPieceBytes), std::as_bytes(std::span(piece)));
      if (erase) keys().erase(name);
    }
  }

  void erase_leftover() {
    for (const auto& name : leftover_) keys().erase(name);
    if (rank() == 0 && !last_.empty()) keys().erase(last_ + "read");
  }

  Keys::Names leftover_; // of the last collective, which others may still read
  std::string last_; // its prefix
  std::map<std::pair<int, int64_t>, uint64_t> sent_, received_; // by other rank and tag
  std::list<Match*> waiting_; // receives in the order of their calls
  std::set<int> left_; // ranks
};

} // namespace store_collectives

#pragma once

#include <list>
#include <map>
#include <set>

#include "frame/transport.hpp"

namespace store_collectives {

using frame::Blobs, frame::Bytes, frame::Keys, frame::Note, frame::Operation;
using frame::Pieces, frame::Steps, frame::Until;
using std::to_string;

// A value of a TCPStore has at most 8 MiB. Larger ones go in pieces.
constexpr size_t kPieceBytes = 4 << 20;

// Moves every byte through the c10d store: slow, and right, wherever the ranks are.
//
//   <round>/<rank>: the note of a collective, and the sizes of its pieces
//   <round>/<rank>/all/<i>: piece i of the bytes that are for all ranks
//   <round>/<rank>/<other>/<i>: of those for one rank, which erases them
//   <round>/read: how many ranks have read all that they need
//   <from>-<to>/<tag>/<number>: the note of a message, erased when it has been received
//   failed: why the group cannot go on
//   left/<rank>: the rank has left the group
//
// Each exchange is a round. A rank that has read the notes of one round knows that all
// have ended the one before, and erases its keys of that.
class StoreTransport : public frame::Transport {
 public:
  StoreTransport(frame::Place place, bool can_block)
      : Transport(std::move(place)), can_block_(can_block) {}

  bool can_block() const override { return can_block_; }

  // [exchange]
  Steps exchange(const Note& note, Pieces shown, int from, Blobs& received) override {
    const std::string round = to_string(++rounds_) + "/", mine = round + me();
    Keys::Names kept{mine}, all;
    std::vector<uint64_t> sizes;
    for (size_t to = 0; to < shown.size(); ++to) {
      sizes.push_back(shown[to].size());
      if (shown.size() > 1 && to == index()) continue; // stays here
      const auto names = write(mine + "/" + reader(shown.size(), to), shown[to]);
      if (shown.size() == 1) kept.insert(kept.end(), names.begin(), names.end());
    }
    keys().set(mine, head(note, sizes)); // the last: a rank that sees it finds all
    for (int rank = 0; rank < size(); ++rank) all.push_back(round + to_string(rank));
    Late late(all);
    Until present([&] { return keys().has(all); }, [&] { return late.ranks(keys()); });
    co_await present;

    const auto heads = keys().get(all);
    std::vector<Note> notes;
    for (int rank = 0; rank < size(); ++rank) {
      notes.push_back(note_of(all[rank], heads[rank]));
    }
    frame::compare(notes, names());
    erase_kept();
    if (rank() == 0 && !last_.empty()) keys().erase(last_ + "read");
    kept_ = kept;
    last_ = round;

    for (int rank = 0; rank < size(); ++rank) {
      if (from != frame::kEveryone && from != rank) continue;
      const auto pieces = sizes_of(all[rank], heads[rank]);
      if (pieces.empty()) continue; // it has shown nothing
      const size_t which = pieces.size() == 1 ? 0 : index();
      if (rank == this->rank()) {
        received[rank].assign(shown[which].begin(), shown[which].end());
      } else {
        const auto key = all[rank] + "/" + reader(pieces.size(), index());
        received[rank] = read(key, pieces[which], /*erase=*/pieces.size() > 1);
      }
    }
    keys().add(round + "read", 1);
  }
  // [/exchange]

  // [messages]
  Steps send(const Operation& op) override {
    const int to = op.note.root;
    const auto key = message(rank(), to, op.note.tag, ++sent_[{to, op.note.tag}]);
    write(key, op.in[0]);
    keys().set(key, head(op.note, {}));
    Until received(
        [&] { return !keys().has({key}); }, [to] { return std::vector{to}; });
    co_await received;
  }

  Steps receive(const Operation& op) override {
    const auto place = waiting_.insert(waiting_.end(), op.note);
    int from = op.note.root;
    std::string key;
    Until sent([&] { return find(place, from, key); },
        [&] {
          return op.note.root < 0 ? std::vector<int>() : std::vector{op.note.root};
        });
    co_await sent;
    waiting_.erase(place);
    const auto note = note_of(key, keys().get({key}).at(0));
    if (note.bytes != op.note.bytes || note.dtype != op.note.dtype) {
      throw std::runtime_error("the ranks do not agree: " + names().who(from) +
          " runs " + describe(note) + ", " + names().who(rank()) + " runs " +
          describe(op.note));
    }
    frame::copy(op.out[0], read(key, op.out[0].size(), /*erase=*/true));
    keys().erase(key);
    op.source->store(from);
  }
  // [/messages]

  // [lost]
  std::optional<std::string> failure() override {
    const auto reason = keys().text("failed");
    return reason.empty() ? std::nullopt : std::optional(reason);
  }

  std::optional<std::string> lost(const std::vector<int>& missing) override {
    const char* text = " left the group (destroyed or lost it)";
    const auto leavers = keys().count("leavers"); // one request, if none has left since
    for (int rank = 0; rank < size() && leavers != leavers_; ++rank) {
      if (keys().has({"left/" + to_string(rank)})) left_.insert(rank);
    }
    leavers_ = leavers;
    for (const int rank : missing) {
      if (left_.contains(rank)) return names().who(rank) + " has" + text;
    }
    // A receive from any rank is missing none; each other rank could send.
    const bool any_other = missing.empty() && size() > 1;
    if (!any_other || std::ssize(left_) < size() - 1) return std::nullopt;
    return std::string("all other ranks have") + text;
  }

  void announce(const std::string& reason) override {
    if (!keys().has({"failed"})) keys().set_text("failed", reason);
  }
  // [/lost]

  // [leave]
  // The rank that hosts the store may leave as soon as all have read their results. The
  // last one to leave erases the keys that are left over.
  Steps leave(bool orderly) override {
    Until all_read([&] { return keys().add(last_ + "read", 0) >= size(); });
    if (orderly && !last_.empty()) co_await all_read;
    if (orderly) erase_kept();
    keys().set_text("left/" + me(), "left");
    if (keys().add("leavers", 1) < size()) {
      if (rank() != 0) co_return;
      const auto limit = frame::Clock::now() + frame::kTogether;
      Until alone(
          [&] { return frame::Clock::now() > limit || !keys().has({"leavers"}); });
      co_await alone;
      co_return;
    }
    for (int rank = 0; rank < size(); ++rank) keys().erase("left/" + to_string(rank));
    keys().erase(last_ + "read");
    keys().erase("failed");
    keys().erase("leavers"); // the last, because rank 0 waits for it
  }
  // [/leave]

 private:
  // Finds the message that a receive is for: the next one of its tag, unless an earlier
  // receive waits for that.
  bool find(std::list<Note>::iterator place, int& from, std::string& key) {
    for (int rank = 0; rank < size(); ++rank) {
      const auto takes = [&](const Note& other) {
        return other.tag == place->tag && (other.root < 0 || other.root == rank);
      };
      const bool behind = std::any_of(waiting_.begin(), place, takes);
      if (!takes(*place) || behind) continue;
      auto& number = received_[{rank, place->tag}];
      key = message(rank, this->rank(), place->tag, number + 1);
      if (!keys().has({key})) continue;
      ++number;
      from = rank;
      return true;
    }
    return false;
  }

  // The ranks whose keys do not exist. To find them takes a request for each, so a rank
  // that waits for long looks less and less often.
  class Late {
   public:
    explicit Late(const Keys::Names& names) : names_(names) {}

    std::vector<int> ranks(Keys& keys) {
      const auto now = frame::Clock::now();
      if (now < next_) return ranks_;
      next_ = now + frame::pause_after(now - begin_, {}, kLongest);
      ranks_.clear();
      for (size_t rank = 0; rank < names_.size(); ++rank) {
        if (!keys.has({names_[rank]})) ranks_.push_back(static_cast<int>(rank));
      }
      return ranks_;
    }

   private:
    static constexpr frame::milliseconds kLongest{1000};

    const Keys::Names& names_;
    const frame::Clock::time_point begin_ = frame::Clock::now();
    frame::Clock::time_point next_ = begin_;
    std::vector<int> ranks_;
  };

  std::string me() const { return to_string(rank()); }
  size_t index() const { return static_cast<size_t>(rank()); }
  static std::string reader(size_t pieces, size_t rank) {
    return pieces == 1 ? "all" : to_string(rank);
  }
  static std::string message(int from, int to, int64_t tag, uint64_t number) {
    return to_string(from) + "-" + to_string(to) + "/" + to_string(tag) + "/" +
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
  static Note note_of(const std::string& key, const Keys::Value& head) {
    Note note;
    if (head.size() < sizeof(note)) refuse(key, head, "the note of an operation");
    std::memcpy(&note, head.data(), sizeof(note));
    return note;
  }
  std::vector<uint64_t> sizes_of(
      const std::string& key, const Keys::Value& head) const {
    const auto bytes = std::as_bytes(std::span(head)).subspan(sizeof(Note));
    std::vector<uint64_t> sizes(bytes.size() / sizeof(uint64_t));
    const bool fits = sizes.size() <= 1 || std::ssize(sizes) == size();
    if (!fits || sizes.size() * sizeof(uint64_t) != bytes.size()) {
      refuse(key, head, "the note of an operation and the sizes of its pieces");
    }
    frame::copy(std::as_writable_bytes(std::span(sizes)), bytes);
    return sizes;
  }
  [[noreturn]] static void refuse(
      const std::string& key, const Keys::Value& value, const std::string& expected) {
    frame::Words(key, {value.begin(), value.end()}, expected).refuse();
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

  frame::Blob read(const std::string& key, size_t size, bool erase) {
    frame::Blob data;
    for (size_t i = 0; data.size() < size; ++i) {
      const auto name = key + "/" + to_string(i);
      const auto piece = keys().get({name}).at(0);
      const auto expected = std::min(size - data.size(), kPieceBytes);
      if (piece.size() != expected) refuse(name, piece, to_string(expected) + " bytes");
      const auto bytes = std::as_bytes(std::span(piece));
      data.insert(data.end(), bytes.begin(), bytes.end());
      if (erase) keys().erase(name);
    }
    return data;
  }

  void erase_kept() {
    for (const auto& name : kept_) keys().erase(name);
  }

  const bool can_block_;
  uint64_t rounds_ = 0;
  Keys::Names kept_; // of the last round, which others may still read
  std::string last_; // its prefix
  std::map<std::pair<int, int64_t>, uint64_t> sent_, received_; // by other rank and tag
  std::list<Note> waiting_; // receives in the order of their calls
  int64_t leavers_ = 0; // how many ranks have left,
  std::set<int> left_; // and which ones
};

} // namespace store_collectives

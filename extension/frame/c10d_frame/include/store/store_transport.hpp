#pragma once

#include <list>
#include <set>

#include "frame/transport.hpp"

namespace store_collectives {

using frame::Blobs, frame::Bytes, frame::Keys, frame::Note, frame::Operation;
using frame::Pieces, frame::Steps, frame::Until;
using std::to_string;

// A value of a TCPStore has at most 8 MiB. Larger ones go in pieces.
constexpr size_t kPieceBytes = 4 << 20;

// The mail of a rank: the messages to it that no receive has taken, and which of its own
// have been received. The thread that has the turn uses it; any thread may call expire().
class Mail {
 public:
  Mail(Keys& keys, int rank, int size) : keys_(keys), rank_(rank), size_(size) {}

  struct Letter { // a message to this rank
    int from = 0;
    uint64_t number = 0;
    int64_t tag = 0;
  };
  using Receive = std::list<Note>::iterator;

  // Tells a rank that a message to it is in the store.
  void post(int to, uint64_t number, int64_t tag) {
    keys_.add_line(name(to), {rank_, to_string(number) + " " + to_string(tag)});
  }
  // Tells its sender that it has been received.
  void confirm(const Letter& letter) {
    keys_.add_line(name(letter.from), {rank_, to_string(letter.number)});
  }
  // Whether the receiver of a message of this rank has confirmed it. Returns true once.
  bool was_received(uint64_t number) {
    read();
    return received_.erase(number) > 0;
  }

  Receive add(const Note& receive) { return waiting_.insert(waiting_.end(), receive); }
  void remove(Receive receive) { waiting_.erase(receive); }
  // Takes the first message whose first receive is this one.
  bool find(Receive receive, Letter& found) {
    read();
    for (auto letter = letters_.begin(); letter != letters_.end(); ++letter) {
      const auto first = std::ranges::find_if(waiting_, [&](const Note& note) {
        return note.tag == letter->tag && (note.root < 0 || note.root == letter->from);
      });
      if (first != receive) continue;
      found = *letter;
      letters_.erase(letter);
      return true;
    }
    return false;
  }

  // Lets the next one who asks read the mail again.
  void expire() { is_old_ = true; }

  void erase_keys() {
    for (int rank = 0; rank < size_; ++rank) keys_.erase(name(rank));
  }

 private:
  // The first message that asks in a look makes the request for all.
  void read() {
    if (!is_old_.exchange(false)) return;
    for (const auto& line : keys_.take_lines(name(rank_), size_)) {
      frame::Words words(name(rank_), line.text, "numbers of messages");
      const auto number = words.number<uint64_t>();
      if (words.more()) {
        letters_.push_back({line.rank, number, words.number<int64_t>()});
      } else {
        received_.insert(number);
      }
    }
  }

  static std::string name(int rank) { return "mail/" + to_string(rank); }

  Keys& keys_;
  const int rank_, size_;
  std::set<uint64_t> received_; // messages whose sends have not ended yet
  std::list<Letter> letters_; // in the order in which they were sent
  std::list<Note> waiting_; // receives in the order of their calls
  std::atomic<bool> is_old_ = true;
};

// Moves every byte through the c10d store: slow, and right, wherever the ranks are.
//
//   <round>/ranks: a line for each rank that has shown its part of a collective
//   <round>/<rank>: its note, and the sizes of its pieces
//   <round>/<rank>/all/<i>: piece i of the bytes that are for all ranks
//   <round>/<rank>/<other>/<i>: of those for one rank, which erases them
//   <round>/read: how many ranks have read all that they need
//   <from>-<to>/<number>: the note of a message, erased when it has been received
//   mail/<rank>: a line for each message to the rank, with its number and tag, and for each
//   of its own that has been received, with the number; the rank takes them away
//   news: a line for each rank that has left the group, or says why it cannot go on
//   leavers: how many ranks have left the group
//
// A rank that waits makes one request in a look for its collective, one for its messages
// and one for the news, however many ranks there are.
//
// Each exchange is a round. A rank that has read the notes of one round knows that all
// have ended the one before, and erases its keys of that.
class StoreTransport : public frame::Transport {
 public:
  StoreTransport(frame::Place place, bool can_block)
      : Transport(std::move(place)),
        can_block_(can_block),
        mail_(keys(), rank(), size()) {}

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
    keys().set(mine, head(note, sizes));
    const auto ranks = round + "ranks"; // the last: who sees the rank in it finds all
    keys().add_line(ranks, {rank(), kShown});
    for (int rank = 0; rank < size(); ++rank) all.push_back(round + to_string(rank));
    std::vector<int> late;
    Until present(
        [&] { return (late = others_than(keys().lines(ranks, size()))).empty(); },
        [&] { return late; });
    co_await present;

    const auto heads = keys().get(all);
    std::vector<Note> notes;
    for (int rank = 0; rank < size(); ++rank) {
      notes.push_back(note_of(all[rank], heads[rank]));
    }
    frame::compare(notes, names());
    erase_kept();
    if (rank() == 0 && !last_.empty()) keys().erase(last_ + "read");
    if (rank() == 0) kept.push_back(ranks);
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
    const uint64_t number = ++sent_;
    const auto key = message(rank(), to, number);
    write(key, op.in[0]);
    keys().set(key, head(op.note, {}));
    mail_.post(to, number, op.note.tag);
    Until received(
        [&] { return mail_.was_received(number); }, [to] { return std::vector{to}; });
    co_await received;
  }

  Steps receive(const Operation& op) override {
    const auto place = mail_.add(op.note);
    Mail::Letter letter;
    Until sent([&] { return mail_.find(place, letter); },
        [&] {
          return op.note.root < 0 ? std::vector<int>() : std::vector{op.note.root};
        });
    co_await sent;
    mail_.remove(place);
    const int from = letter.from;
    const auto key = message(from, rank(), letter.number);
    const auto note = note_of(key, keys().get({key}).at(0));
    if (note.bytes != op.note.bytes || note.dtype != op.note.dtype) {
      throw std::runtime_error("the ranks do not agree: " + names().who(from) +
          " runs " + describe(note) + ", " + names().who(rank()) + " runs " +
          describe(op.note));
    }
    frame::copy(op.out[0], read(key, op.out[0].size(), /*erase=*/true));
    keys().erase(key);
    mail_.confirm(letter);
    op.source->store(from);
  }
  // [/messages]

  // [lost]
  std::optional<std::string> failure() override {
    for (const auto& [rank, text] : keys().lines("news", size())) {
      if (text == kLeft)
        left_.insert(rank);
      else if (!failure_)
        failure_ = text;
    }
    mail_.expire(); // what a rank has sent before it left counts
    return failure_;
  }

  // Knows what failure() has read, which the engine calls first.
  std::optional<std::string> lost(const std::vector<int>& missing) override {
    const char* text = " left the group (destroyed or lost it)";
    for (const int rank : missing) {
      if (left_.contains(rank)) return names().who(rank) + " has" + text;
    }
    // A receive from any rank is missing none; each other rank could send.
    const bool any_other = missing.empty() && size() > 1;
    if (!any_other || std::ssize(left_) < size() - 1) return std::nullopt;
    return std::string("all other ranks have") + text;
  }

  void announce(const std::string& reason) override {
    if (!failure()) keys().add_line("news", {rank(), reason});
  }
  // [/lost]

  bool rest(const frame::Idle& idle, frame::Clock::time_point limit,
      const Look& look) override {
    const bool moved = Transport::rest(idle, limit, look);
    mail_.expire();
    return moved;
  }

  // [leave]
  // The rank that hosts the store may leave as soon as all have read their results. The
  // last one to leave erases the keys that are left over.
  Steps leave(bool orderly) override {
    Until all_read([&] { return keys().add(last_ + "read", 0) >= size(); });
    if (orderly && !last_.empty()) co_await all_read;
    if (orderly) erase_kept();
    keys().add_line("news", {rank(), kLeft});
    if (keys().add("leavers", 1) < size()) {
      if (rank() != 0) co_return;
      const auto limit = frame::Clock::now() + frame::kTogether;
      Until alone(
          [&] { return frame::Clock::now() > limit || !keys().has({"leavers"}); });
      co_await alone;
      co_return;
    }
    mail_.erase_keys();
    keys().erase(last_ + "read");
    keys().erase(last_ + "ranks");
    keys().erase("news");
    keys().erase("leavers"); // the last, because rank 0 waits for it
  }
  // [/leave]

 private:
  std::vector<int> others_than(const std::vector<Keys::Line>& lines) const {
    std::set<int> here;
    for (const auto& line : lines) here.insert(line.rank);
    std::vector<int> others;
    for (int rank = 0; rank < size(); ++rank) {
      if (!here.contains(rank)) others.push_back(rank);
    }
    return others;
  }

  std::string me() const { return to_string(rank()); }
  size_t index() const { return static_cast<size_t>(rank()); }
  static std::string reader(size_t pieces, size_t rank) {
    return pieces == 1 ? "all" : to_string(rank);
  }
  static std::string message(int from, int to, uint64_t number) {
    return to_string(from) + "-" + to_string(to) + "/" + to_string(number);
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

  static constexpr const char *kShown = "shown", *kLeft = "left";

  const bool can_block_;
  uint64_t rounds_ = 0;
  Keys::Names kept_; // of the last round, which others may still read
  std::string last_; // its prefix
  uint64_t sent_ = 0; // messages of this rank
  Mail mail_;
  std::optional<std::string> failure_;
  std::set<int> left_; // ranks
};

} // namespace store_collectives

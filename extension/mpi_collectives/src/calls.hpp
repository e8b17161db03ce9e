#pragma once

#include "library.hpp"
#include "types.hpp"

namespace mpi_collectives {

using frame::Blob, frame::Blobs, frame::Operation, frame::Pieces, frame::Steps;

// Tags below those of messages.
enum Tag { kHeads, kPieces, kFirstMessage };

// What each rank tells each other one before data moves: what it runs, how many bytes it
// has for that rank, and from whom it wants data.
struct Head {
  static constexpr uint64_t kNothing = ~uint64_t{0};
  Note note;
  uint64_t bytes = kNothing;
  int64_t from = frame::kNobody;
};

// What all calls of a group need.
struct Line {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::shared_ptr<Bell> bell = std::make_shared<Bell>();

  std::vector<int> others() const {
    std::vector<int> others;
    for (int other = 0; other < size; ++other) {
      if (other != rank) others.push_back(other);
    }
    return others;
  }
};

// Sends and gets a head for each other rank. A message for each pair says who is
// missing; a collective of MPI would not.
class Heads final : public Call {
 public:
  Heads(const Line& line, std::vector<Head> mine)
      : Call(nullptr, line.bell, 2 * line.size),
        line_(line),
        mine_(std::move(mine)),
        all_(line.size) {
    all_[line.rank] = mine_[line.rank];
  }
  const std::vector<Head>& all() const { return all_; }
  std::vector<int> missing() const {
    std::vector<int> missing;
    for (const int other : line_.others()) {
      if (open(other)) missing.push_back(other);
    }
    return missing;
  }

 private:
  void post(std::vector<MPI_Request>& requests) override {
    for (const int other : line_.others()) {
      check(MPI_Irecv(&all_[other], sizeof(Head), MPI_BYTE, other, kHeads, line_.comm,
                &requests[other]),
          "MPI_Irecv");
    }
    for (const int other : line_.others()) {
      check(MPI_Isend(&mine_[other], sizeof(Head), MPI_BYTE, other, kHeads, line_.comm,
                &requests[line_.size + other]),
          "MPI_Isend");
    }
  }

  const Line line_;
  std::vector<Head> mine_, all_; // by the other rank
};

// Sends and gets pieces of any size, in memory of its own.
class Exchange final : public Call {
 public:
  Exchange(const Line& line, std::vector<Blob> shown, Blobs received)
      : Call(nullptr, line.bell, 2 * line.size),
        line_(line),
        shown_(std::move(shown)),
        received_(std::move(received)) {}
  Blobs& received() { return received_; }

  // Which of them.
  std::vector<int> from, to;

 private:
  void post(std::vector<MPI_Request>& requests) override {
    for (const int rank : from) {
      check(MPI_Irecv_c(received_[rank].data(), received_[rank].size(), MPI_BYTE, rank,
                kPieces, line_.comm, &requests[rank]),
          "MPI_Irecv_c");
    }
    for (const int rank : to) {
      const Blob& piece = shown_.size() == 1 ? shown_[0] : shown_[rank];
      check(MPI_Isend_c(piece.data(), piece.size(), MPI_BYTE, rank, kPieces, line_.comm,
                &requests[line_.size + rank]),
          "MPI_Isend_c");
    }
  }

  const Line line_;
  std::vector<Blob> shown_;
  Blobs received_;
};

// One request, which a function posts.
class Single final : public Call {
 public:
  using Post = std::function<int(MPI_Request*)>;

  Single(const Line& line, std::shared_ptr<const void> owner, const char* name, Post post)
      : Call(std::move(owner), line.bell, 1), name_(name), post_(std::move(post)) {}

 private:
  void post(std::vector<MPI_Request>& requests) override {
    check(post_(&requests[0]), name_);
  }
  const char* const name_;
  const Post post_;
};

// A message and its note as one: where the data is, and where the note.
class Message final : public Call {
 public:
  Message(const Line& line, const Operation& op, Bytes data)
      : Call(op.owner, line.bell, 1),
        line_(line),
        peer_(op.note.root < 0 ? MPI_ANY_SOURCE : op.note.root),
        sends_(op.note.kind == frame::Kind::send),
        tag_(op.note.tag),
        note_(op.note),
        data_(data) {}

  // That of this rank, or of the sender when it has come.
  const Note& note() const { return note_; }

 private:
  void post(std::vector<MPI_Request>& requests) override {
    int* most = nullptr;
    int found = 0;
    MPI_Comm_get_attr(line_.comm, MPI_TAG_UB, &most, &found);
    if (tag_ < 0 || (found && tag_ > *most - kFirstMessage)) {
      throw std::runtime_error("MPI takes tags from 0 to " +
          std::to_string(*most - kFirstMessage) + ", got " + std::to_string(tag_));
    }
    MPI_Count lengths[] = {static_cast<MPI_Count>(data_.size()), sizeof(Note)};
    MPI_Aint begin = 0, end = 0;
    MPI_Get_address(data_.data(), &begin);
    MPI_Get_address(&note_, &end);
    MPI_Count places[] = {begin, end};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    check(MPI_Type_create_hindexed_c(2, lengths, places, MPI_BYTE, &type), "MPI_Type");
    check(MPI_Type_commit(&type), "MPI_Type_commit");
    const int tag = static_cast<int>(tag_) + kFirstMessage;
    const int error = sends_
        ? MPI_Issend(MPI_BOTTOM, 1, type, peer_, tag, line_.comm, &requests[0])
        : MPI_Irecv(MPI_BOTTOM, 1, type, peer_, tag, line_.comm, &requests[0]);
    MPI_Type_free(&type); // when the request is done
    check(error, sends_ ? "MPI_Issend" : "MPI_Irecv");
  }

  const Line line_;
  const int peer_;
  const bool sends_;
  const int64_t tag_;
  Note note_;
  const Bytes data_;
};

} // namespace mpi_collectives

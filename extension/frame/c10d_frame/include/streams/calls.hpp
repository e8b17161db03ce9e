#pragma once

#include "device.hpp"

#include "communicator.hpp"

namespace streams {

// Calls of a program that are launched together, with their tensors.
using CallList = std::vector<std::shared_ptr<frame::Arguments>>;

// Numbers, as a library counts them: a complex one is two.
struct Numbers {
  explicit Numbers(const frame::Note& note)
      : type(c10::toRealValueType(static_cast<at::ScalarType>(note.dtype))),
        // The product of a premultiplied sum has been made.
        op(note.op == frame::Op::premul_sum ? frame::Op::sum : note.op) {}
  size_t count(frame::Bytes bytes) const {
    return bytes.size() / c10::elementSize(type);
  }
  at::ScalarType type;
  frame::Op op;
};

inline bool can_reduce(const Communicator& library, const frame::Note& note) {
  const Numbers numbers(note);
  const bool complex = c10::isComplexType(static_cast<at::ScalarType>(note.dtype));
  const bool adds = numbers.op == frame::Op::sum || numbers.op == frame::Op::avg;
  return note.op == frame::Op::none ||
      (library.can_reduce(numbers.type, numbers.op) && (adds || !complex));
}

// The pieces as one, if they lie one behind the other.
inline std::optional<frame::Bytes> joined(frame::Pieces pieces) {
  size_t size = 0;
  for (const auto piece : pieces) {
    if (piece.data() != pieces[0].data() + size || piece.size() != pieces[0].size())
      return std::nullopt;
    size += piece.size();
  }
  return frame::Bytes(pieces[0].data(), size);
}

// [enqueue]
// Enqueues an operation of c10d, between group_start and group_end. What the library has
// no call for is made of messages, or of one call for each rank.
class Enqueuer {
 public:
  Enqueuer(Communicator& communicator, const frame::Arguments& call, int rank,
      c10::Stream stream)
      : communicator_(communicator),
        call_(call),
        note_(call.note),
        in_(call.in),
        out_(call.out),
        rank_(rank),
        stream_(stream) {}

  void enqueue() {
    const int root = note_.root;
    switch (note_.kind) {
      case Kind::barrier:
        return communicator_.barrier(in_[0].data(), stream_);
      case Kind::all_reduce: {
        const Numbers numbers(note_);
        return communicator_.all_reduce(in_[0].data(), out_[0].data(),
            numbers.count(in_[0]), numbers.type, numbers.op, stream_);
      }
      case Kind::reduce:
        return reduce(in_[0], out_.empty() ? frame::Bytes() : out_[0], root);
      case Kind::reduce_scatter:
        return reduce_scatter();
      case Kind::broadcast:
        return broadcast(root);
      case Kind::all_gather:
        return all_gather();
      case Kind::gather:
        send(in_[0], root);
        return receive_all();
      case Kind::scatter:
        for (size_t rank = 0; rank < in_.size(); ++rank) send(in_[rank], rank);
        return receive(out_[0], root);
      case Kind::all_to_all:
        for (size_t rank = 0; rank < in_.size(); ++rank) send(in_[rank], rank);
        return receive_all();
      default:
        return message(call_.source);
    }
  }
  // [/enqueue]

 private:
  void reduce(frame::Bytes from, frame::Bytes to, int root) {
    const Numbers numbers(note_);
    communicator_.reduce(from.data(), to.data(), numbers.count(from), numbers.type,
        numbers.op, root, stream_);
  }

  void reduce_scatter() {
    const Numbers numbers(note_);
    if (const auto from = joined(in_)) {
      return communicator_.reduce_scatter(from->data(), out_[0].data(),
          numbers.count(out_[0]), numbers.type, numbers.op, stream_);
    }
    for (int root = 0; root < static_cast<int>(in_.size()); ++root) {
      reduce(in_[root], root == rank_ ? out_[0] : frame::Bytes(), root);
    }
  }

  void broadcast(int root) {
    const auto data = in_.empty() ? out_[0] : in_[0];
    communicator_.broadcast(data.data(), data.data(), data.size(), root, stream_);
  }

  void all_gather() {
    if (const auto to = joined(out_)) {
      return communicator_.all_gather(
          in_[0].data(), to->data(), in_[0].size(), stream_);
    }
    for (int root = 0; root < static_cast<int>(out_.size()); ++root) {
      communicator_.broadcast(
          in_[0].data(), out_[root].data(), out_[root].size(), root, stream_);
    }
  }

  // A rank that has nothing for another one sends nothing, which both know.
  void send(frame::Bytes from, int rank) {
    if (!from.empty())
      communicator_.send(from.data(), from.size(), rank, kOfCollectives, stream_);
  }
  void receive(frame::Bytes to, int rank) {
    if (!to.empty())
      communicator_.receive(to.data(), to.size(), rank, kOfCollectives, stream_);
  }
  void receive_all() {
    for (size_t rank = 0; rank < out_.size(); ++rank) receive(out_[rank], rank);
  }

  void message(const Communicator::Source& source) {
    const int peer = note_.root;
    const bool sends = note_.kind == Kind::send, own = peer == rank_;
    // Of a message to itself, the receive has both halves.
    if (sends != own)
      communicator_.send(in_[0].data(), in_[0].size(), peer, note_.tag, stream_);
    if (sends) return;
    const auto to = out_[0];
    if (peer == frame::kAnySource)
      return communicator_.receive_any(
          to.data(), to.size(), note_.tag, source, stream_);
    communicator_.receive(to.data(), to.size(), peer, note_.tag, stream_);
  }

  Communicator& communicator_;
  const frame::Arguments& call_; // and parts of it:
  const frame::Note& note_;
  const frame::PieceList &in_, &out_;
  const int rank_;
  const c10::Stream stream_;
};

// A message of a rank to itself is a copy, because a library may connect each rank only
// with others. As with NCCL, both halves are in one batch.
inline void join_own_messages(const CallList& calls, int rank) {
  static constexpr const char* kBothHalves =
      ": a message of a rank to itself needs its send and its receive in one batch; pass "
      "both to batch_isend_irecv";
  const auto is_own = [&](const auto& call, Kind kind) {
    return call->note.kind == kind && call->note.root == rank;
  };
  for (const auto& send : calls) {
    if (!is_own(send, Kind::send)) continue;
    const auto receive = std::ranges::find_if(calls, [&](const auto& one) {
      return is_own(one, Kind::receive) && one->in.empty() &&
          one->note.tag == send->note.tag;
    });
    send->require(receive != calls.end(), kBothHalves);
    send->require((*receive)->note.bytes == send->note.bytes,
        " to its own rank: ", send->note.bytes, " bytes do not fit the receive of ",
        (*receive)->note.bytes);
    (*receive)->in = send->in;
  }
  for (const auto& one : calls) {
    one->require(!is_own(one, Kind::receive) || !one->in.empty(), kBothHalves);
  }
}

// Copies outputs with strides to their places.
inline void finish(const CallList& calls, const c10::Stream& stream) {
  const device::StreamGuard in(stream);
  for (const auto& one : calls) one->finish();
}

// A barrier may be a sum of it.
inline at::Tensor one_byte() {
  return at::empty({1}, at::TensorOptions(device::kType).dtype(at::kByte));
}

} // namespace streams

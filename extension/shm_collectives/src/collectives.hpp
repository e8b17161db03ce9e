#pragma once

#include "step.hpp"

// The collectives, as the steps that they take on the slots of all ranks. Where only
// some ranks have an input or an output, the others have no pieces.
//
// Each one tells `run` the number of its parts; whose parts this rank waits for after
// the first: kEveryone's, those of one rank, or its own, which means nobody's; and how to
// write and to read part i. To run is either pipeline() or Channel::at_once.
namespace shm_collectives::steps {

using frame::copy, frame::kEveryone, frame::part, frame::parts;

// Up to this size in its note, an operation is tried at once (an all_to_all up to its
// slot). Longer ones would keep a program from what it wants to do beside them.
constexpr size_t kAtOnce = 64 << 10;
// Up to this size, every rank reads everything: one step. From there on, each
// rank reduces a share: more steps, but less to read. Two ranks read as much, and gain
// only because less data moves between their caches.
constexpr size_t kSmall = 16 << 10, kSmallForTwo = kAtOnce;

// Larger blocks would leave the caches before they are read.
constexpr size_t kMostBlock = 64 << 10;

// [pipeline]
// The steps of most collectives: each rank writes one part ahead of the part
// that it reads, from everyone or from one rank. All wait for all in the first
// step, to compare their notes. Reading may show that there are more parts.
template <class Write, class Read>
Steps pipeline(
    Channel& channel, Note note, size_t parts, int from, Write write, Read read) {
  const uint64_t first = channel.begin();
  size_t written = channel.posted_early();
  for (size_t done = 0; done < parts; ++done) {
    for (; written < std::min(parts, done + 2); ++written) {
      const Step step = channel.step(first + written);
      Reached free = step.free();
      co_await free;
      write(step, written);
      step.post(note, written > 0 && from == channel.rank());
    }
    const Step step = channel.step(first + done);
    if (done == 0 || from == kEveryone) {
      Reached posted = step.posted();
      co_await posted;
      channel.all_posted(first + done);
    } else {
      Reached posted = step.posted_by(from);
      co_await posted;
    }
    read(step, done, parts);
    step.done();
  }
  channel.end(parts);
}
// [/pipeline]

inline Bytes first_of(frame::Pieces pieces) {
  return pieces.empty() ? Bytes() : pieces[0];
}

template <class Run>
auto barrier(const Run& run) {
  const auto nothing = [](const Step&, size_t, auto...) {};
  return run(1, kEveryone, nothing, nothing);
}

template <class Run>
auto broadcast(Channel& channel, const Operation& op, const Run& run) {
  const size_t size = channel.slot_bytes();
  return run(
      parts(op.note.bytes, size), op.note.root,
      [=, in = first_of(op.in)](const Step& step, size_t i) {
        if (!in.empty()) copy(step.mine(), part(in, i, size));
      },
      [=, out = first_of(op.out), root = op.note.root](
          const Step& step, size_t i, size_t&) {
        if (!out.empty()) copy(part(out, i, size), step.of(root));
      });
}

// [all-gather]
// To each rank that has outputs: a gather to one, an all-gather to all.
template <class Run>
auto gather(Channel& channel, const Operation& op, const Run& run) {
  const size_t size = channel.slot_bytes();
  const Bytes in = op.in[0];
  const int me = channel.rank();
  const int from = op.out.empty() ? me : kEveryone;
  const size_t count = parts(in.size(), size);
  return run(
      count, from,
      [=](const Step& step, size_t i) { copy(step.mine(), part(in, i, size)); },
      [=, &channel, out = op.out](const Step& step, size_t i, size_t&) {
        if (out.empty()) return;
        // The input is faster to read than its copy in the slot. It comes first, because
        // it may lie in the output of another rank. If it has several parts, outputs of
        // earlier ones may have overwritten it.
        copy(part(out[me], i, size), count == 1 ? in : step.mine());
        for (const int rank : channel.others()) {
          copy(part(out[rank], i, size), step.of(rank));
        }
      });
}
// [/all-gather]

// [scatter]
template <class Run>
auto scatter(Channel& channel, const Operation& op, const Run& run) {
  const size_t size = channel.block_bytes();
  const Bytes out = op.out[0];
  return run(
      parts(out.size(), size), op.note.root,
      [=, in = op.in](const Step& step, size_t i) {
        for (size_t rank = 0; rank < in.size(); ++rank) {
          copy(step.mine(rank), part(in[rank], i, size));
        }
      },
      [=, root = op.note.root, me = channel.rank()](const Step& step, size_t i,
          size_t&) { copy(part(out, i, size), step.of(root, me)); });
}
// [/scatter]

// [all-reduce]
// Of reduce, too, where only the root has an output.
template <class Run>
auto all_reduce_by_all(Channel& channel, const Operation& op, const Run& run) {
  const size_t size = channel.slot_bytes();
  const Bytes in = op.in[0];
  return run(
      parts(in.size(), size), kEveryone,
      [=](const Step& step, size_t i) { copy(step.mine(), part(in, i, size)); },
      [=, &channel, &op](const Step& step, size_t i, size_t&) {
        if (op.out.empty()) return;
        auto& sources = channel.sources();
        for (int rank = 0; rank < channel.size(); ++rank)
          sources.push_back(step.of(rank));
        // With two ranks, the input is faster to read than its copy in the slot. With
        // more, an addition may have changed it, if the output is in the same memory.
        if (channel.size() == 2) sources[channel.rank()] = part(in, i, size);
        op.reduce(part(op.out[0], i, size), sources); // of rank 0, rank 1, ...
      });
}
// [/all-reduce-by-all]

// [all-reduce-by-shares]
// A share of the work for each rank. In round i, a rank writes part i of its
// input, one block for each other rank; it reduces its own block of part i - 1
// into the block of its slot that is left over; and it reads what the others
// have reduced of part i - 2. Of two ranks, each leaves its result in the slot of the
// other, whose memory is in its cache after reading.
inline Steps all_reduce_by_shares(Channel& channel, const Operation& op) {
  const Bytes input = op.in[0], output = first_of(op.out);
  const int me = channel.rank();
  const auto& others = channel.others();
  const bool in_place = channel.size() == 2;
  const size_t share = input.size() / channel.size() / kCacheLine * kCacheLine;
  const size_t block =
      std::min({channel.block_bytes(), share + kCacheLine, kMostBlock});
  const size_t size = block * channel.size();
  const size_t count = parts(input.size(), size);
  const uint64_t first = channel.begin();
  const auto block_of = [&](Bytes bytes, size_t i, int rank) {
    return part(part(bytes, i, size), rank, block);
  };
  for (size_t i = 0; i <= count + 1; ++i) {
    const Step step = channel.step(first + std::min(i, count));
    Reached free = step.free();
    if (i <= count) co_await free;
    if (i < count) {
      for (const int rank : others) copy(step.mine(rank), block_of(input, i, rank));
    }
    if (i > 0) {
      const Step before = channel.step(first + i - 1);
      Reached posted = before.posted();
      co_await posted;
      channel.all_posted(first + i - 1);
      if (i <= count) {
        const Bytes own = block_of(input, i - 1, me);
        const Bytes target = in_place ? before.of(others[0], me) : step.mine(me);
        const Bytes reduced = target.first(own.size());
        auto& sources = channel.sources();
        sources.push_back(own);
        for (const int rank : others) sources.push_back(before.of(rank, me));
        op.reduce(reduced, sources);
        copy(block_of(output, i - 1, me), reduced);
      }
      if (i > 1) {
        const Step written = channel.step(first + i - 2);
        for (const int rank : others) {
          copy(block_of(output, i - 2, rank),
              in_place ? written.of(me, rank) : before.of(rank, rank));
        }
      }
      before.done();
    }
    if (i <= count) step.post(op.note);
  }
  channel.end(count + 1);
}
// [/all-reduce-by-shares]

inline bool goes_by_shares(const Channel& channel, const Operation& op) {
  const bool reduces = op.note.kind == Kind::all_reduce || op.note.kind == Kind::reduce;
  const size_t small = channel.size() == 2 ? kSmallForTwo : kSmall;
  const bool is_small = op.note.bytes <= std::min(small, channel.slot_bytes());
  return reduces && !is_small && channel.size() > 1;
}

inline size_t largest(frame::Pieces pieces) {
  return std::ranges::max(pieces, {}, &Bytes::size).size();
}

template <class Run>
auto reduce_scatter(Channel& channel, const Operation& op, const Run& run) {
  const size_t size = channel.block_bytes();
  return run(
      parts(largest(op.in), size), kEveryone,
      [=, &channel, in = op.in](const Step& step, size_t i) {
        for (const int rank : channel.others()) {
          copy(step.mine(rank), part(in[rank], i, size));
        }
      },
      [=, &channel, &op](const Step& step, size_t i, size_t&) {
        const int me = channel.rank();
        auto& sources = channel.sources();
        sources.push_back(part(op.in[me], i, size));
        for (const int rank : channel.others()) sources.push_back(step.of(rank, me));
        op.reduce(part(op.out[0], i, size), sources);
      });
}

// Precedes the data of each block: the size of the whole piece that its rank sends to
// the other one, of the one that it expects from there, and the parts of all pieces.
struct alignas(16) PieceSizes {
  size_t sent, expected, parts;
  static PieceSizes& in(Bytes block) {
    return *reinterpret_cast<PieceSizes*>(block.data());
  }
};

// Every rank compares the same sizes, and so finds the same difference. Returns
// the largest of them.
inline size_t compare_sizes(const Step& step, const Channel& channel) {
  size_t largest = 0;
  for (int from = 0; from < channel.size(); ++from) {
    for (int to = 0; to < channel.size(); ++to) {
      const size_t sent = PieceSizes::in(step.of(from, to)).sent;
      const size_t expected = PieceSizes::in(step.of(to, from)).expected;
      largest = std::max(largest, sent);
      if (sent == expected) continue;
      const auto& names = channel.names();
      throw std::runtime_error("the ranks do not agree: in all_to_all, " +
          names.who(from) + " sends " + std::to_string(sent) + " bytes to " +
          names.who(to) + ", which expects " + std::to_string(expected));
    }
  }
  return largest;
}

template <class Run>
auto all_to_all(Channel& channel, const Operation& op, const Run& run) {
  const size_t size = channel.block_bytes() - sizeof(PieceSizes);
  return run(
      parts(largest(op.in), size), kEveryone,
      [=, &channel, &op](const Step& step, size_t i) {
        for (int rank = 0; rank < channel.size(); ++rank) {
          const Bytes block = step.mine(rank);
          PieceSizes::in(block) = {op.in[rank].size(), op.out[rank].size(), 0};
          if (rank == channel.rank()) continue;
          copy(block.subspan(sizeof(PieceSizes)), part(op.in[rank], i, size));
        }
      },
      [=, &channel, &op](const Step& step, size_t i, size_t& count) {
        const int me = channel.rank();
        if (i == 0) count = parts(compare_sizes(step, channel), size);
        for (int rank = 0; rank < channel.size(); ++rank) {
          const Bytes block = step.of(rank, me).subspan(sizeof(PieceSizes));
          copy(part(op.out[rank], i, size),
              rank == me ? part(op.in[me], i, size) : block);
        }
      });
}

template <class Run>
auto any_of(Channel& channel, const Operation& op, const Run& run) {
  switch (op.note.kind) {
    case Kind::broadcast:
      return broadcast(channel, op, run);
    case Kind::all_reduce:
    case Kind::reduce:
      return all_reduce_by_all(channel, op, run);
    case Kind::all_gather:
    case Kind::gather:
      return gather(channel, op, run);
    case Kind::scatter:
      return scatter(channel, op, run);
    case Kind::reduce_scatter:
      return reduce_scatter(channel, op, run);
    case Kind::all_to_all:
      return all_to_all(channel, op, run);
    default:
      return barrier(run);
  }
}

inline Steps collective(Channel& channel, const Operation& op) {
  if (goes_by_shares(channel, op)) return all_reduce_by_shares(channel, op);
  return any_of(channel, op, [&](size_t parts, int from, auto write, auto read) {
    return pipeline(channel, op.note, parts, from, write, read);
  });
}

inline bool at_once(Channel& channel, const Operation& op) {
  if (op.note.bytes > kAtOnce || goes_by_shares(channel, op)) return false;
  return any_of(
      channel, op, [&](size_t parts, int, const auto& write, const auto& read) {
        return parts == 1 && channel.at_once(op.note, write, read);
      });
}

// Shows pieces of any size, one for all ranks or one for each.
inline Steps exchange(Channel& channel, const Note& note, frame::Pieces shown, int from,
    frame::Blobs& received) {
  const size_t size = channel.block_bytes() - sizeof(PieceSizes);
  const int ranks = channel.size();
  const auto piece_for = [=](int rank) {
    return shown.empty() ? Bytes() : shown[shown.size() == 1 ? 0 : rank];
  };
  const size_t count = shown.empty() ? 1 : parts(largest(shown), size);
  return pipeline(
      channel, note, count, kEveryone,
      [=](const Step& step, size_t i) {
        for (int rank = 0; rank < ranks; ++rank) {
          PieceSizes::in(step.mine(rank)) = {piece_for(rank).size(), 0, count};
          copy(step.mine(rank).subspan(sizeof(PieceSizes)),
              part(piece_for(rank), i, size));
        }
      },
      [=, me = channel.rank(), &received](const Step& step, size_t i, size_t& count) {
        for (int rank = 0; rank < ranks; ++rank) {
          const Bytes block = step.of(rank, me);
          count = std::max(count, PieceSizes::in(block).parts);
          if (from != kEveryone && from != rank) continue;
          received[rank].resize(PieceSizes::in(block).sent);
          copy(part(received[rank], i, size), block.subspan(sizeof(PieceSizes)));
        }
      });
}

} // namespace shm_collectives::steps

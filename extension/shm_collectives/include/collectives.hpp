#pragma once

#include "channel.hpp"
#include "reductions.hpp"
#include "sparse.hpp"

// The collectives, as the steps that they take on the slots of all ranks. Where
// only some ranks have an input or an output, the others pass nothing.
namespace shm_collectives::steps {

constexpr int kEveryone = -1;

// Up to this size, every rank reads everything: one step. From there on, each
// rank reduces a share: more steps, but less to read. With two ranks, a share of
// the reading is half of the writing, and not worth a step.
constexpr size_t kSmall = 16 << 10;

// [pipeline]
// The steps of most collectives: each rank writes one part ahead of the part
// that it reads, from everyone or from one rank. All wait for all in the first
// step, to compare their notes. Reading may show that there are more parts.
template <class Write, class Read>
Steps pipeline(
    Channel& channel, Note note, size_t parts, int from, Write write, Read read) {
  const uint64_t first = channel.begin(note);
  for (size_t written = 0, done = 0; done < parts; ++done) {
    for (; written < std::min(parts, done + 2); ++written) {
      const Step step = channel.step(first + written);
      co_await step.free();
      write(step, written);
      step.post();
    }
    const Step step = channel.step(first + done);
    if (done == 0 || from == kEveryone) co_await step.posted();
    if (from != kEveryone) co_await step.posted_by(from);
    read(step, done, parts);
    step.done();
  }
}
// [/pipeline]

inline Steps barrier(Channel& channel, Note note) {
  const auto nothing = [](const Step&, size_t, auto...) {};
  return pipeline(channel, note, 1, kEveryone, nothing, nothing);
}

inline Steps broadcast(Channel& channel, Note note, Bytes data) {
  const bool root = channel.rank() == note.root;
  const size_t size = channel.slot_bytes();
  return pipeline(
      channel, note, parts(data.size(), size), note.root,
      [=](const Step& step, size_t i) {
        if (root) copy(step.mine(), part(data, i, size));
      },
      [=](const Step& step, size_t i, size_t&) {
        if (!root) copy(part(data, i, size), step.of(note.root));
      });
}

// [all-gather]
// To each rank that has outputs: a gather to one, an all-gather to all.
inline Steps gather(Channel& channel, Note note, Bytes input, Pieces outputs) {
  const size_t size = channel.slot_bytes();
  const int from = outputs.empty() ? channel.rank() : kEveryone;
  return pipeline(
      channel, note, parts(input.size(), size), from,
      [=](const Step& step, size_t i) { copy(step.mine(), part(input, i, size)); },
      [=](const Step& step, size_t i, size_t&) {
        for (size_t rank = 0; rank < outputs.size(); ++rank) {
          copy(part(outputs[rank], i, size), step.of(rank));
        }
      });
}
// [/all-gather]

// [scatter]
inline Steps scatter(Channel& channel, Note note, Pieces inputs, Bytes output) {
  const int me = channel.rank();
  const size_t size = channel.block_bytes();
  return pipeline(
      channel, note, parts(output.size(), size), note.root,
      [=](const Step& step, size_t i) {
        for (size_t rank = 0; rank < inputs.size(); ++rank) {
          copy(step.mine(rank), part(inputs[rank], i, size));
        }
      },
      [=](const Step& step, size_t i, size_t&) {
        copy(part(output, i, size), step.of(note.root, me));
      });
}
// [/scatter]

// [all-reduce]
inline Steps all_reduce_by_all(
    Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output) {
  const size_t size = channel.slot_bytes();
  return pipeline(
      channel, note, parts(input.size(), size), kEveryone,
      [=](const Step& step, size_t i) { copy(step.mine(), part(input, i, size)); },
      [=, me = channel.rank(), ranks = channel.size()](
          const Step& step, size_t i, size_t&) {
        const Bytes target = part(output, i, size);
        Pieces sources;
        for (int rank = 0; rank < ranks; ++rank) sources.push_back(step.of(rank));
        // With two ranks, the input is faster to read than its copy in the slot. With
        // more, input and output may be one memory, which the first sum has changed.
        if (ranks == 2) sources[me] = part(input, i, size);
        reduce(target, sources); // of rank 0, rank 1, ... on every rank
      });
}

// [/all-reduce-by-all]

// [all-reduce-by-shares]
// A share of the work for each rank. In round i, a rank writes part i of its
// input, one block for each other rank; it reduces its own block of part i - 1
// into the block of its slot that is left over; and it reads what the others
// have reduced of part i - 2.
inline Steps all_reduce_by_shares(
    Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output) {
  const int me = channel.rank();
  const auto others = channel.others();
  const size_t block = channel.block_bytes(), size = block * channel.size();
  const size_t count = parts(input.size(), size);
  const uint64_t first = channel.begin(note);
  const auto block_of = [&](Bytes bytes, size_t i, int rank) {
    return part(part(bytes, i, size), rank, block);
  };
  for (size_t i = 0; i <= count + 1; ++i) {
    const Step step = channel.step(first + std::min(i, count));
    if (i <= count) co_await step.free();
    if (i < count) {
      for (const int rank : others) copy(step.mine(rank), block_of(input, i, rank));
    }
    if (i > 0) {
      const Step before = channel.step(first + i - 1);
      co_await before.posted();
      if (i <= count) {
        const Bytes own = block_of(input, i - 1, me);
        const Bytes reduced = step.mine(me).first(own.size());
        Pieces sources{own};
        for (const int rank : others) sources.push_back(before.of(rank, me));
        reduce(reduced, sources);
        copy(block_of(output, i - 1, me), reduced);
      }
      if (i > 1) {
        for (const int rank : others) {
          copy(block_of(output, i - 2, rank), before.of(rank, rank));
        }
      }
      before.done();
    }
    if (i <= count) step.post();
  }
}

inline Steps all_reduce(
    Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output) {
  const bool small = input.size() <= std::min(kSmall, channel.slot_bytes());
  const auto way =
      small || channel.size() <= 2 ? all_reduce_by_all : all_reduce_by_shares;
  return way(channel, note, reduce, input, output);
}
// [/all-reduce-by-shares]

inline size_t largest(const Pieces& pieces) {
  return std::ranges::max(pieces, {}, &Bytes::size).size();
}

inline Steps reduce_scatter(
    Channel& channel, Note note, Reduction reduce, Pieces inputs, Bytes output) {
  const int me = channel.rank();
  const auto others = channel.others();
  const size_t size = channel.block_bytes();
  return pipeline(
      channel, note, parts(largest(inputs), size), kEveryone,
      [=](const Step& step, size_t i) {
        for (const int rank : others) {
          copy(step.mine(rank), part(inputs[rank], i, size));
        }
      },
      [=](const Step& step, size_t i, size_t&) {
        Pieces sources{part(inputs[me], i, size)};
        for (const int rank : others) sources.push_back(step.of(rank, me));
        reduce(part(output, i, size), sources);
      });
}

// Precedes the data of each block: the size of the whole piece that its rank
// sends to the other one, and of the one that it expects from there.
struct alignas(kCacheLine) PieceSizes {
  size_t sent, expected;
  static PieceSizes& in(Bytes block) {
    return *reinterpret_cast<PieceSizes*>(block.data());
  }
};

// Every rank compares the same sizes, and so finds the same difference. Returns
// the largest of them.
inline size_t compare_sizes(const Step& step, int ranks) {
  size_t largest = 0;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const size_t sent = PieceSizes::in(step.of(from, to)).sent;
      const size_t expected = PieceSizes::in(step.of(to, from)).expected;
      largest = std::max(largest, sent);
      if (sent != expected) {
        throw std::runtime_error("the ranks do not agree: in all_to_all, " +
            step.who(from) + " sends " + std::to_string(sent) + " bytes to " +
            step.who(to) + ", which expects " + std::to_string(expected));
      }
    }
  }
  return largest;
}

inline Steps all_to_all(Channel& channel, Note note, Pieces inputs, Pieces outputs) {
  const int me = channel.rank(), ranks = channel.size();
  const size_t size = channel.block_bytes() - sizeof(PieceSizes);
  return pipeline(
      channel, note, parts(largest(inputs), size), kEveryone,
      [=](const Step& step, size_t i) {
        for (int rank = 0; rank < ranks; ++rank) {
          const Bytes block = step.mine(rank);
          PieceSizes::in(block) = {inputs[rank].size(), outputs[rank].size()};
          if (rank != me) {
            copy(block.subspan(sizeof(PieceSizes)), part(inputs[rank], i, size));
          }
        }
      },
      [=](const Step& step, size_t i, size_t& count) {
        if (i == 0) count = parts(compare_sizes(step, ranks), size);
        for (int rank = 0; rank < ranks; ++rank) {
          copy(part(outputs[rank], i, size),
              rank == me ? part(inputs[me], i, size)
                         : step.of(rank, me).subspan(sizeof(PieceSizes)));
        }
      });
}

// Every rank gets the sparse tensors of all ranks, which may have different sizes.
inline Steps gather_packed(
    Channel& channel, Note note, Bytes input, std::shared_ptr<PackedTensors> outputs) {
  const size_t size = channel.slot_bytes() - sizeof(PieceSizes);
  return pipeline(
      channel, note, parts(input.size(), size), kEveryone,
      [=](const Step& step, size_t i) {
        PieceSizes::in(step.mine()).sent = input.size();
        copy(step.mine().subspan(sizeof(PieceSizes)), part(input, i, size));
      },
      [=](const Step& step, size_t i, size_t& count) {
        for (size_t rank = 0; rank < outputs->size(); ++rank) {
          auto& output = (*outputs)[rank];
          if (i == 0) output.resize(PieceSizes::in(step.of(rank)).sent);
          count = std::max(count, parts(output.size(), size));
          copy(part(output, i, size), step.of(rank).subspan(sizeof(PieceSizes)));
        }
      });
}

} // namespace shm_collectives::steps

#include "collectives.hpp"

#include <cstring>
#include <stdexcept>

namespace shm_collectives::steps {

namespace {

constexpr int kEveryone = -1;

// Up to this size, every rank reads everything: one step. From there on, each rank reduces a
// share: more steps, but less to read.
constexpr size_t kSmall = 16 << 10;

// Fills `to`, or copies all there is.
void copy(Bytes to, Bytes from) {
  const size_t size = std::min(to.size(), from.size());
  if (to.data() != from.data() && size > 0) std::memmove(to.data(), from.data(), size);
}

// [pipeline]
// The steps of most collectives: each rank writes one part ahead of the part that it reads, from
// everyone or from one rank. All wait for all in the first step, to see that they agree.
template <class Write, class Read>
Steps pipeline(Channel& channel, Note note, size_t parts, int from, Write write, Read read) {
  const Run run(channel, note, parts);
  for (size_t i = 0; i <= parts; ++i) {
    if (i < parts) {
      co_await run[i].free();
      write(run[i], i);
      run[i].post();
    }
    if (i > 0) {
      const Step step = run[i - 1];
      if (i == 1 || from == kEveryone) co_await step.posted();
      if (from != kEveryone) co_await step.posted_by(from);
      read(step, i - 1);
      step.done();
    }
  }
}
// [/pipeline]

} // namespace

Steps barrier(Channel& channel, Note note) {
  const auto nothing = [](const Step&, size_t) {};
  return pipeline(channel, note, 1, kEveryone, nothing, nothing);
}

// [broadcast]
Steps broadcast(Channel& channel, Note note, Bytes data) {
  const bool root = channel.rank() == note.root;
  const size_t size = channel.slot_bytes();
  return pipeline(channel, note, parts(data.size(), size), note.root,
      [=](const Step& step, size_t i) {
        if (root) copy(step.mine(), part(data, i, size));
      },
      [=](const Step& step, size_t i) {
        if (!root) copy(part(data, i, size), step.of(note.root));
      });
}
// [/broadcast]

// [all-gather]
Steps all_gather(Channel& channel, Note note, Bytes input, Pieces outputs) {
  const size_t size = channel.slot_bytes();
  return pipeline(channel, note, parts(input.size(), size), kEveryone,
      [=](const Step& step, size_t i) { copy(step.mine(), part(input, i, size)); },
      [=, ranks = channel.size()](const Step& step, size_t i) {
        for (int rank = 0; rank < ranks; ++rank) copy(part(outputs[rank], i, size), step.of(rank));
      });
}
// [/all-gather]

// [gather-scatter]
Steps gather(Channel& channel, Note note, Bytes input, Pieces outputs) {
  const bool root = channel.rank() == note.root;
  const size_t size = channel.slot_bytes();
  return pipeline(channel, note, parts(input.size(), size), root ? kEveryone : channel.rank(),
      [=](const Step& step, size_t i) { copy(step.mine(), part(input, i, size)); },
      [=, ranks = root ? channel.size() : 0](const Step& step, size_t i) {
        for (int rank = 0; rank < ranks; ++rank) copy(part(outputs[rank], i, size), step.of(rank));
      });
}

Steps scatter(Channel& channel, Note note, Pieces inputs, Bytes output) {
  const int me = channel.rank();
  const size_t size = channel.block_bytes();
  return pipeline(channel, note, parts(output.size(), size), note.root,
      [=, ranks = me == note.root ? channel.size() : 0](const Step& step, size_t i) {
        for (int rank = 0; rank < ranks; ++rank) copy(step.mine(rank), part(inputs[rank], i, size));
      },
      [=](const Step& step, size_t i) { copy(part(output, i, size), step.of(note.root, me)); });
}
// [/gather-scatter]

// [all-reduce]
static Steps all_reduce_at_once(
    Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output) {
  return pipeline(channel, note, 1, kEveryone,
      [=](const Step& step, size_t) { copy(step.mine(), input); },
      [=, ranks = channel.size()](const Step& step, size_t) {
        Pieces sources;
        for (int rank = 0; rank < ranks; ++rank) sources.push_back(step.of(rank));
        reduce(output, sources); // of rank 0, rank 1, ... on every rank
      });
}

// A share of the work for each rank. In step i, a rank writes part i of its input, one block for
// each other rank; it reduces its own block of part i - 1 into the block of its slot that is left
// over; and it reads what the others have reduced of part i - 2.
static Steps all_reduce_shared(
    Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output) {
  const int me = channel.rank();
  const auto others = channel.others();
  const size_t block = channel.block_bytes(), size = block * channel.size();
  const size_t count = parts(input.size(), size);
  const Run run(channel, note, count + 1);
  const auto block_of = [&](Bytes bytes, size_t i, int rank) {
    return part(part(bytes, i, size), rank, block);
  };
  Pieces sources(channel.size());
  for (size_t i = 0; i <= count + 1; ++i) {
    if (i <= count) co_await run[i].free();
    if (i < count) {
      for (const int rank : others) copy(run[i].mine(rank), block_of(input, i, rank));
    }
    if (i > 0) {
      const Step before = run[i - 1];
      co_await before.posted();
      if (i <= count) {
        const Bytes own = block_of(input, i - 1, me);
        const Bytes reduced = run[i].mine(me).first(own.size());
        for (const int rank : others) sources[rank] = before.of(rank, me);
        sources[me] = own;
        reduce(reduced, sources);
        copy(block_of(output, i - 1, me), reduced);
      }
      if (i > 1) {
        for (const int rank : others) copy(block_of(output, i - 2, rank), before.of(rank, rank));
      }
      before.done();
    }
    if (i <= count) run[i].post();
  }
}

Steps all_reduce(Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output) {
  const bool small = input.size() <= std::min(kSmall, channel.slot_bytes());
  return (small ? all_reduce_at_once : all_reduce_shared)(channel, note, reduce, input, output);
}
// [/all-reduce]

// [reduce-scatter]
Steps reduce_scatter(
    Channel& channel, Note note, Reduction reduce, Pieces inputs, Bytes output) {
  const int me = channel.rank();
  const auto others = channel.others();
  const size_t size = channel.block_bytes();
  return pipeline(channel, note, parts(output.size(), size), kEveryone,
      [=](const Step& step, size_t i) {
        for (const int rank : others) copy(step.mine(rank), part(inputs[rank], i, size));
      },
      [=](const Step& step, size_t i) {
        Pieces sources(others.size() + 1);
        for (const int rank : others) sources[rank] = step.of(rank, me);
        sources[me] = part(inputs[me], i, size);
        reduce(part(output, i, size), sources);
      });
}
// [/reduce-scatter]

// [all-to-all]
// The largest of all pieces, if the ranks agree how large each piece is. `step` has what every
// rank sends to each rank, and then what it expects from each.
static uint64_t largest_piece(const Step& step, int ranks) {
  const auto size = [&](int rank, int index) {
    return reinterpret_cast<const uint64_t*>(step.of(rank).data())[index];
  };
  uint64_t largest = 0;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const uint64_t sent = size(from, to), expected = size(to, ranks + from);
      if (sent != expected) {
        throw std::runtime_error("the ranks do not agree: in all_to_all, rank " +
            std::to_string(from) + " sends " + std::to_string(sent) + " bytes to rank " +
            std::to_string(to) + ", which expects " + std::to_string(expected));
      }
      largest = std::max(largest, sent);
    }
  }
  return largest;
}

Steps all_to_all(Channel& channel, Note note, Pieces inputs, Pieces outputs) {
  const int me = channel.rank(), ranks = channel.size();
  const size_t size = channel.block_bytes();

  const Run first(channel, note, 1); // the sizes of all pieces
  co_await first[0].free();
  auto* sizes = reinterpret_cast<uint64_t*>(first[0].mine().data());
  for (const Bytes piece : inputs) *sizes++ = piece.size();
  for (const Bytes piece : outputs) *sizes++ = piece.size();
  first[0].post();
  co_await first[0].posted();
  const uint64_t largest = largest_piece(first[0], ranks);
  first[0].done();

  const Run run(channel, note, parts(largest, size)); // their data, one part ahead
  for (size_t i = 0; i <= run.size(); ++i) {
    if (i < run.size()) {
      co_await run[i].free();
      for (int rank = 0; rank < ranks; ++rank) {
        copy(run[i].mine(rank), part(inputs[rank], i, size));
      }
      run[i].post();
    }
    if (i > 0) {
      const Step step = run[i - 1];
      co_await step.posted();
      for (int rank = 0; rank < ranks; ++rank) {
        copy(part(outputs[rank], i - 1, size), step.of(rank, me));
      }
      step.done();
    }
  }
}
// [/all-to-all]

} // namespace shm_collectives::steps

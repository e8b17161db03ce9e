#include "collectives.hpp"

#include <cstring>
#include <stdexcept>

namespace shm_collectives::steps {

namespace {

// Up to this size, every rank reads everything: one step. From there on, each
// rank reduces a share: more steps, less to read.
constexpr size_t kSmall = 16 << 10;

void copy(Bytes to, Bytes from) {
  if (to.data() != from.data() && !from.empty()) {
    std::memmove(to.data(), from.data(), from.size());
  }
}

} // namespace

// [barrier]
Steps barrier(Channel& channel, Note note) {
  const Run run(channel, note, 1);
  co_await run[0].free();
  run[0].post();
  co_await run[0].posted();
  run[0].done();
}
// [/barrier]

// [broadcast]
Steps broadcast(Channel& channel, Note note, Bytes data) {
  const bool root = channel.rank() == note.root;
  const size_t size = channel.slot_bytes();
  const Run run(channel, note, parts(data.size(), size));
  for (size_t i = 0; i < run.size(); ++i) {
    const Step step = run[i];
    co_await step.free();
    if (root) {
      copy(step.mine(), part(data, i, size));
    }
    step.post();
    if (i == 0) {
      co_await step.posted(); // all ranks run the same broadcast
    }
    if (!root) {
      co_await step.posted_by(note.root);
      const Bytes target = part(data, i, size);
      copy(target, step.of(note.root).first(target.size()));
    }
    step.done();
  }
}
// [/broadcast]

// [all-gather]
Steps all_gather(Channel& channel, Note note, Bytes input, Pieces outputs) {
  const size_t size = channel.slot_bytes();
  const Run run(channel, note, parts(input.size(), size));
  copy(outputs[channel.rank()], input);
  for (size_t i = 0; i <= run.size(); ++i) {
    if (i < run.size()) { // write one part ahead of the part that is read
      co_await run[i].free();
      copy(run[i].mine(), part(input, i, size));
      run[i].post();
    }
    if (i > 0) {
      const Step step = run[i - 1];
      co_await step.posted();
      for (int rank = 0; rank < channel.size(); ++rank) {
        if (rank != channel.rank()) {
          const Bytes target = part(outputs[rank], i - 1, size);
          copy(target, step.of(rank).first(target.size()));
        }
      }
      step.done();
    }
  }
}
// [/all-gather]

// [gather]
Steps gather(Channel& channel, Note note, Bytes input, Pieces outputs) {
  const bool root = channel.rank() == note.root;
  const size_t size = channel.slot_bytes();
  const Run run(channel, note, parts(input.size(), size));
  if (root) {
    copy(outputs[note.root], input);
  }
  for (size_t i = 0; i < run.size(); ++i) {
    const Step step = run[i];
    co_await step.free();
    if (!root) {
      copy(step.mine(), part(input, i, size));
    }
    step.post();
    if (i == 0 || root) {
      co_await step.posted();
    }
    for (int rank = 0; root && rank < channel.size(); ++rank) {
      if (rank != note.root) {
        const Bytes target = part(outputs[rank], i, size);
        copy(target, step.of(rank).first(target.size()));
      }
    }
    step.done();
  }
}
// [/gather]

// [scatter]
Steps scatter(Channel& channel, Note note, Pieces inputs, Bytes output) {
  const bool root = channel.rank() == note.root;
  const size_t size = channel.block_bytes();
  const Run run(channel, note, parts(output.size(), size));
  if (root) {
    copy(output, inputs[note.root]);
  }
  for (size_t i = 0; i < run.size(); ++i) {
    const Step step = run[i];
    co_await step.free();
    for (int rank = 0; root && rank < channel.size(); ++rank) {
      if (rank != note.root) {
        copy(step.mine(rank), part(inputs[rank], i, size));
      }
    }
    step.post();
    if (i == 0) {
      co_await step.posted();
    }
    if (!root) {
      co_await step.posted_by(note.root);
      const Bytes target = part(output, i, size);
      copy(target, step.of(note.root, channel.rank()).first(target.size()));
    }
    step.done();
  }
}
// [/scatter]

// [all-reduce]
static Steps all_reduce_at_once(
    Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output) {
  const Run run(channel, note, 1);
  co_await run[0].free();
  copy(run[0].mine(), input);
  run[0].post();
  co_await run[0].posted();
  Pieces sources;
  for (int rank = 0; rank < channel.size(); ++rank) {
    sources.push_back(run[0].of(rank));
  }
  reduce(output, sources); // of rank 0, rank 1, ... on every rank
  run[0].done();
}

// A share of the work for each rank. In step i, a rank writes part i of its
// input, one block for each other rank; it reduces its own block of part i - 1
// into the block of its slot that is left over; and it reads what the others
// have reduced of part i - 2.
static Steps all_reduce_shared(
    Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output) {
  const int me = channel.rank(), ranks = channel.size();
  const size_t block = channel.block_bytes(), size = block * ranks;
  const size_t count = parts(input.size(), size);
  const Run run(channel, note, count + 1);
  const auto block_of = [&](Bytes bytes, size_t i, int rank) {
    return part(part(bytes, i, size), rank, block);
  };
  Pieces sources(ranks);
  for (size_t i = 0; i <= count + 1; ++i) {
    if (i <= count) {
      co_await run[i].free();
    }
    for (int rank = 0; i < count && rank < ranks; ++rank) {
      if (rank != me) {
        copy(run[i].mine(rank), block_of(input, i, rank));
      }
    }
    if (i > 0) {
      const Step before = run[i - 1];
      co_await before.posted();
      if (i <= count) {
        const Bytes own = block_of(input, i - 1, me);
        const Bytes reduced = run[i].mine(me).first(own.size());
        for (int rank = 0; rank < ranks; ++rank) {
          sources[rank] = rank == me ? own : before.of(rank, me);
        }
        reduce(reduced, sources);
        if (!output.empty()) {
          copy(block_of(output, i - 1, me), reduced);
        }
      }
      for (int rank = 0; i > 1 && !output.empty() && rank < ranks; ++rank) {
        if (rank != me) {
          const Bytes target = block_of(output, i - 2, rank);
          copy(target, before.of(rank, rank).first(target.size()));
        }
      }
      before.done();
    }
    if (i <= count) {
      run[i].post();
    }
  }
}

Steps all_reduce(
    Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output) {
  if (input.size() > std::min(kSmall, channel.slot_bytes())) {
    return all_reduce_shared(channel, note, reduce, input, output);
  }
  return all_reduce_at_once(channel, note, reduce, input, output);
}
// [/all-reduce]

// [reduce-scatter]
Steps reduce_scatter(
    Channel& channel, Note note, Reduction reduce, Pieces inputs, Bytes output) {
  const int me = channel.rank(), ranks = channel.size();
  const size_t size = channel.block_bytes();
  const Run run(channel, note, parts(output.size(), size));
  Pieces sources(ranks);
  for (size_t i = 0; i <= run.size(); ++i) {
    if (i < run.size()) {
      co_await run[i].free();
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank != me) {
          copy(run[i].mine(rank), part(inputs[rank], i, size));
        }
      }
      run[i].post();
    }
    if (i > 0) {
      const Step before = run[i - 1];
      co_await before.posted();
      for (int rank = 0; rank < ranks; ++rank) {
        sources[rank] =
            rank == me ? part(inputs[me], i - 1, size) : before.of(rank, me);
      }
      reduce(part(output, i - 1, size), sources);
      before.done();
    }
  }
}
// [/reduce-scatter]

// [all-to-all]
// The sizes of what every rank sends to and expects from every other rank.
static std::vector<uint64_t> sizes_of(const Pieces& in, const Pieces& out) {
  std::vector<uint64_t> sizes;
  for (const auto* pieces : {&in, &out}) {
    for (const Bytes piece : *pieces) {
      sizes.push_back(piece.size());
    }
  }
  return sizes;
}

// The size of the largest piece, if all ranks agree about all pieces.
static uint64_t largest_piece(const Step& step, int ranks) {
  const auto size = [&](int rank, int index) {
    return reinterpret_cast<const uint64_t*>(step.of(rank).data())[index];
  };
  uint64_t largest = 0;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const uint64_t sent = size(from, to), expected = size(to, ranks + from);
      if (sent != expected) {
        throw std::runtime_error(
            "the ranks do not agree: in all_to_all, rank " +
            std::to_string(from) + " sends " + std::to_string(sent) +
            " bytes to rank " + std::to_string(to) + ", which expects " +
            std::to_string(expected));
      }
      largest = std::max(largest, sent);
    }
  }
  return largest;
}

Steps all_to_all(Channel& channel, Note note, Pieces inputs, Pieces outputs) {
  const int me = channel.rank(), ranks = channel.size();
  const size_t size = channel.block_bytes();

  const Run first(channel, note, 1); // the sizes
  const auto sizes = sizes_of(inputs, outputs);
  co_await first[0].free();
  std::memcpy(first[0].mine().data(), sizes.data(), sizes.size() * 8);
  first[0].post();
  co_await first[0].posted();
  const uint64_t largest = largest_piece(first[0], ranks);
  first[0].done();

  const Run run(channel, note, parts(largest, size)); // the data
  copy(outputs[me], inputs[me]);
  for (size_t i = 0; i <= run.size(); ++i) {
    if (i < run.size()) {
      co_await run[i].free();
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank != me) {
          copy(run[i].mine(rank), part(inputs[rank], i, size));
        }
      }
      run[i].post();
    }
    if (i > 0) {
      const Step before = run[i - 1];
      co_await before.posted();
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank != me) {
          const Bytes target = part(outputs[rank], i - 1, size);
          copy(target, before.of(rank, me).first(target.size()));
        }
      }
      before.done();
    }
  }
}
// [/all-to-all]

} // namespace shm_collectives::steps

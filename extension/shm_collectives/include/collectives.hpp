#pragma once

#include <vector>

#include "channel.hpp"
#include "reductions.hpp"

namespace shm_collectives {

// One piece of memory for each rank.
using Pieces = std::vector<Bytes>;

namespace steps {

// [collectives]
// The collectives, as the steps that they take on the slots of all ranks. Where
// only some ranks have an input or an output, the others pass nothing.
Steps barrier(Channel& channel, Note note);
Steps broadcast(Channel& channel, Note note, Bytes data);
// Writes the reduction of all inputs to `output` on each rank that has one.
Steps all_reduce(Channel& channel, Note note, Reduction reduce, Bytes input, Bytes output);
Steps all_gather(Channel& channel, Note note, Bytes input, Pieces outputs);
Steps gather(Channel& channel, Note note, Bytes input, Pieces outputs);
Steps scatter(Channel& channel, Note note, Pieces inputs, Bytes output);
Steps reduce_scatter(Channel& channel, Note note, Reduction reduce, Pieces inputs, Bytes output);
// The pieces may have different sizes.
Steps all_to_all(Channel& channel, Note note, Pieces inputs, Pieces outputs);
// [/collectives]

} // namespace steps

} // namespace shm_collectives

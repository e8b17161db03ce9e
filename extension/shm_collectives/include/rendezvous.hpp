#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "memory.hpp"

namespace shm_collectives {

// [rendezvous]
// Where the ranks of a new group meet. Returns the memory that they share when
// all of them have mapped it; throws, on every rank that has come, if they do
// not all come in time or cannot share memory.
Memory meet(c10d::Store& store, int rank, const Layout& layout, milliseconds timeout,
    const std::string& group);
// [/rendezvous]

} // namespace shm_collectives

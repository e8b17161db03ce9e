#pragma once

#include "store/store_transport.hpp"

namespace acme_collectives {

// Moves bytes between the ranks of a group. What it does not override goes through the
// c10d store, so the backend is complete from the beginning. Override one method after
// another, and run the checks after each. What a method must do:
// https://SITE/right/smallest-backend.html
//
// If your library has messages between two ranks, and no collectives, begin with the project
// for messages instead: https://SITE/tutorial/next-steps.html
class AcmeTransport final : public store_collectives::StoreTransport {
 public:
  // Called in each rank when all ranks of the group are there. Connect them here: publish
  // an address with keys().publish, and read those of the others with place.await, which
  // throws at the deadline.
  explicit AcmeTransport(const frame::Place& place)
      : StoreTransport(place, /*can_block=*/true) {}

  // Runs a collective, which operation.note describes. Replace one kind after another,
  // and leave the others as they are.
  frame::Steps collective(const frame::Operation& operation) override {
    return StoreTransport::collective(operation);
  }
};

} // namespace acme_collectives

// Our sketch of a change that has been proposed for PyTorch, and not a file of PyTorch. The
// names of the macro, of capabilities() and of its type are those of the proposal.

// [sketch]
#define C10D_BACKEND_HAS_CAPABILITIES 1

#include <bitset>

namespace c10d {

enum BackendCapability : size_t {
  SPLITTING,
  COALESCING,
  TIME_ESTIMATION,
  SHRINKING,
  RECONFIGURE,
  WINDOW,
  COUNT
};

using BackendCapabilities = std::bitset<BackendCapability::COUNT>;

class Backend {
 public:
  virtual BackendCapabilities capabilities() const { return {}; }

  // These remain for callers, and are no longer virtual.
  bool supportsSplitting() const { return capabilities()[SPLITTING]; }
  bool supportsCoalescing() const { return capabilities()[COALESCING]; }
  bool supportsTimeEstimation() const { return capabilities()[TIME_ESTIMATION]; }
  bool supportsShrinking() const { return capabilities()[SHRINKING]; }
  bool supportsReconfigure() const { return capabilities()[RECONFIGURE]; }
  bool supportsWindow() const { return capabilities()[WINDOW]; }
};

} // namespace c10d
// [/sketch]

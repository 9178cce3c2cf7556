// Another implementation of what mpcore computes, ready for one problem.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpbench {

/// One pointer for each item of a batch, in arrays on the device.
struct ItemPointers {
  const void *const *first = nullptr;
  const void *const *second = nullptr;
  void *const *out = nullptr;
};

/// What the epilogue of a GEMM reads and writes beside D; NULL = it has none of that.
struct EpilogueTensors {
  void *aux = nullptr;         ///< of D's shape and type
  const void *bias = nullptr;  ///< a row of D
  float *dbias = nullptr;      ///< a row of floats
  float *amax = nullptr;       ///< 1 float
  float *found_inf = nullptr;  ///< 1 float
};

/// Device matrices or tensors of one call, in the order of mpcore's arguments.
struct Operands {
  const void *first, *second;
  void *out;
  EpilogueTensors epilogue = {};
  ItemPointers items = {};
};

/// Bytes of memory beside the operands.
struct PeerWorkspace {
  int64_t limit;  ///< that it may use
  int64_t used;   ///< that its choice asks for; -1 = it does not say
};

class Peer {
 public:
  Peer() = default;
  Peer(const Peer &) = delete;
  Peer &operator=(const Peer &) = delete;
  virtual ~Peer() = default;

  /// Algorithms that it offers for the problem, the one that it would take itself first; 0 = that one
  /// alone, as the others could not be asked for.
  virtual size_t choices() const = 0;
  virtual PeerWorkspace workspace(size_t choice) const = 0;
  /// On the stream of the machine.
  virtual void enqueue(const Operands &tensors, size_t choice) const = 0;
};

}  // namespace mpbench

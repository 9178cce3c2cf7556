// Another implementation of what mpcore computes, ready for one problem.
#pragma once

#include <cstddef>

namespace mpbench {

/// Device matrices or tensors of one call, in the order of mpcore's arguments.
struct Operands {
  const void *first, *second;
  void *out;
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
  /// On the stream of the machine.
  virtual void enqueue(const Operands &tensors, size_t choice) const = 0;
};

}  // namespace mpbench

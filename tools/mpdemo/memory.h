// What a training holds in device memory, by kind.  Every owner of memory adds its own.  Not in it are the
// dataset, the record of losses and scales, and what the library keeps for itself: 4 KiB for the perceptron.
#pragma once

#include <array>
#include <cstdint>

namespace mpdemo {

/// In bytes.
struct Memory {
  int64_t weights = 0;  ///< what forward and backward read as parameters; in fp32 the masters
  int64_t masters = 0;  ///< beside those
  int64_t gradients = 0;
  int64_t optimizer_state = 0;
  int64_t activations = 0;  ///< all y, and what a layer keeps from forward to backward
  int64_t activation_gradients = 0;
  int64_t workspace = 0;

  int64_t together() const;
};

struct MemoryKind {
  const char *id;     ///< in JSON
  const char *title;  ///< in the table
  int64_t Memory::*bytes;
};

constexpr std::array kMemoryKinds = {
    MemoryKind{"weight_bytes", "weights", &Memory::weights},
    MemoryKind{"master_bytes", "FP32 masters beside them", &Memory::masters},
    MemoryKind{"gradient_bytes", "gradients of weights", &Memory::gradients},
    MemoryKind{"optimizer_bytes", "state of the optimizer", &Memory::optimizer_state},
    MemoryKind{"activation_bytes", "activations", &Memory::activations},
    MemoryKind{"activation_gradient_bytes", "gradients of these", &Memory::activation_gradients},
    MemoryKind{"workspace_bytes", "workspace", &Memory::workspace},
};

inline int64_t Memory::together() const {
  int64_t sum = 0;
  for (const MemoryKind &kind : kMemoryKinds) sum += this->*kind.bytes;
  return sum;
}

}  // namespace mpdemo

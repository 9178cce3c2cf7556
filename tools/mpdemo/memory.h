// Device memory of a training run, by kind.  Every owner of memory adds its part.  Excluded are the
// dataset, the record of losses and scales, and memory of the library: 7 KiB for the perceptron,
// and 24 KiB that the host reads.
#pragma once

#include <array>
#include <cstdint>

namespace mpdemo {

/// Sizes in bytes.
struct Memory {
  int64_t parameters = 0;  ///< fp32 parameters of the optimizer
  int64_t copies = 0;      ///< 16-bit copies for GEMMs in mixed precision
  int64_t gradients = 0;
  int64_t optimizer_state = 0;
  int64_t states = 0;       ///< batch normalization statistics, h and c between windows, constants
  int64_t activations = 0;  ///< activations and gradients, which share memory
  int64_t workspace = 0;

  int64_t together() const;
};

struct MemoryKind {
  const char *id;     ///< in JSON
  const char *title;  ///< in the table
  int64_t Memory::*bytes;
};

constexpr std::array kMemoryKinds = {
    MemoryKind{"parameter_bytes", "FP32 weights", &Memory::parameters},
    MemoryKind{"copy_bytes", "16-bit weight copies", &Memory::copies},
    MemoryKind{"gradient_bytes", "weight gradients", &Memory::gradients},
    MemoryKind{"optimizer_bytes", "optimizer state", &Memory::optimizer_state},
    MemoryKind{"state_bytes", "states", &Memory::states},
    MemoryKind{"activation_bytes", "activations, gradients", &Memory::activations},
    MemoryKind{"workspace_bytes", "workspace", &Memory::workspace},
};

inline int64_t Memory::together() const {
  int64_t sum = 0;
  for (const MemoryKind &kind : kMemoryKinds) sum += this->*kind.bytes;
  return sum;
}

}  // namespace mpdemo

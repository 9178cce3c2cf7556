// Dropout mask of a node: a function of seed and offset (mpcore/graph.h), so backward applies the
// mask of the forward pass without storing it.
#pragma once

#include "graph/executor/emitter.h"

namespace mp::graph {

/// Differences between the seeds of consecutive nodes.  mp_attention_* adds a multiple of the first
/// one to its seed.
constexpr uint64_t kDropoutSeedStep = 0x9E3779B97F4A7C15;
constexpr uint64_t kAttentionSeedStep = 0xBF58476D1CE4E5B9;

/// Arguments of a call with dropout.
struct MaskArgs {
  float p = 0.0f;
  uint64_t seed = 0;
  const uint64_t *offset = nullptr;
};

class DropoutMask {
 public:
  /// No dropout.
  DropoutMask() = default;
  /// @param node    its attributes p and seed are the last two
  /// @param offset  optional input of the node
  DropoutMask(Emitter &e, const Node &node, size_t offset, uint64_t seed_step) {
    const size_t last = node.attributes.size() - 1;
    given_.p = static_cast<float>(node.attributes[last - 1].real);
    given_.seed = static_cast<uint64_t>(node.attributes[last].integer);
    own_seed_ = given_.seed + seed_step * static_cast<uint64_t>(node.number);
    offset_ = e.in(node, offset);
    pass_ = phase_of(e.graph(), node) == Phase::forward ? 0 : 1;
    steps_ = e.steps();
  }

  MaskArgs at(const LaunchArgs &run) const {
    if (!run.is_training || given_.p == 0.0f) return {};
    MaskArgs args = given_;
    args.offset = static_cast<const uint64_t *>(run.at(offset_));
    if (args.offset != nullptr) return args;
    args.seed = own_seed_;
    args.offset = static_cast<const uint64_t *>(run.at(steps_)) + pass_;
    return args;
  }

 private:
  MaskArgs given_;
  uint64_t own_seed_ = 0;
  AddressIndex offset_ = 0, steps_ = 0;
  size_t pass_ = 0;
};

}  // namespace mp::graph

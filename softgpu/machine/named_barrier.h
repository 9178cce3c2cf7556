// The sixteen barriers of a block, at which bar and barrier count threads.  A warp counts as 32
// threads if its lanes arrive together or if all its remaining lanes arrive: barriers operate on
// whole warps (PTX ISA, bar{.cta}).
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/program/instruction.h"

namespace softgpu {

struct Warp;

struct NamedBarrier {
  /// Lanes that wait, or that have arrived without the other lanes of their warp.
  struct Arrival {
    Warp *warp;
    Lanes lanes;
    uint32_t num_counted;  ///< in threads
    const Instruction *at;
    bool waits;
  };
  uint32_t num_arrived = 0, num_expected = 0;  ///< in threads
  uint32_t num_true = 0, num_false = 0;        ///< in lanes, for bar.red
  std::vector<Arrival> arrivals;
  bool has_split_warps = false;  ///< lanes have arrived without the other lanes of their warp
};

/// Updates barriers after some lanes of a warp have exited: barriers at which the remaining lanes
/// have arrived do not wait for the exited lanes.
void count_exited_lanes(Warp &);
/// Updates barriers after a warp has exited: barriers of all threads of the block, and the cluster
/// barrier, do not wait for it.
void count_exited_warp(Warp &);

}  // namespace softgpu

// The sixteen barriers of a block, at which bar and barrier count threads.  A warp whose lanes arrive together counts as
// 32, and so does one whose last living lanes arrive: PTX ISA, bar{.cta}, says that barriers are of whole warps.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/softgpu/program/instruction.h"

namespace softgpu {

struct Warp;

struct NamedBarrier {
  /// Lanes that wait, or that have arrived without the rest of their warp.
  struct Arrival {
    Warp *warp;
    Lanes lanes;
    uint32_t num_counted;  ///< threads
    const Instruction *at;
    bool waits;
  };
  uint32_t num_arrived = 0, num_expected = 0;  ///< threads
  uint32_t num_true = 0, num_false = 0;        ///< lanes, of bar.red
  std::vector<Arrival> arrivals;
  bool has_split_warps = false;  ///< lanes have arrived without the rest of their warp
};

/// Some lanes of a warp have left the kernel.  Where the others have arrived, these are waited for no more.
void count_exited_lanes(Warp &);
/// A warp has left the kernel: barriers of the whole block, and that of the cluster, do not wait for it.
void count_exited_warp(Warp &);

}  // namespace softgpu

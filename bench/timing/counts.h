// What a call makes a device do: that is what a software device (tools/softgpu) has instead of a time.
#pragma once

#include "support/json.h"
#include "timing.h"

namespace mpbench {

/// Of one call, as results/schema.json has them.
struct Counts {
  int64_t launches, issue_slots, barriers;
  double tensor_flop;
  int64_t sectors, least_sectors;  ///< of global memory
  int64_t wavefronts, least_wavefronts;
  mptools::Json kernels;  ///< all of it and more, of each
};

/// @param taken  what softgpu_take_counts returns
Counts read_counts(const std::string &taken);

/// Of the second call: the first may allocate, and choose what is kept.
Counts count_call(const Machine &machine, const Work &work);

}  // namespace mpbench

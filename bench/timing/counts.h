// Instruction and traffic counts of a call on a software device (softgpu), which has no
// times.
#pragma once

#include "support/json.h"
#include "timing.h"

namespace mpbench {

/// Counts of one call, with the fields of results/schema.json.
struct Counts {
  int64_t launches, issue_slots, barriers;
  double tensor_flop;
  int64_t sectors, least_sectors;  ///< in global memory
  int64_t wavefronts, least_wavefronts;
  mptools::Json kernels;  ///< the counts of each kernel
};

/// @param taken  the string that softgpu_take_counts returns
Counts read_counts(const std::string &taken);

/// Counts the second call: the first one may allocate memory and cache a plan.
Counts count_call(const Machine &machine, const Work &work);

}  // namespace mpbench

// How good the choice of the kernel was.
#pragma once

#include <vector>

#include "bench/rows/row.h"
#include "timing.h"

namespace mpbench {

/// Times every kernel of a GemmProblem or a ConvProblem, the library's choice first.
template <typename Problem>
RankResult rank_kernels(Problem &problem, const Stopwatch &stopwatch, const Machine &machine) {
  std::vector<Work> works;
  for (const char *kernel : problem.kernels()) works.push_back(problem.own(kernel));
  const std::vector<Timing> timings = stopwatch.time(works, brief_pace(machine));
  const size_t index = fastest_of(timings);
  return {.position = static_cast<int64_t>(index) + 1,
          .count = static_cast<int64_t>(timings.size()),
          .fastest = problem.kernels()[index],
          .chosen_us = timings.front().median_us,
          .fastest_us = timings[index].median_us};
}

}  // namespace mpbench

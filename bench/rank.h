// How good the choice of the kernel was.
#pragma once

#include <algorithm>
#include <vector>

#include "rows/row.h"
#include "timing.h"

namespace mpbench {

/// Times every kernel of a GemmProblem or a ConvProblem, the library's choice first.
template <typename Problem>
RankResult rank_kernels(Problem &problem, const Stopwatch &stopwatch, const Machine &machine) {
  std::vector<Work> works;
  for (const char *kernel : problem.kernels()) works.push_back(problem.own(kernel));
  const std::vector<Timing> timings = stopwatch.time(works, brief_pace(machine));
  const auto fastest =
      std::min_element(timings.begin(), timings.end(),
                       [](const Timing &x, const Timing &y) { return x.median_us < y.median_us; });
  const auto index = static_cast<size_t>(fastest - timings.begin());
  return {.position = static_cast<int64_t>(index) + 1,
          .count = static_cast<int64_t>(timings.size()),
          .fastest = problem.kernels()[index],
          .chosen_us = timings.front().median_us,
          .fastest_us = fastest->median_us};
}

}  // namespace mpbench

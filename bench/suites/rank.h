// Quality of kernel selection.
#pragma once

#include <vector>

#include "bench/rows/figures.h"
#include "bench/timing/timing.h"
#include "problem.h"

namespace mpbench {

/// One work per kernel, the library's choice first.
inline std::vector<Work> works_of_kernels(Problem &problem) {
  std::vector<Work> works;
  for (const char *kernel : problem.operation().kernels) works.push_back(problem.own(kernel));
  return works;
}

/// @param works  one per kernel, the library's choice first
inline RankResult rank_of(const std::vector<const char *> &kernels, const std::vector<Work> &works,
                          const Stopwatch &stopwatch, const Machine &machine) {
  const std::vector<Timing> timings = stopwatch.time(works, brief_pace(machine));
  const size_t index = fastest_of(timings);
  return {.position = static_cast<int64_t>(index) + 1,
          .count = static_cast<int64_t>(timings.size()),
          .fastest = kernels[index],
          .chosen_us = timings.front().median_us,
          .fastest_us = timings[index].median_us};
}

inline RankResult rank_kernels(Problem &problem, const Stopwatch &stopwatch,
                               const Machine &machine) {
  return rank_of(problem.operation().kernels, works_of_kernels(problem), stopwatch, machine);
}

}  // namespace mpbench

// A suite of measurements: its jobs, their cost, and a function that runs a job.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/rows/report.h"

namespace mpbench {

struct Job {
  std::string name;
  double cost_us;  ///< estimate; only ratios matter
};

struct Suite {
  const char *name;
  std::vector<Job> jobs = {};
  /// Creates data shared by all jobs and returns a function that measures jobs[i] and owns the
  /// data. Both throw exceptions on failure.
  std::function<std::function<void(size_t)>()> open = {};
};

/// @tparam Bench  constructed from (options, machine, report), has measure(item), and optionally
///                begin(), which runs before the first item
template <typename Bench, typename Item, typename Cost>
Suite make_suite(const char *name, std::vector<Item> items, Cost cost_us, const Options &options,
                 const Machine &machine, Report &report) {
  Suite suite{.name = name};
  for (const Item &item : items) suite.jobs.push_back({item.label(), cost_us(item)});
  suite.open = [items = std::move(items), &options, &machine, &report] {
    const auto bench = std::make_shared<Bench>(options, machine, report);
    if constexpr (requires { bench->begin(); }) bench->begin();
    return [bench, items](size_t i) { bench->measure(items[i]); };
  };
  return suite;
}

/// Runs all suites in order, with progress.  A failed measurement becomes a note and does not stop
/// the others.
void measure(const std::vector<Suite> &suites, Report &report);

}  // namespace mpbench

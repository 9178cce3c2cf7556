// A suite of measurements: what it consists of, what each part will cost, and how to measure one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/rows/report.h"

namespace mpbench {

struct Job {
  std::string name;
  double cost_us;  ///< about; only proportions count
};

struct Suite {
  const char *name;
  std::vector<Job> jobs;
  /// What all jobs need is made now and lives as long as the function, which measures jobs[i].  Both
  /// throw what went wrong.
  std::function<std::function<void(size_t)>()> open;
};

/// @tparam Bench  made of (options, machine, report), has measure(item), and begin() where something
///                comes before the first item
template <typename Bench, typename Item, typename Cost>
Suite make_suite(const char *name, std::vector<Item> items, Cost cost_us, const Options &options,
                 const Machine &machine, Report &report) {
  Suite suite{.name = name, .jobs = {}, .open = {}};
  for (const Item &item : items) suite.jobs.push_back({item.label(), cost_us(item)});
  suite.open = [items = std::move(items), &options, &machine, &report] {
    const auto bench = std::make_shared<Bench>(options, machine, report);
    if constexpr (requires { bench->begin(); }) bench->begin();
    return [bench, items](size_t i) { bench->measure(items[i]); };
  };
  return suite;
}

/// All of them, one after the other, with progress.  What fails becomes a note, and the others are
/// measured all the same.
void measure(const std::vector<Suite> &suites, Report &report);

}  // namespace mpbench

// A suite of measurements: its jobs, their cost, and a function that runs a job.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/rows/report.h"
#include "bench/shapes/selection.h"

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

/// State of every bench.
class BenchState {
 public:
  BenchState(const Options &options, const Machine &machine, Report &report)
      : options_(options), machine_(machine), report_(report) {}

 protected:
  const Options &options_;
  const Machine &machine_;
  Report &report_;
};

/// @tparam Bench  constructed from (options, machine, report), has measure(item), and optionally
///                begin(), which runs before the first item
template <typename Bench, typename Item, typename Cost>
Suite make_suite(const char *name, std::vector<Item> items, Cost cost_us, const Options &options,
                 const Machine &machine, Report &report) {
  Suite suite{.name = name};
  suite.jobs.reserve(items.size());
  // Assigned, because GCC 12 warns of the move into a new element (-Warray-bounds).
  for (const Item &item : items) suite.jobs.emplace_back() = {item.label(), cost_us(item)};
  suite.open = [items = std::move(items), &options, &machine, &report] {
    const auto bench = std::make_shared<Bench>(options, machine, report);
    if constexpr (requires { bench->begin(); }) bench->begin();
    return [bench, items](size_t i) { bench->measure(items[i]); };
  };
  return suite;
}

/// The same for a Bench whose items have effort_flop() and take as long as that.
template <typename Bench, typename Item>
Suite make_suite(const char *name, std::vector<Item> items, const Options &options,
                 const Machine &machine, Report &report) {
  const auto cost_us = [&](const Item &item) {
    return measuring_us(machine, pace_of(options, machine), item.effort_flop());
  };
  return make_suite<Bench>(name, std::move(items), cost_us, options, machine, report);
}

/// The same for the items of the sets of the suite.
template <typename Bench, typename Item>
Suite make_suite_of_sets(const char *name, const Options &options, const Machine &machine,
                         Report &report) {
  return make_suite<Bench>(name, read_sets<Item>(name, options, machine.on_host()), options,
                           machine, report);
}

using SuiteMaker = Suite(const Options &, const Machine &, Report &);
SuiteMaker gemm_suite, epilogue_suite, batched_suite, rnn_suite, conv_suite;
SuiteMaker step_suite, calls_suite, startup_suite, graph_suite;
/// @param name  "layers", "attention", "norm", "linear_xent" or "gated"
Suite layer_suite(const char *name, const Options &options, const Machine &machine, Report &report);

/// Runs the GEMM or convolution that --once names, for profilers: once, waits, prints the kernel.
/// @throws std::runtime_error if there is no shape with this name.
void call_once(const Options &options, const Machine &machine);

/// Runs all suites in order, with progress.  A failed measurement becomes a note and does not stop
/// the others.
/// @param after_job  called after each job, optional
void measure(const std::vector<Suite> &suites, Report &report,
             const std::function<void()> &after_job = {});

}  // namespace mpbench

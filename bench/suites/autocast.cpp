// mpbench autocast: host time of a graph rewrite, by number of nodes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>

#include "autocast_graph.h"
#include "bench/rows/rows.h"
#include "bench/shapes/selection.h"
#include "bench/timing/heap.h"
#include "suite.h"

namespace mpbench {
namespace {

constexpr int32_t kNodes[] = {100, 1000, 10'000, 100'000, 1'000'000};

// A rewrite of a million nodes exceeds a batch or a brief budget; least_batches still applies.
constexpr Pace kPace{.warm_up_us = 0, .batch_us = 1e3, .budget_us = 1e6, .least_batches = 21};
constexpr Pace kBriefPace{.warm_up_us = 0, .batch_us = 1e3, .budget_us = 5e4, .least_batches = 5};
constexpr double kMaxCalls = 1000;

const Pace &pace_with(const Options &options) {
  return options.is_brief() ? kBriefPace : kPace;
}

struct AutocastItem {
  GraphShape shape;
  int32_t nodes;

  std::string label() const { return text("autocast %s, %d nodes", name_of(shape), nodes); }
  std::string kind() const { return name_of(shape); }
  double effort_flop() const { return 0; }
};

std::vector<AutocastItem> all_items() {
  std::vector<AutocastItem> items;
  for (const GraphShape shape : {GraphShape::kChain, GraphShape::kRandom})
    for (const int32_t nodes : kNodes) items.push_back({shape, nodes});
  return items;
}

/// Times a function that runs on the host only, without stream synchronization.
Timing time_function(const std::function<void()> &call, const Pace &pace) {
  const auto us_of = [&](int64_t calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - start;
    return all.count() / static_cast<double>(calls);
  };
  call();  // touches its memory for the first time
  const double one_us = us_of(1);
  const auto calls =
      static_cast<int64_t>(std::clamp(std::round(pace.batch_us / one_us), 1.0, kMaxCalls));
  const auto affordable =
      static_cast<int64_t>(pace.budget_us / (one_us * static_cast<double>(calls)));
  const int64_t batches = std::max(pace.least_batches, affordable);

  std::vector<double> call_us;
  for (int64_t batch = 0; batch < batches; ++batch) call_us.push_back(us_of(calls));
  const Quartiles us = quartiles_of(std::move(call_us));
  return {.median_us = us.median,
          .q1_us = us.q1,
          .q3_us = us.q3,
          .enqueue_us = us.median,
          .batches = batches,
          .calls_per_batch = calls};
}

using Policy = std::unique_ptr<mp_autocast, mptools::Destroyer<mp_autocast_destroy>>;

/// Policy of a host that requests fp16, without environment overrides.
Policy make_policy() {
  mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
  mp_autocast_t policy = nullptr;
  check(mp_autocast_create(&policy, &config));
  return Policy(policy);
}

class AutocastBench {
 public:
  AutocastBench(const Options &options, const Machine &, Report &report)
      : options_(options), report_(report), policy_(make_policy()) {}

  void measure(const AutocastItem &item) const {
    const AutocastGraph graph(item.shape, item.nodes);
    const mp_autocast_graph_t view = graph.view();
    AutocastAnswer answer(graph);
    mp_autocast_result_t &result = answer.view();
    // The rewrite has no context, so no activation condition applies and no device is involved.
    const auto rewrite = [&] {
      check(mp_autocast_rewrite(policy_.get(), nullptr, &view, &result));
    };
    const Timing timing = time_function(rewrite, pace_with(options_));
    const int64_t heap_bytes = peak_heap_bytes(rewrite);
    if (heap_bytes < item.nodes)
      throw std::runtime_error("libmpcore.so uses a different operator new");
    report_.add(AutocastRow{.graph = name_of(item.shape),
                            .nodes = item.nodes,
                            .tensors = graph.num_tensors(),
                            .low_nodes = result.num_low_nodes,
                            .casts = result.num_casts,
                            .heap_bytes = heap_bytes,
                            .timing = timing});
  }

 private:
  const Options &options_;
  Report &report_;
  Policy policy_;
};

}  // namespace

Suite autocast_suite(const Options &options, const Machine &machine, Report &report) {
  const Pace &pace = pace_with(options);
  const auto cost_us = [&pace](const AutocastItem &item) {
    constexpr double kUsPerNode = 0.2;
    return std::max(pace.budget_us, static_cast<double>(pace.least_batches) * kUsPerNode *
                                        static_cast<double>(item.nodes));
  };
  return make_suite<AutocastBench>("autocast", selected(all_items(), options, machine.on_host()),
                                   cost_us, options, machine, report);
}

}  // namespace mpbench

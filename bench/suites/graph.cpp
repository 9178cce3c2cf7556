// mpbench graph: time of mp_graph_forward and mp_graph_backward compared with the same calls
// without a graph.
#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/rows/rows.h"
#include "perceptron.h"
#include "suite.h"

namespace mpbench {
namespace {

/// One shape dominated by launches, and one dominated by GEMMs.
constexpr PerceptronShape kShapes[] = {{.layers = 8, .width = 32, .batch = 16},
                                       {.layers = 4, .width = 256, .batch = 128}};

// Fixed number of rounds: 4 n + 1, so that each quartile is the value of a round.
constexpr int64_t kRounds = 401, kBriefRounds = 41;
/// Launches per batch that never fill the queue of a stream.
constexpr int64_t kMaxLaunches = 700;
/// The number of calls ends a batch instead of time, so that both forms have equally many.
constexpr double kLongerThanBatchesUs = 1e9;

Pace pace_with(const Options &options) {
  return {.warm_up_us = 5e4,
          .batch_us = kLongerThanBatchesUs,
          .budget_us = 0,
          .least_batches = options.is_brief() ? kBriefRounds : kRounds};
}

struct GraphItem {
  PerceptronShape shape;
  mp_dtype_t dtype;

  std::string label() const {
    return text("graph %s, %s", shape.name().c_str(), mp_dtype_name(dtype));
  }
  std::string kind() const { return shape.name(); }
  double effort_flop() const { return shape.flop(); }
};

std::vector<GraphItem> all_items() {
  std::vector<GraphItem> items;
  for (const PerceptronShape &shape : kShapes)
    for (const mp_dtype_t dtype : {MP_FP32, MP_FP16}) items.push_back({shape, dtype});
  return items;
}

std::string listed(const std::vector<std::string> &calls) {
  std::string all;
  for (const std::string &call : calls) all += (all.empty() ? "" : ", ") + call;
  return all;
}

class GraphBench : BenchState {
 public:
  using BenchState::BenchState;

  void begin() const {
    if (machine_.on_host())
      report_.add_note(
          "graph: on the host target calls execute the kernels themselves, so the host time of a "
          "step is its total time.");
  }

  void measure(const GraphItem &item) const;

 private:
  using Bytes = std::vector<std::byte>;
  static constexpr std::byte kFill{0xff};  ///< NaN: shows unwritten elements

  /// Contents of the arrays that a step writes, after it.
  std::vector<Bytes> bytes_after(const PerceptronStep &step) const;
  /// @throws std::runtime_error if calls or results of the two forms differ in any bit
  void require_equal(const PerceptronStep &graph, const PerceptronStep &by_hand) const;

  Stopwatch stopwatch_{machine_};
};

std::vector<GraphBench::Bytes> GraphBench::bytes_after(const PerceptronStep &step) const {
  for (const Written &array : step.written)
    machine_.call(mp_memset, array.data, std::to_integer<int>(kFill),
                  static_cast<size_t>(array.bytes));
  step.run();
  std::vector<Bytes> all;
  for (const Written &array : step.written) {
    Bytes &bytes = all.emplace_back(static_cast<size_t>(array.bytes));
    machine_.call(mp_memcpy, bytes.data(), array.data, bytes.size());
    machine_.synchronize();
  }
  return all;
}

void GraphBench::require_equal(const PerceptronStep &graph, const PerceptronStep &by_hand) const {
  if (graph.calls != by_hand.calls)
    throw std::runtime_error("the graph calls " + listed(graph.calls) + "; the direct step calls " +
                             listed(by_hand.calls));
  const std::vector<Bytes> own = bytes_after(graph), theirs = bytes_after(by_hand);
  const std::vector<Written> &arrays = graph.written;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (own[i] != theirs.at(i))
      throw std::runtime_error(arrays[i].name + " differs from the result of the direct calls");
    // Arrays that are all zero, or were never written, would compare equal.
    const auto is_full_of = [&](std::byte value) { return own[i] == Bytes(own[i].size(), value); };
    if (is_full_of(kFill) || (is_full_of(std::byte{0}) && !arrays[i].may_be_zero))
      throw std::runtime_error(arrays[i].name + " was not written or contains only zeros");
  }
}

void GraphBench::measure(const GraphItem &item) const {
  const PerceptronStart start(machine_, item.shape);
  const PerceptronStep graph = graph_step(machine_, item.shape, item.dtype, start);
  const PerceptronStep by_hand = hand_step(machine_, item.shape, item.dtype, start);
  require_equal(graph, by_hand);

  const auto launches = static_cast<int64_t>(by_hand.calls.size());
  // One call is not timed.  Without a queue to fill, the forms alternate step by step.
  const int64_t most_calls = machine_.on_host() ? 2 : std::max<int64_t>(2, kMaxLaunches / launches);
  const std::vector<Work> works = {Work(graph.run, /*prepare=*/nullptr, most_calls),
                                   Work(by_hand.run, /*prepare=*/nullptr, most_calls)};
  const auto timed = [](std::vector<Timing> timings) {
    return GraphBesideHand{std::move(timings[0]), std::move(timings[1])};
  };
  const Pace pace = pace_with(options_);
  GraphRow row{.shape = item.shape,
               .dtype = item.dtype,
               .launches = launches,
               .whole = timed(stopwatch_.time(works, pace))};
  if (!machine_.on_host()) row.host = timed(stopwatch_.time_host(works, pace.least_batches));
  // Enqueue time per step, not that of one call.
  row.whole.graph.enqueue_us = (row.host ? *row.host : row.whole).graph.median_us;
  report_.add(row);
}

}  // namespace

Suite graph_suite(const Options &options, const Machine &machine, Report &report) {
  const auto cost_us = [&](const GraphItem &item) {
    Pace pace = pace_with(options);
    pace.batch_us = 2e3;  // approximate
    return 2 * measuring_us(machine, pace, item.effort_flop());
  };
  return make_suite<GraphBench>("graph", selected(all_items(), options, machine.on_host()), cost_us,
                                options, machine, report);
}

}  // namespace mpbench

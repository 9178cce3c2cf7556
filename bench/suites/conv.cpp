// mpbench conv: the three products of convolutional layers, beside cuDNN in the same precision, in
// FP32 and in TF32.
#include <memory>
#include <optional>

#include "bench/bench.h"
#include "bench/rows/conv_row.h"
#include "bench/shapes/conv_shapes.h"
#include "bench/timing/comparison.h"
#include "bench/timing/peer_library.h"
#include "bench/timing/rank.h"
#include "conv_problem.h"
#include "suite.h"

namespace mpbench {
namespace {

class ConvBench {
 public:
  ConvBench(const Options &options, const Machine &machine, Report &report);

  void measure(const ConvShape &shape);

 private:
  /// The same product of FP32 tensors, and what multiplies them.
  struct Fp32Side {
    std::optional<ConvProblem> problem;
    std::unique_ptr<CudnnConv> fp32, tf32;
  };

  /// cuDNN ready for a problem; NULL where it has no algorithm.  A note says so, and `what` it would
  /// have been.
  std::unique_ptr<CudnnConv> open_peer(const char *what, const ConvShape &shape,
                                       const ConvProblem &problem, PeerLayout layout,
                                       PeerMath math);
  /// The same for the engines of its graph API.
  std::unique_ptr<CudnnGraphConv> open_graph(const ConvShape &shape, const ConvProblem &problem);
  /// The fastest: 0 is `peer`, i the engine i - 1.
  size_t best_choice(ConvProblem &problem, const CudnnConv &peer,
                     const CudnnGraphConv &graph) const;
  /// A note where results differ.
  bool check(const ConvShape &shape, bool agrees);
  void add_baselines(const ConvShape &shape, Fp32Side &side, Comparison &comparison,
                     Baselines &baselines);
  void report_clocks(const ConvShape &shape, const Work &work, const Timing &timing);

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  RandomPool pool_, fp32_pool_;
  std::optional<Cudnn> library_;
  bool has_clocks_ = false;
};

ConvBench::ConvBench(const Options &options, const Machine &machine, Report &report)
    : options_(options),
      machine_(machine),
      report_(report),
      stopwatch_(machine),
      pool_(machine, options.dtype),
      fp32_pool_(machine, MP_FP32) {
  if (!machine.on_host() && options.peers.cudnn)
    open_peer_library(library_, "convolution", report, machine.context(), machine.stream());
}

void ConvBench::measure(const ConvShape &shape) {
  const mp_conv2d_desc_t desc = make_desc(shape, options_.dtype, options_.out_dtype);
  ConvProblem problem(machine_, pool_, shape, desc);
  const std::unique_ptr<CudnnConv> peer =
      open_peer("peer", shape, problem, PeerLayout::kOwn, PeerMath::kFp32);
  ConvRow row = untimed_row(shape, desc, problem);
  Comparison comparison(problem.own());
  std::unique_ptr<CudnnGraphConv> graph;
  size_t best = 0;
  std::optional<PeerResult> best_result;
  if (peer) {
    graph = open_graph(shape, problem);
    best = graph ? best_choice(problem, *peer, *graph) : 0;
    comparison.add(row.peer, name_of(*library_), problem.peer(*peer));
    if (best != 0) comparison.add(best_result, name_of(*library_), problem.peer(*graph, best - 1));
  }
  Fp32Side fp32_side;
  if (options_.dtype != MP_FP32) add_baselines(shape, fp32_side, comparison, row.baselines);

  row.timing = comparison.run(stopwatch_, pace_of(options_, machine_));
  if (peer) row.peer->agrees = check(shape, problem.agrees_with(*peer));
  if (best_result) best_result->agrees = check(shape, problem.agrees_with(*graph, best - 1));
  if (graph)
    row.peer_best = BestChoice{.choice = static_cast<int64_t>(best) + 1,
                               .of = static_cast<int64_t>(graph->engines()) + 1,
                               .result = best_result.value_or(*row.peer)};
  if (options_.rank) row.rank = rank_kernels(problem, stopwatch_, machine_);
  report_.add(row);
  report_clocks(shape, problem.own(), row.timing);
}

bool ConvBench::check(const ConvShape &shape, bool agrees) {
  if (!agrees) report_.add_failure("mpcore and cuDNN differ for " + shape.name() + ".");
  return agrees;
}

std::unique_ptr<CudnnGraphConv> ConvBench::open_graph(const ConvShape &shape,
                                                      const ConvProblem &problem) {
  try {
    return problem.make_graph_peer(*library_);
  } catch (const std::exception &error) {
    report_.add_note("No engines of cuDNN's graph API for " + shape.name() + ": " + error.what() +
                     ".");
    return nullptr;
  }
}

size_t ConvBench::best_choice(ConvProblem &problem, const CudnnConv &peer,
                              const CudnnGraphConv &graph) const {
  std::vector<Work> choices = {problem.peer(peer)};
  for (size_t engine = 0; engine < graph.engines(); ++engine)
    choices.push_back(problem.peer(graph, engine));
  return fastest_choice(choices, stopwatch_, machine_);
}

void ConvBench::add_baselines(const ConvShape &shape, Fp32Side &side, Comparison &comparison,
                              Baselines &baselines) {
  if (!machine_.on_host() && !library_) return;
  try {
    side.problem.emplace(machine_, fp32_pool_, shape, make_desc(shape, MP_FP32, MP_FP32));
  } catch (const std::exception &error) {
    report_.add_note("No FP32 baseline for " + shape.name() + ": " + error.what() + ".");
    return;
  }
  if (machine_.on_host()) {
    comparison.add(baselines.fp32, "mpcore, FP32", side.problem->own());
    return;
  }
  const auto open = [&](const char *what, PeerMath math) {
    return open_peer(what, shape, *side.problem, PeerLayout::kFastest, math);
  };
  side.fp32 = open("FP32 baseline", PeerMath::kFp32);
  if (side.fp32)
    comparison.add(baselines.fp32, name_of(*library_) + ", FP32", side.problem->peer(*side.fp32));
  if (machine_.info().arch < kFirstArchWithTf32) return;
  side.tf32 = open("TF32 baseline", PeerMath::kTf32);
  if (side.tf32)
    comparison.add(baselines.tf32, name_of(*library_) + ", TF32", side.problem->peer(*side.tf32));
}

std::unique_ptr<CudnnConv> ConvBench::open_peer(const char *what, const ConvShape &shape,
                                                const ConvProblem &problem, PeerLayout layout,
                                                PeerMath math) {
  if (!library_) return nullptr;
  try {
    return problem.make_peer(*library_, layout, math);
  } catch (const std::exception &error) {
    report_.add_note(text("No %s for ", what) + shape.name() + ": " + error.what() + ".");
    return nullptr;
  }
}

/// Once, under the load of the first shape.
void ConvBench::report_clocks(const ConvShape &shape, const Work &work, const Timing &timing) {
  if (has_clocks_) return;
  report_.add(gpu_state_under(machine_, work, timing, "mp_conv2d " + shape.name()));
  has_clocks_ = true;
}

}  // namespace

Suite conv_suite(const Options &options, const Machine &machine, Report &report) {
  const auto cost_us = [&](const ConvShape &shape) {
    return measuring_us(machine, pace_of(options, machine), shape.effort_flop());
  };
  return make_suite<ConvBench>("conv", read_conv_shapes(options, machine.on_host()), cost_us,
                               options, machine, report);
}

}  // namespace mpbench

// mpbench conv: the three products of convolutional layers, beside cuDNN in the same precision and
// in FP32.
#include <memory>
#include <optional>

#include "bench.h"
#include "conv_problem.h"
#include "conv_shapes.h"
#include "family.h"
#include "rank.h"
#include "rows/conv_row.h"

namespace mpbench {
namespace {

class ConvBench {
 public:
  ConvBench(const Options &options, const Machine &machine, Report &report);

  void measure(const ConvShape &shape);

 private:
  /// cuDNN ready for a problem; NULL where it has no algorithm.
  std::unique_ptr<CudnnConv> open_peer(const ConvShape &shape, const ConvProblem &problem,
                                       PeerLayout layout);
  std::string peer_name() const { return "cuDNN " + std::to_string(library_->version()); }
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
  if (machine.on_host() || !options.peers.cudnn) return;
  try {
    library_.emplace(machine.context(), machine.stream());
  } catch (const std::exception &error) {
    report_.add_note(std::string("No peer for convolution: ") + error.what() + ".");
  }
}

PeerResult peer_result(std::string name, const Timing &timing) {
  return {.name = std::move(name),
          .median_us = timing.median_us,
          .q1_us = timing.q1_us,
          .q3_us = timing.q3_us,
          .agrees = {}};
}

void ConvBench::measure(const ConvShape &shape) {
  const mp_conv2d_desc_t desc = make_desc(shape, options_.dtype, options_.out_dtype);
  ConvProblem problem(machine_, pool_, shape, desc);
  const std::unique_ptr<CudnnConv> peer = open_peer(shape, problem, PeerLayout::kOwn);

  std::optional<ConvProblem> fp32_problem;
  std::unique_ptr<CudnnConv> fp32_peer;
  if (library_ && options_.dtype != MP_FP32) {
    fp32_problem.emplace(machine_, fp32_pool_, shape, make_desc(shape, MP_FP32, MP_FP32));
    fp32_peer = open_peer(shape, *fp32_problem, PeerLayout::kFastest);
  }

  const bool agrees = peer == nullptr || problem.agrees_with(*peer);
  if (!agrees) report_.add_failure("mpcore and cuDNN differ for " + shape.name() + ".");

  std::vector<Work> works = {problem.own()};
  if (peer != nullptr) works.push_back(problem.peer(*peer));
  if (fp32_peer != nullptr) works.push_back(fp32_problem->peer(*fp32_peer));
  const std::vector<Timing> timings = stopwatch_.time(works, pace_of(options_, machine_));

  ConvRow row{.shape = shape,
              .desc = desc,
              .kernel = problem.kernels().front(),
              .predicted_us = problem.predicted_us(),
              .workspace_bytes = problem.workspace_bytes(),
              .sets = problem.sets(),
              .min_bytes = problem.min_bytes(),
              .timing = timings.front(),
              .peer = {},
              .fp32 = {},
              .rank = {}};
  if (peer != nullptr) {
    row.peer = peer_result(peer_name(), timings[1]);
    row.peer->agrees = agrees;
  }
  if (fp32_peer != nullptr) row.fp32 = peer_result(peer_name() + ", FP32", timings.back());
  if (options_.rank) row.rank = rank_kernels(problem, stopwatch_, machine_);
  report_.add(row);
  report_clocks(shape, works.front(), row.timing);
}

std::unique_ptr<CudnnConv> ConvBench::open_peer(const ConvShape &shape, const ConvProblem &problem,
                                                PeerLayout layout) {
  if (!library_) return nullptr;
  try {
    return problem.make_peer(*library_, layout);
  } catch (const std::exception &error) {
    report_.add_note("No peer for " + shape.name() + ": " + error.what() + ".");
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

Family conv_family(const Options &options, const Machine &machine, Report &report) {
  const auto cost_us = [&](const ConvShape &shape) {
    return measuring_us(machine, pace_of(options, machine), shape.effort_flop());
  };
  return make_family<ConvBench>("conv", read_conv_shapes(options, machine.on_host()), cost_us,
                                options, machine, report);
}

}  // namespace mpbench

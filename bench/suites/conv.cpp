// mpbench conv: the three passes of convolutional layers, compared with cuDNN in the same
// precision, in FP32 and in TF32.
#include <memory>
#include <optional>

#include "bench/peers/cudnn_peer.h"
#include "bench/rows/rows.h"
#include "bench/shapes/conv_shapes.h"
#include "peer_library.h"
#include "problem_timer.h"
#include "suite.h"
#include "suites.h"

namespace mpbench {
namespace {

class ConvBench {
 public:
  ConvBench(const Options &options, const Machine &machine, Report &report);

  void measure(const ConvShape &shape);

 private:
  Comparand comparand(const ConvShape &shape);

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  ProblemTimer timer_;
  std::optional<Cudnn> library_;
  bool has_clocks_ = false;
};

ConvBench::ConvBench(const Options &options, const Machine &machine, Report &report)
    : options_(options), machine_(machine), report_(report), timer_(options, machine, report) {
  if (!machine.on_host() && options.peers.cudnn)
    open_peer_library(library_, "convolution", report, machine.context(), machine.stream());
}

void ConvBench::measure(const ConvShape &shape) {
  // Clocks are reported once, under the load of the first shape.
  const std::string during = has_clocks_ ? "" : "mp_conv2d " + shape.name();
  report_.add(ConvRow{.shape = shape, .figures = timer_.time(comparand(shape), during)});
  has_clocks_ = true;
}

Comparand ConvBench::comparand(const ConvShape &shape) {
  const mp_conv2d_desc_t desc = make_desc(shape, options_.dtype, options_.out_dtype);
  const mp_conv2d_desc_t fp32_desc = make_desc(shape, MP_FP32, MP_FP32);
  const auto make_peer = [=, this](const Problem &problem) {
    auto peer = std::make_unique<CudnnPeer>(*library_, desc, shape.op, PeerLayout::kOwn,
                                            problem.first_set(), PeerMath::kFp32);
    try {
      peer->add_engines(*library_, desc, shape.op);
    } catch (const std::exception &error) {
      report_.add_note("No engine of cuDNN's graph API for " + shape.name() + ": " + error.what() +
                       ".");
    }
    return peer;
  };
  const auto make_fp32_peer = [=, this](const Problem &problem, PeerMath math) {
    return std::make_unique<CudnnPeer>(*library_, fp32_desc, shape.op, PeerLayout::kFastest,
                                       problem.first_set(), math);
  };
  return {.name = shape.name(),
          .operation = [=, this] { return conv_operation(machine_, shape, desc); },
          .fp32_operation = [=, this] { return conv_operation(machine_, shape, fp32_desc); },
          .library = library_ ? name_of(*library_) : "",
          .make_peer = make_peer,
          .make_fp32_peer = make_fp32_peer};
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

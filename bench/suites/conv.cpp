// mpbench conv: the three passes of convolutional layers, compared with cuDNN in the same
// precision, in FP32 and in TF32.
#include <memory>

#include "bench/peers/cudnn.h"
#include "bench/rows/rows.h"
#include "bench/shapes/conv_shapes.h"
#include "peer_library.h"
#include "problem_timer.h"
#include "suite.h"

namespace mpbench {
namespace {

PeerCall peer_call(const DnnCall &call) {
  return {{.limit = Cudnn::kWorkspaceBytes, .used = call.workspace_bytes},
          [call](const Operands &t) {
            call.enqueue({const_cast<void *>(t.first), const_cast<void *>(t.second), t.out});
          }};
}

class ConvBench : BenchState {
 public:
  using BenchState::BenchState;

  void measure(const ConvShape &shape);

 private:
  Comparand comparand(const ConvShape &shape);

  ProblemTimer timer_{options_, machine_, report_};
  std::unique_ptr<Cudnn> library_ =
      open_peer<Cudnn>(options_.peers.cudnn, "convolution", machine_, report_);
  bool has_clocks_ = false;
};

void ConvBench::measure(const ConvShape &shape) {
  // Clocks are reported once, under the load of the first shape.
  const std::string during = has_clocks_ ? "" : "mp_conv2d " + shape.name();
  report_.add(ConvRow{.shape = shape, .figures = timer_.time(comparand(shape), during)});
  has_clocks_ = true;
}

Comparand ConvBench::comparand(const ConvShape &shape) {
  const mp_conv2d_desc_t desc = make_desc(shape, options_.dtype, options_.out_dtype);
  const mp_conv2d_desc_t fp32_desc = make_desc(shape, MP_FP32, MP_FP32);
  // The algorithm search, then the engines of the graph API.
  const auto make_peer = [=, this](const Problem &problem) {
    PeerCalls calls = {
        peer_call(library_->convolution(desc, shape.op, PeerLayout::kOwn, problem.first_set()))};
    const std::vector<DnnCall> engines =
        report_.make_or_note("engine of cuDNN's graph API for " + shape.name(),
                             [&] { return library_->convolution_engines(desc, shape.op); });
    for (const DnnCall &engine : engines) calls.push_back(peer_call(engine));
    return calls;
  };
  const auto make_fp32_peer = [=, this](const Problem &problem, PeerMath math) {
    return PeerCalls{peer_call(library_->convolution(fp32_desc, shape.op, PeerLayout::kFastest,
                                                     problem.first_set(), math))};
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
  return make_suite_of_sets<ConvBench, ConvShape>("conv", options, machine, report);
}

}  // namespace mpbench

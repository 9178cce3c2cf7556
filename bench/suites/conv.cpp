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

/// cuDNN's algorithm search, then the engines of its graph API.
class CudnnPeer : public Peer {
 public:
  explicit CudnnPeer(std::vector<DnnCall> calls) : calls_(std::move(calls)) {}

  size_t choices() const override { return calls_.size() > 1 ? calls_.size() : 0; }
  PeerWorkspace workspace(size_t choice) const override {
    return {.limit = Cudnn::kWorkspaceBytes, .used = calls_[choice].workspace_bytes};
  }
  void enqueue(const Operands &t, size_t choice) const override {
    calls_[choice].enqueue({const_cast<void *>(t.first), const_cast<void *>(t.second), t.out});
  }

 private:
  std::vector<DnnCall> calls_;
};

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
  const auto make_peer = [=, this](const Problem &problem) {
    std::vector<DnnCall> calls = {
        library_->convolution(desc, shape.op, PeerLayout::kOwn, problem.first_set())};
    const std::vector<DnnCall> engines =
        report_.make_or_note("engine of cuDNN's graph API for " + shape.name(),
                             [&] { return library_->convolution_engines(desc, shape.op); });
    calls.insert(calls.end(), engines.begin(), engines.end());
    return std::make_unique<CudnnPeer>(std::move(calls));
  };
  const auto make_fp32_peer = [=, this](const Problem &problem, PeerMath math) {
    return std::make_unique<CudnnPeer>(std::vector{library_->convolution(
        fp32_desc, shape.op, PeerLayout::kFastest, problem.first_set(), math)});
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

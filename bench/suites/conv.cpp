// mpbench conv: the three passes of convolutional layers, compared with cuDNN in the same
// precision, in FP32 and in TF32.
#include <memory>

#include "bench/peers/cudnn_graph.h"
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
  /// @param search  tensors for the search, which overwrites the output
  /// @throws std::runtime_error if cuDNN has no algorithm for it.
  CudnnPeer(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op, PeerLayout layout,
            const Operands &search, PeerMath math)
      : conv_(library, desc, op, layout, search.first, search.second, search.out, math) {}

  void set_graph(std::unique_ptr<CudnnGraph> graph) { graph_ = std::move(graph); }

  size_t choices() const override { return graph_ ? graph_->engines() + 1 : 0; }
  PeerWorkspace workspace(size_t choice) const override {
    return {.limit = Cudnn::kWorkspaceBytes,
            .used = choice == 0 ? conv_.workspace_bytes() : graph_->workspace_bytes(choice - 1)};
  }
  void enqueue(const Operands &t, size_t choice) const override {
    if (choice == 0)
      conv_.enqueue(t.first, t.second, t.out);
    else
      graph_->enqueue({t.first, t.second, t.out}, choice - 1);
  }

 private:
  CudnnConv conv_;
  std::unique_ptr<CudnnGraph> graph_;
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
    auto peer = std::make_unique<CudnnPeer>(*library_, desc, shape.op, PeerLayout::kOwn,
                                            problem.first_set(), PeerMath::kFp32);
    peer->set_graph(report_.make_or_note("engine of cuDNN's graph API for " + shape.name(), [&] {
      return std::make_unique<CudnnGraph>(*library_, desc, shape.op);
    }));
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
  return make_suite_of_sets<ConvBench, ConvShape>("conv", options, machine, report);
}

}  // namespace mpbench

// mpbench rnn: the GEMMs of recurrent layers without the cells, then the complete layers with these
// GEMMs, cuDNN's layer, both in FP32, and torch's layer.
#include <memory>
#include <optional>

#include "bench/rows/rows.h"
#include "bench/shapes/rnn_shapes.h"
#include "comparison.h"
#include "gemm_timer.h"
#include "peer_library.h"
#include "rank.h"
#include "rnn_data.h"
#include "suite.h"
#include "torch_peers.h"

namespace mpbench {
namespace {

std::string peer_name(const Cudnn &library, const CudnnRnn &peer) {
  return name_of(library) + ", " + name_of(peer.algo());
}

/// Calls that are compared with torch's layer, which computes all weight gradients together with
/// those of the data.
std::string calls_beside_torch(const RnnShape &shape) {
  const std::string call = shape.pass == "fprop"   ? "forward"
                           : shape.pass == "dgrad" ? "backward, data"
                                                   : "backward, data and weights";
  return call + ", with W_ih";
}

/// Formats the problem for torch_rnn.py.
std::string command_line_text(const RnnShape &shape, mp_dtype_t dtype) {
  return shape.cell +
         text(" %lld %lld %lld ", static_cast<Long>(shape.hidden), static_cast<Long>(shape.batch),
              static_cast<Long>(shape.timesteps)) +
         mp_dtype_name(dtype) + ' ' + shape.pass +
         (shape.is_training() ? " training" : " inference");
}

Figures untimed_figures(const RnnData &data) {
  const RnnShape &shape = data.shape();
  const mp_rnn_desc_t &desc = data.desc();
  return {.dtype = desc.dtype,
          .out_dtype = out_dtype(shape, desc),
          .beta = (desc.flags & MP_RNN_FLAG_ACCUMULATE) != 0 ? 1.0f : 0.0f,
          .flop = shape.gemms().flop(),
          .min_bytes = min_bytes(shape, desc, data.reserve_bytes()),
          .kernel = data.kernels().front(),
          .workspace_bytes = data.workspace_bytes(),
          .sets = data.sets()};
}

class RnnLayerTimer : BenchState {
 public:
  using BenchState::BenchState;

  RnnLayerRow measure(const RnnShape &shape);

 private:
  /// The layer in FP32, by mpcore and peers.
  struct Fp32Side {
    std::unique_ptr<RnnData> data;
    std::unique_ptr<CudnnRnn> fp32, tf32;
  };

  /// Measures the times of the row, interleaved.
  void time(RnnLayerRow &row, RnnData &data);
  void add_baselines(const RnnShape &shape, Fp32Side &side, Comparison &comparison,
                     Baselines &baselines);
  /// Returns cuDNN's fastest algorithm; NULL if none runs the layer, with a note on the missing
  /// `what`.
  std::unique_ptr<CudnnRnn> make_peer(const char *what, RnnData &data, PeerMath math);
  /// Returns mpcore's equivalent of torch's layer; NULL if one of them is missing, with a note.
  std::unique_ptr<RnnData> make_torch_equivalent(const RnnData &data);

  Stopwatch stopwatch_{machine_};
  RandomPool pool_{machine_, options_.dtype};
  std::unique_ptr<Cudnn> library_ =
      open_peer<Cudnn>(options_.peers.cudnn, "recurrent layers", machine_, report_);
  TorchPeers torch_{options_, machine_, "torch_rnn.py"};
};

RnnLayerRow RnnLayerTimer::measure(const RnnShape &shape) {
  RnnData data(machine_, shape, make_desc(shape, options_.dtype, options_.out_dtype));
  RnnLayerRow row{
      .shape = shape, .figures = untimed_figures(data), .reserve_bytes = data.reserve_bytes()};
  if (machine_.is_counted())
    row.figures.counts = count_call(machine_, data.own());
  else
    time(row, data);
  return row;
}

void RnnLayerTimer::time(RnnLayerRow &row, RnnData &data) {
  const RnnShape &shape = row.shape;
  Figures &figures = row.figures;
  Comparison comparison(data.own());
  const Shape gemms = shape.gemms();
  Problem products(
      machine_, pool_,
      gemm_operation(machine_, gemms, make_desc(gemms, options_.dtype, options_.out_dtype)));
  comparison.add(row.products, "products", products.own());

  const std::unique_ptr<CudnnRnn> peer = make_peer("peer", data, PeerMath::kFp32);
  if (peer) comparison.add(figures.peer, peer_name(*library_, *peer), data.peer(*peer));
  Fp32Side fp32_side;
  if (figures.dtype != MP_FP32) add_baselines(shape, fp32_side, comparison, figures.baselines);

  const std::unique_ptr<RnnData> with_w_ih = make_torch_equivalent(data);
  std::optional<PeerResult> own_with_w_ih;
  std::function<void()> torch_turn;
  if (with_w_ih)
    torch_turn = torch_.prepare(command_line_text(shape, options_.dtype), shape.name(),
                                "recurrent layers", report_);
  if (torch_turn) {
    const bool is_weights = shape.call() == RnnPass::kBackwardWeights;
    comparison.add(own_with_w_ih, "mpcore",
                   is_weights ? with_w_ih->own_backward() : with_w_ih->own());
  }

  figures.timing = comparison.run(stopwatch_, pace_of(options_, machine_), torch_turn);
  // Gradients of weights have no time steps.
  if (options_.rank && shape.call() != RnnPass::kBackwardWeights) {
    std::vector<Work> works;
    for (const char *kernel : data.kernels()) works.push_back(data.own(kernel));
    figures.rank = rank_of(data.kernels(), works, stopwatch_, machine_);
  }
  if (peer) {
    if (data.is_comparable())
      figures.peer->agrees = report_.add_agreement(peer_name(*library_, *peer), shape.name(),
                                                   data.difference_to(*peer));
    row.peer_reserve_bytes = peer->reserve_bytes();
    figures.peer_workspace =
        PeerWorkspace{.limit = peer->workspace_bytes(), .used = peer->workspace_bytes()};
  }
  if (!own_with_w_ih) return;
  for (const PeerResult &torch : torch_.results())
    row.torch = {calls_beside_torch(shape), *own_with_w_ih, torch};
}

void RnnLayerTimer::add_baselines(const RnnShape &shape, Fp32Side &side, Comparison &comparison,
                                  Baselines &baselines) {
  if (!machine_.on_host() && !library_) return;
  side.data = report_.make_or_note("FP32 baseline for " + shape.name(), [&] {
    return std::make_unique<RnnData>(machine_, shape, make_desc(shape, MP_FP32, MP_DTYPE_NONE));
  });
  if (!side.data) return;
  if (machine_.on_host()) {
    comparison.add(baselines.fp32, "mpcore, FP32", side.data->own());
    return;
  }
  const auto add = [&](const char *name, PeerMath math, std::unique_ptr<CudnnRnn> &peer,
                       std::optional<PeerResult> &baseline) {
    peer = make_peer((name + std::string(" baseline")).c_str(), *side.data, math);
    if (peer)
      comparison.add(baseline, peer_name(*library_, *peer) + ", " + name, side.data->peer(*peer));
  };
  add("FP32", PeerMath::kFp32, side.fp32, baselines.fp32);
  if (machine_.info().arch >= kFirstArchWithTf32)
    add("TF32", PeerMath::kTf32, side.tf32, baselines.tf32);
}

std::unique_ptr<CudnnRnn> RnnLayerTimer::make_peer(const char *what, RnnData &data, PeerMath math) {
  if (!library_) return nullptr;
  std::unique_ptr<CudnnRnn> fastest;
  double least_us = 0;
  std::string reason;
  Pace pace = brief_pace(machine_);
  pace.least_batches = 5;  // layers take long, and this only selects an algorithm
  for (const RnnAlgo algo : kRnnAlgos) {
    try {
      auto peer = std::make_unique<CudnnRnn>(*library_, data.shape(), data.desc().dtype, algo,
                                             data.all_sets(), math);
      const Timing timing = stopwatch_.time({data.peer(*peer)}, pace).front();
      if (fastest && timing.median_us >= least_us) continue;
      least_us = timing.median_us;
      fastest = std::move(peer);
    } catch (const std::exception &error) {
      if (reason.empty())
        reason = error.what();  // reason of the standard algorithm; others are optional
    }
  }
  if (!fastest)
    report_.add_note(text("No %s for ", what) + data.shape().name() + ": " + reason + ".");
  return fastest;
}

std::unique_ptr<RnnData> RnnLayerTimer::make_torch_equivalent(const RnnData &data) {
  if (!torch_.exist()) return nullptr;
  mp_rnn_desc_t desc = data.desc();
  desc.flags &= ~uint32_t{MP_RNN_FLAG_SKIP_INPUT};
  return report_.make_or_note("torch reference for " + data.shape().name(), [&] {
    return std::make_unique<RnnData>(machine_, data.shape(), desc);
  });
}

/// A pass of a layer, or its GEMMs.
struct RnnItem {
  RnnShape shape;
  bool is_layer;

  std::string label() const { return shape.label() + (is_layer ? ", layer" : ""); }
  double effort_flop() const { return shape.effort_flop(); }
};

class RnnBench : BenchState {
 public:
  using BenchState::BenchState;

  void measure(const RnnItem &item) {
    const RnnShape &shape = item.shape;
    if (!item.is_layer)
      return report_.add(RnnRow{.shape = shape, .figures = timer_.time(shape.gemms())});
    // Created for the first layer, since it allocates device memory and starts processes.
    if (!layer_timer_) layer_timer_.emplace(options_, machine_, report_);
    report_.add(layer_timer_->measure(shape));
  }

 private:
  GemmTimer timer_{options_, machine_, report_};
  std::optional<RnnLayerTimer> layer_timer_;
};

/// GEMMs first, then layers: one table each.
std::vector<RnnItem> rnn_items(const Options &options, const Machine &machine) {
  std::vector<RnnItem> items;
  const std::vector<RnnShape> shapes = read_sets<RnnShape>("rnn", options, machine.on_host());
  for (const bool is_layer : {false, true})
    for (const RnnShape &shape : shapes) items.push_back({shape, is_layer});
  return items;
}

}  // namespace

Suite rnn_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite<RnnBench>("rnn", rnn_items(options, machine), options, machine, report);
}

}  // namespace mpbench

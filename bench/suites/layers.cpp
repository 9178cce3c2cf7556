// mpbench layers: batch normalization, pooling and the loss, each timed interleaved with a copy of
// as many bytes and with cuDNN.
#include <memory>
#include <optional>

#include "bench/rows/rows.h"
#include "layer_data.h"
#include "peer_library.h"
#include "step_ops.h"
#include "suite.h"

namespace mpbench {
namespace {

class LayerBench {
 public:
  LayerBench(const Options &options, const Machine &machine, Report &report)
      : options_(options),
        machine_(machine),
        report_(report),
        stopwatch_(machine),
        pool_(machine, options.dtype) {
    if (!machine.on_host() && options.peers.cudnn)
      open_peer_library(library_, "layers", report, machine.context(), machine.stream());
  }

  void measure(const LayerShape &shape);

 private:
  /// Fills in the times, interleaved with a copy and the peer.
  void time(LayerRow &row, LayerData &data);
  std::unique_ptr<CudnnLayer> make_peer(const LayerShape &shape);
  std::string peer_name(const LayerShape &shape) const;
  bool check_agreement(const LayerShape &shape, const LayerData &data, const CudnnLayer &peer);

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  RandomPool pool_;
  std::optional<Cudnn> library_;
};

void LayerBench::measure(const LayerShape &shape) {
  LayerData data(machine_, pool_, shape, options_.dtype);
  LayerRow row{.shape = shape,
               .dtype = options_.dtype,
               .workspace_bytes = data.workspace_bytes(),
               .sets = data.sets(),
               .copy = {shape.min_bytes(options_.dtype)}};
  if (machine_.is_counted())
    row.counts = count_call(machine_, data.own());
  else
    time(row, data);
  report_.add(row);
}

void LayerBench::time(LayerRow &row, LayerData &data) {
  const LayerShape &shape = row.shape;
  const std::unique_ptr<CudnnLayer> peer = make_peer(shape);
  std::vector<Work> works = {data.own(), make_copy(machine_, static_cast<int64_t>(row.copy.bytes))};
  if (peer) works.push_back(data.peer(*peer));
  const std::vector<Timing> timings = stopwatch_.time(works, pace_of(options_, machine_));
  row.timing = timings[0];
  row.copy.timing = timings[1];
  if (peer) {
    row.peer = peer_result(peer_name(shape), timings[2]);
    row.peer_workspace =
        PeerWorkspace{.limit = Cudnn::kWorkspaceBytes, .used = peer->workspace_bytes()};
    if (data.is_comparable()) row.peer->agrees = check_agreement(shape, data, *peer);
  }
}

std::unique_ptr<CudnnLayer> LayerBench::make_peer(const LayerShape &shape) {
  // cuDNN's softmax writes as much as the loss with its gradient, and more than the loss alone.
  const bool is_loss_alone =
      shape.layer == Layer::kSoftmaxXent && shape.pass == LayerPass::kForward;
  if (!library_ || is_loss_alone) return nullptr;
  try {
    return std::make_unique<CudnnLayer>(*library_, shape, options_.dtype);
  } catch (const std::exception &error) {
    report_.add_note("No reference for " + shape.name() + ": " + error.what() + ".");
    return nullptr;
  }
}

std::string LayerBench::peer_name(const LayerShape &shape) const {
  return name_of(*library_) +
         (shape.layer == Layer::kSoftmaxXent ? ", softmax without loss and gradient" : "");
}

bool LayerBench::check_agreement(const LayerShape &shape, const LayerData &data,
                                 const CudnnLayer &peer) {
  const std::string differs = data.difference_to(peer);
  if (differs.empty()) return true;
  report_.add_failure("mpcore and " + peer_name(shape) + " differ for " + shape.name() + ": " +
                      differs + ".");
  return false;
}

}  // namespace

Suite layers_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite<LayerBench>("layers", read_layer_shapes(options, machine.on_host()), options,
                                machine, report);
}

}  // namespace mpbench

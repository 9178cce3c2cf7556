// mpbench layers: batch normalization, pooling and the loss, each timed interleaved with a copy of
// as many bytes and with cuDNN.
#include <cmath>
#include <memory>

#include "bench/peers/cudnn_layers.h"
#include "bench/rows/rows.h"
#include "layer_data.h"
#include "peer_library.h"
#include "step_ops.h"
#include "suite.h"

namespace mpbench {
namespace {

using Arrays = std::vector<void *>;

bool is_forward(const LayerShape &shape) {
  return shape.pass == LayerPass::kForward;
}

LayerCalls batch_norm(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const int64_t elems = shape.x_elems(), channels = shape.c;
  const mp_batchnorm_desc_t desc =
      mp_batchnorm_desc_default(shape.n * shape.h * shape.w, static_cast<int32_t>(channels), dtype);
  LayerCalls layer;
  layer.arrays = {{elems, dtype, true},
                  {elems, dtype},
                  {elems, dtype, true, true},
                  {elems, dtype, false, true},
                  {channels, MP_FP32, true},
                  {channels, MP_FP32, true},
                  {channels, MP_FP32, true},
                  {channels, MP_FP32, true},
                  {channels, MP_FP32},
                  {channels, MP_FP32},
                  {channels, MP_FP32, false, true},
                  {channels, MP_FP32, false, true}};
  layer.workspace_bytes = bytes_from(mp_batchnorm_workspace_size, machine.context(), &desc);
  layer.enqueue = [=, &machine](bool is_forward, const Arrays &a, const Buffer &workspace) {
    const auto bytes = static_cast<size_t>(workspace.bytes());
    const auto floats = [&](size_t array) { return static_cast<float *>(a[array]); };
    mp_batchnorm_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = a[kX];
    t.gamma = floats(kGamma);
    t.beta = floats(kBeta);
    t.saved_mean = floats(kSavedMean);
    t.saved_inv_std = floats(kSavedInvStd);
    if (is_forward) {
      t.running_mean = floats(kRunningMean);
      t.running_var = floats(kRunningVar);
      t.y = a[kY];
      return check(mp_batchnorm_forward_training(machine.context(), &desc, &t, workspace.data(),
                                                 bytes, machine.stream()));
    }
    t.dy = a[kDy];
    t.dx = a[kDx];
    t.dgamma = floats(kDgamma);
    t.dbeta = floats(kDbeta);
    check(mp_batchnorm_backward(machine.context(), &desc, &t, workspace.data(), bytes,
                                machine.stream()));
  };
  return layer;
}

LayerCalls pool(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const mp_pool_mode_t mode =
      shape.layer == Layer::kMaxPool ? MP_POOL_MAX : MP_POOL_AVG_INCLUDE_PAD;
  mp_pool2d_desc_t desc =
      mp_pool2d_desc_default(mode, static_cast<int32_t>(shape.n), static_cast<int32_t>(shape.h),
                             static_cast<int32_t>(shape.w), static_cast<int32_t>(shape.c),
                             shape.window, shape.window, dtype);
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = shape.pad;
  desc.stride_h = desc.stride_w = shape.stride;
  LayerCalls layer;
  layer.arrays = {{shape.x_elems(), dtype, true},
                  {shape.y_elems(), dtype},
                  {shape.y_elems(), dtype, true, true},
                  {shape.x_elems(), dtype, false, true}};
  // A byte per element of y.  The forward pass stores positions only for the backward pass.
  if (mode == MP_POOL_MAX)
    layer.arrays.push_back({(shape.y_elems() + 3) / 4, MP_INT32, true, true});
  layer.enqueue = [=, &machine](bool is_forward, const Arrays &a, const Buffer &) {
    auto *const index = static_cast<uint8_t *>(mode == MP_POOL_MAX ? a[kIndex] : nullptr);
    check(is_forward
              ? mp_pool2d_forward(machine.context(), &desc, a[kX], a[kY], index, machine.stream())
              : mp_pool2d_backward(machine.context(), &desc, a[kX], index, a[kDy], a[kDx], nullptr,
                                   machine.stream()));
  };
  return layer;
}

LayerCalls softmax_xent(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const mp_xent_desc_t desc = mp_xent_desc_default(shape.n, shape.c, dtype);
  LayerCalls layer;
  layer.arrays = {{shape.x_elems(), dtype, true},
                  {shape.n, MP_INT32, false, false, random_labels(shape.n, shape.c)},
                  {shape.n, MP_FP32},
                  {shape.x_elems(), dtype, false, true}};
  layer.enqueue = [=, &machine](bool is_forward, const Arrays &a, const Buffer &) {
    mp_xent_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = a[kX];
    t.labels = a[kLabels];
    t.row_loss = static_cast<float *>(a[kLosses]);
    if (!is_forward) t.dx = a[kDx];
    check(mp_softmax_xent(machine.context(), &desc, &t, machine.stream()));
  };
  return layer;
}

LayerCalls make_layer(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const auto make = shape.is_pool()                    ? pool
                    : shape.layer == Layer::kBatchNorm ? batch_norm
                                                       : softmax_xent;
  return make(machine, shape, dtype);
}

/// False for softmax, which computes no loss, and for the backward pass of max pooling: ties are
/// frequent in 16 bits and cuDNN may select another maximum.
bool is_comparable(const LayerShape &shape) {
  const bool has_ties = shape.layer == Layer::kMaxPool && !is_forward(shape);
  return shape.layer != Layer::kSoftmaxXent && !has_ties;
}

/// Maxima are exact.  A mean of w w values has an error of w w roundings of fp32.  Statistics of N
/// values have an error of sqrt(N) roundings in either direction, multiplied by at most gamma
/// inv_std = sqrt(3) and xhat = sqrt(3), in up to three terms: less than 32 of them for two
/// results.
Tolerance tolerance_of(const LayerShape &shape, mp_dtype_t dtype) {
  if (shape.layer == Layer::kMaxPool) return {.absolute = 0, .relative = 0};
  const double absolute =
      shape.layer == Layer::kAvgPool
          ? shape.window * shape.window * 0x1p-23
          : 32 * std::sqrt(static_cast<double>(shape.n * shape.h * shape.w)) * 0x1p-24;
  return {.absolute = absolute, .relative = 2 * unit_roundoff(dtype)};
}

class LayerBench : BenchState {
 public:
  using BenchState::BenchState;

  void measure(const LayerShape &shape);

 private:
  /// Fills in the times, interleaved with a copy and the peer.
  void time(LayerRow &row, LayerData &data);
  std::unique_ptr<CudnnLayer> make_peer(const LayerShape &shape);
  std::string peer_name(const LayerShape &shape) const;

  Stopwatch stopwatch_{machine_};
  std::unique_ptr<Cudnn> library_ =
      open_peer<Cudnn>(options_.peers.cudnn, "layers", machine_, report_);
};

void LayerBench::measure(const LayerShape &shape) {
  const mp_dtype_t dtype = options_.dtype;
  const double min_bytes = shape.min_bytes(dtype);
  LayerData data(machine_, make_layer(machine_, shape, dtype), is_forward(shape), dtype, min_bytes);
  LayerRow row{.shape = shape,
               .dtype = dtype,
               .workspace_bytes = data.workspace_bytes(),
               .sets = data.sets(),
               .copy = {min_bytes}};
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
  if (peer) works.push_back([&] { peer->enqueue(data.next_set()); });
  const std::vector<Timing> timings = stopwatch_.time(works, pace_of(options_, machine_));
  row.timing = timings[0];
  row.copy.timing = timings[1];
  if (peer) {
    row.peer = peer_result(peer_name(shape), timings[2]);
    row.peer_workspace =
        PeerWorkspace{.limit = Cudnn::kWorkspaceBytes, .used = peer->workspace_bytes()};
    if (is_comparable(shape))
      row.peer->agrees = report_.add_agreement(
          peer_name(shape), shape.name(),
          data.difference_to([&] { peer->enqueue(data.first_set()); }, is_forward(shape) ? kY : kDx,
                             tolerance_of(shape, options_.dtype)));
  }
}

std::unique_ptr<CudnnLayer> LayerBench::make_peer(const LayerShape &shape) {
  // cuDNN's softmax writes as much as the loss with its gradient, and more than the loss alone.
  const bool is_loss_alone = shape.layer == Layer::kSoftmaxXent && is_forward(shape);
  if (!library_ || is_loss_alone) return nullptr;
  return report_.make_or_note("reference for " + shape.name(), [&] {
    return std::make_unique<CudnnLayer>(*library_, shape, options_.dtype);
  });
}

std::string LayerBench::peer_name(const LayerShape &shape) const {
  return name_of(*library_) +
         (shape.layer == Layer::kSoftmaxXent ? ", softmax without loss and gradient" : "");
}

}  // namespace

Suite layers_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite_of_sets<LayerBench, LayerShape>("layers", options, machine, report);
}

}  // namespace mpbench

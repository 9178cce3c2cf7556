// Calls of the layers around GEMMs and convolutions.
#include <cmath>

#include "bench/peers/cudnn.h"
#include "layer_data.h"

namespace mpbench {
namespace {

using Arrays = std::vector<void *>;

LayerCalls batch_norm(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const int64_t elems = shape.x_elems(), channels = shape["c"], rows = elems / channels;
  const mp_batchnorm_desc_t desc =
      mp_batchnorm_desc_default(rows, static_cast<int32_t>(channels), dtype);
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
  // Statistics of N values have an error of sqrt(N) roundings in either direction, multiplied by at
  // most gamma inv_std = sqrt(3) and xhat = sqrt(3), in up to three terms: less than 32 of them for
  // two results.
  layer.compared = {shape.is_forward ? kY : kDx,
                    {.absolute = 32 * std::sqrt(static_cast<double>(rows)) * 0x1p-24,
                     .relative = 2 * unit_roundoff(dtype)}};
  layer.workspace_bytes = bytes_from(mp_batchnorm_workspace_size, machine.context(), &desc);
  layer.enqueue = [=, &machine](bool is_forward, const Arrays &a, const Buffer &workspace) {
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
      return machine.call(mp_batchnorm_forward_training, &desc, &t, workspace);
    }
    t.dy = a[kDy];
    t.dx = a[kDx];
    t.dgamma = floats(kDgamma);
    t.dbeta = floats(kDbeta);
    machine.call(mp_batchnorm_backward, &desc, &t, workspace);
  };
  return layer;
}

LayerCalls pool(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const mp_pool_mode_t mode = shape.form == "maxpool" ? MP_POOL_MAX : MP_POOL_AVG_INCLUDE_PAD;
  const auto extent = [&](const char *name) { return static_cast<int32_t>(shape[name]); };
  mp_pool2d_desc_t desc =
      mp_pool2d_desc_default(mode, extent("n"), extent("h"), extent("w"), extent("c"),
                             extent("window"), extent("window"), dtype);
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = extent("pad");
  desc.stride_h = desc.stride_w = extent("stride");
  LayerCalls layer;
  layer.arrays = {{shape.x_elems(), dtype, true},
                  {shape.y_elems(), dtype},
                  {shape.y_elems(), dtype, true, true},
                  {shape.x_elems(), dtype, false, true}};
  // Maxima are exact, but ties are frequent in 16 bits, and cuDNN may select another maximum in the
  // backward pass.  A mean of w w values has an error of w w roundings of fp32.
  if (mode != MP_POOL_MAX)
    layer.compared = {shape.is_forward ? kY : kDx,
                      {.absolute = static_cast<double>(shape["window"] * shape["window"]) * 0x1p-23,
                       .relative = 2 * unit_roundoff(dtype)}};
  else if (shape.is_forward)
    layer.compared = {kY, {.absolute = 0, .relative = 0}};
  // A byte per element of y.  The forward pass stores positions only for the backward pass.
  if (mode == MP_POOL_MAX)
    layer.arrays.push_back({(shape.y_elems() + 3) / 4, MP_INT32, true, true});
  layer.enqueue = [=, &machine](bool is_forward, const Arrays &a, const Buffer &) {
    auto *const index = static_cast<uint8_t *>(mode == MP_POOL_MAX ? a[kIndex] : nullptr);
    if (is_forward)
      machine.call(mp_pool2d_forward, &desc, a[kX], a[kY], index);
    else
      machine.call(mp_pool2d_backward, &desc, a[kX], index, a[kDy], a[kDx], nullptr);
  };
  return layer;
}

/// Not compared: cuDNN's softmax computes no loss.
LayerCalls softmax_xent(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const int64_t rows = shape["n"], classes = shape["c"];
  const mp_xent_desc_t desc = mp_xent_desc_default(rows, classes, dtype);
  LayerCalls layer;
  layer.arrays = {{shape.x_elems(), dtype, true},
                  {rows, MP_INT32, false, false, random_labels(rows, classes)},
                  {rows, MP_FP32},
                  {shape.x_elems(), dtype, false, true}};
  layer.enqueue = [=, &machine](bool is_forward, const Arrays &a, const Buffer &) {
    mp_xent_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = a[kX];
    t.labels = a[kLabels];
    t.row_loss = static_cast<float *>(a[kLosses]);
    if (!is_forward) t.dx = a[kDx];
    machine.call(mp_softmax_xent, &desc, &t);
  };
  return layer;
}

}  // namespace

LayerCalls make_layer(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const auto make = shape.suite != "layers"     ? make_transformer_layer
                    : shape.is_pool()           ? pool
                    : shape.form == "batchnorm" ? batch_norm
                                                : softmax_xent;
  return make(machine, shape, dtype);
}

}  // namespace mpbench

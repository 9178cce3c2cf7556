// mpcore/loss.h.
#include <algorithm>
#include <cmath>

#include "capi/check.h"
#include "capi/context.h"
#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/backend.h"
#include "kernels/layers/layer_args.h"
#include "mpcore.h"

namespace mp {

namespace {

// --------------------------------------------------------------------------- softmax cross-entropy

bool is_soft(const mp_xent_desc_t &desc) {
  return enum_value(desc.dtype_labels) <= MP_FP32;
}

mp_xent_desc_t read_desc(const mp_xent_desc_t *user) {
  mp_xent_desc_t desc = read_struct(user, "desc");
  require_dtype(desc.dtype, "dtype");
  (is_soft(desc) ? require_dtype : require_integer_dtype)(desc.dtype_labels, "dtype_labels");
  require_not_negative(desc.rows, "rows");
  require_positive(desc.classes, "classes");
  const NamedNumber rows{desc.rows, "rows"}, classes{desc.classes, "classes"};
  require_matrix(rows, classes, {desc.ld_logits, "ld_logits"}, desc.dtype);
  require_matrix(rows, classes, {desc.ld_dlogits, "ld_dlogits"}, desc.dtype);
  require_finite(desc.weight, "weight");
  require_flags(desc.flags, MP_XENT_FLAG_IGNORE_LABEL | MP_XENT_FLAG_LOG_PROBABILITIES, "flags");
  MP_REQUIRE(desc.label_smoothing >= 0.0f && desc.label_smoothing < 1.0f, MP_ERROR_INVALID_ARGUMENT,
             "label_smoothing = ", desc.label_smoothing, " is outside [0, 1)");
  require_finite(desc.z_loss, "z_loss");
  MP_REQUIRE(desc.z_loss >= 0.0f, MP_ERROR_INVALID_ARGUMENT, "z_loss = ", desc.z_loss,
             " is negative");
  MP_REQUIRE(desc.z_loss == 0.0f || (desc.flags & MP_XENT_FLAG_LOG_PROBABILITIES) == 0,
             MP_ERROR_INVALID_ARGUMENT, "z_loss = ", desc.z_loss,
             " must be 0 with MP_XENT_FLAG_LOG_PROBABILITIES");
  require_zero(desc.reserved0, "reserved0");
  if (is_soft(desc)) {
    if (desc.ld_labels == 0) desc.ld_labels = desc.classes;
    require_matrix(rows, classes, {desc.ld_labels, "ld_labels"}, desc.dtype_labels);
  }
  MP_REQUIRE(is_soft(desc) || desc.ld_labels == 0, MP_ERROR_INVALID_ARGUMENT,
             "ld_labels = ", desc.ld_labels, " must be 0 if dtype_labels = ", desc.dtype_labels);
  return desc;
}

mp_xent_tensors_t read_tensors(const mp_xent_tensors_t *user) {
  const mp_xent_tensors_t t = read_struct(user, "tensors");
  require_zero(t.reserved0, "tensors->reserved0");
  require_unset(t.w, "tensors->w");
  require_unset(t.bias, "tensors->bias");
  require_unset<const void *>(t.dw, "tensors->dw");
  require_unset<const void *>(t.dbias, "tensors->dbias");
  return t;
}

/// Checks addresses, layouts and overlaps for at least one row.
void require_tensors(const mp_xent_desc_t &d, const mp_xent_tensors_t &t) {
  require_device(t.x, "tensors->x", mp_dtype_size(d.dtype));
  require_device(t.labels, "tensors->labels", mp_dtype_size(d.dtype_labels));
  require_device(t.row_loss, "tensors->row_loss");
  require_aligned(t.loss_scale, "tensors->loss_scale");
  require_aligned(t.count, "tensors->count");
  require_aligned(t.lse, "tensors->lse");
  require_aligned(t.correct, "tensors->correct");
  require_aligned(t.dx, "tensors->dx", mp_dtype_size(d.dtype));
  require_aligned(t.class_weights, "tensors->class_weights");
  MP_REQUIRE(t.correct == nullptr || !is_soft(d), MP_ERROR_INVALID_ARGUMENT,
             "tensors->correct = ", t.correct, " must be NULL if dtype_labels = ", d.dtype_labels);
  require_stats(t.stats);
  MP_REQUIRE(t.dx != t.x || d.ld_dlogits == d.ld_logits, MP_ERROR_INVALID_ARGUMENT,
             "ld_dlogits = ", d.ld_dlogits, " must equal ld_logits = ", d.ld_logits,
             " if tensors->dx = tensors->x");
  const auto matrix = [&](const void *data, const char *name, int64_t ld, mp_dtype_t dtype) {
    return matrix_region(data, name, d.rows, d.classes, ld, dtype);
  };
  const Region in = matrix(t.x, "tensors->x", d.ld_logits, d.dtype);
  const Region labels = is_soft(d)
                            ? matrix(t.labels, "tensors->labels", d.ld_labels, d.dtype_labels)
                            : dense_region(t.labels, "tensors->labels", d.rows, d.dtype_labels);
  const Region gradient = matrix(t.dx, "tensors->dx", d.ld_dlogits, d.dtype);
  const Region weights = dense_region(t.class_weights, "tensors->class_weights", d.classes);
  const Region losses = dense_region(t.row_loss, "tensors->row_loss", d.rows);
  const Region lse = dense_region(t.lse, "tensors->lse", d.rows);
  const Region scale = dense_region(t.loss_scale, "tensors->loss_scale");
  const Region count = dense_region(t.count, "tensors->count");
  require_apart_or_same(gradient, in);
  require_apart(gradient, {labels, scale, count, weights, losses, lse});
  require_apart(losses, {in, labels, scale, count, weights, lse});
  require_apart(lse, {in, labels, scale, count, weights});
  const Region loss = dense_region(t.loss, "tensors->loss");
  const Region correct = dense_region(t.correct, "tensors->correct");
  require_apart(loss, {in, labels, scale, gradient, losses, lse, count, weights});
  require_apart(correct, {in, labels, scale, count, weights, gradient, losses, lse, loss});
  require_stats_apart(t.stats, kStatsOfTensors, {gradient, losses, lse, loss, correct});
}

// ---------------------------------------------------------------------------- elementwise losses

mp_loss_desc_t read_desc(const mp_loss_desc_t *user) {
  const mp_loss_desc_t d = read_struct(user, "desc");
  require_enum(d.kind, "kind", MP_LOSS_MSE, MP_LOSS_LINEAR);
  require_dtype(d.dtype, "dtype");
  require_dtype(d.dtype_target, "dtype_target");
  require_not_negative(d.count, "count");
  MP_REQUIRE(bytes_fit(d.count, MP_FP32), MP_ERROR_INVALID_ARGUMENT, "count = ", d.count,
             ": size in bytes exceeds 2^63 - 1");
  require_finite(d.weight, "weight");
  require_enum(d.reduction, "reduction", MP_LOSS_REDUCTION_MEAN, MP_LOSS_REDUCTION_SUM);
  require_flags(d.flags, MP_LOSS_FLAG_IGNORE_TARGET, "flags");
  MP_REQUIRE((d.kind != MP_LOSS_HUBER && d.kind != MP_LOSS_SMOOTH_L1) ||
                 (d.delta > 0.0f && std::isfinite(d.delta)),
             MP_ERROR_INVALID_ARGUMENT, "delta = ", d.delta, " must be positive and finite");
  require_zero(d.reserved0, "reserved0");
  return d;
}

/// Returns the workspace size, monotonic in count; the number of chunks is not.
size_t workspace_bytes(const mp_loss_desc_t &desc) {
  const int64_t steps = (desc.count + LossArgs::kAtOnce - 1) / LossArgs::kAtOnce;
  return static_cast<size_t>(std::min(steps, kMaxLossChunks)) * sizeof(LossPartial);
}

}  // namespace

}  // namespace mp

mp_status_t mp_softmax_xent(mp_context_t context, const mp_xent_desc_t *desc,
                            const mp_xent_tensors_t *tensors, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_xent_desc_t d = mp::read_desc(desc);
    const mp_xent_tensors_t t = mp::read_tensors(tensors);
    mp::require_aligned(t.loss, "tensors->loss");
    if (d.rows > 0) {
      mp::require_tensors(d, t);
      c.backend.softmax_xent(c.device, {t, d}, stream);
    } else {
      mp::store_empty_loss(c, t.loss, t.count == nullptr, stream);
    }
  });
}

mp_status_t mp_xent_count(mp_context_t context, int64_t rows, mp_dtype_t dtype_labels,
                          const void *labels, int64_t ignore_label, float *count,
                          mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload("rows", rows), [&] {
    const mp::Context &c = *mp::require_context(context);
    mp::require_integer_dtype(dtype_labels, "dtype_labels");
    mp::require_count(rows, "rows", dtype_labels);
    mp::require_device(count, "count");
    if (rows == 0) return;
    mp::require_device(labels, "labels", mp_dtype_size(dtype_labels));
    mp::require_apart(mp::dense_region(count, "count"),
                      mp::dense_region(labels, "labels", rows, dtype_labels));
    mp::XentCountArgs args{};
    args.labels = labels;
    args.desc.rows = rows;
    args.desc.dtype_labels = dtype_labels;
    args.desc.flags = MP_XENT_FLAG_IGNORE_LABEL;
    args.desc.ignore_label = ignore_label;
    args.sum = count;
    c.backend.xent_count(c.device, args, stream);
  });
}

mp_status_t mp_loss_workspace_size(mp_context_t context, const mp_loss_desc_t *desc,
                                   size_t *bytes) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    mp::require_context(context);
    const mp_loss_desc_t d = mp::read_desc(desc);
    mp::require_pointer(bytes, "bytes") = mp::workspace_bytes(d);
  });
}

mp_status_t mp_loss(mp_context_t context, const mp_loss_desc_t *desc,
                    const mp_loss_tensors_t *tensors, void *workspace, size_t workspace_bytes,
                    mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_loss_desc_t d = mp::read_desc(desc);
    const mp_loss_tensors_t t = mp::read_struct(tensors, "tensors");
    mp::require_zero(t.reserved0, "tensors->reserved0");
    mp::require_aligned(t.loss, "tensors->loss");
    if (d.count == 0)
      return mp::store_empty_loss(c, t.loss, d.reduction == MP_LOSS_REDUCTION_MEAN, stream);
    if (d.kind == MP_LOSS_LINEAR)
      mp::require_aligned(t.prediction, "tensors->prediction", mp_dtype_size(d.dtype));
    else
      mp::require_device(t.prediction, "tensors->prediction", mp_dtype_size(d.dtype));
    mp::require_device(t.target, "tensors->target", mp_dtype_size(d.dtype_target));
    mp::require_aligned(t.weights, "tensors->weights");
    mp::require_aligned(t.loss_scale, "tensors->loss_scale");
    mp::require_aligned(t.element_loss, "tensors->element_loss");
    mp::require_aligned(t.dprediction, "tensors->dprediction", mp_dtype_size(d.dtype));
    mp::require_stats(t.stats);
    const mp::Region in = mp::dense_region(t.prediction, "tensors->prediction", d.count, d.dtype);
    const mp::Region wanted =
        mp::dense_region(t.target, "tensors->target", d.count, d.dtype_target);
    const mp::Region factors = mp::dense_region(t.weights, "tensors->weights", d.count);
    const mp::Region gradient =
        mp::dense_region(t.dprediction, "tensors->dprediction", d.count, d.dtype);
    const mp::Region losses = mp::dense_region(t.element_loss, "tensors->element_loss", d.count);
    const mp::Region scale = mp::dense_region(t.loss_scale, "tensors->loss_scale");
    mp::require_apart_or_same(gradient, in);
    mp::require_apart(gradient, {wanted, factors, scale, losses});
    mp::require_apart(losses, {in, wanted, factors, scale});
    const mp::Region loss = mp::dense_region(t.loss, "tensors->loss");
    const size_t bytes = mp::workspace_bytes(d);
    const mp::Region space = mp::workspace_region(workspace, bytes);
    mp::require_apart(loss, {in, wanted, factors, scale, gradient, losses});
    mp::require_apart(space, {in, wanted, factors, scale, gradient, losses, loss});
    mp::require_stats_apart(t.stats, mp::kStatsOfTensors, {gradient, losses, loss, space});
    mp::require_workspace(workspace, workspace_bytes, bytes);
    c.backend.element_loss(c.device, {t, d, static_cast<mp::LossPartial *>(workspace)}, stream);
  });
}

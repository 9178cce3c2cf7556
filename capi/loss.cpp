// mpcore/loss.h.
#include <algorithm>

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

mp_xent_desc_t read_desc(const mp_xent_desc_t *user) {
  const mp_xent_desc_t desc = read_struct(user, "desc");
  require_dtype(desc.dtype, "dtype");
  require_integer_dtype(desc.dtype_labels, "dtype_labels");
  require_not_negative(desc.rows, "rows");
  require_positive(desc.classes, "classes");
  const NamedNumber rows{desc.rows, "rows"}, classes{desc.classes, "classes"};
  require_matrix(rows, classes, {desc.ld_logits, "ld_logits"}, desc.dtype);
  require_matrix(rows, classes, {desc.ld_dlogits, "ld_dlogits"}, desc.dtype);
  require_finite(desc.weight, "weight");
  require_flags(desc.flags, MP_XENT_FLAG_IGNORE_LABEL, "flags");
  MP_REQUIRE(desc.label_smoothing >= 0.0f && desc.label_smoothing < 1.0f, MP_ERROR_INVALID_ARGUMENT,
             "label_smoothing = ", desc.label_smoothing, " is outside [0, 1)");
  require_unset(desc.z_loss, "z_loss");
  require_zero(desc.reserved0, "reserved0");
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
  require_stats(t.stats);
  MP_REQUIRE(t.dx != t.x || d.ld_dlogits == d.ld_logits, MP_ERROR_INVALID_ARGUMENT,
             "ld_dlogits = ", d.ld_dlogits, " must equal ld_logits = ", d.ld_logits,
             " if tensors->dx = tensors->x");
  const auto matrix = [&](const void *data, const char *name, int64_t ld) {
    return matrix_region(data, name, d.rows, d.classes, ld, d.dtype);
  };
  const Region in = matrix(t.x, "tensors->x", d.ld_logits);
  const Region labels = dense_region(t.labels, "tensors->labels", d.rows, d.dtype_labels);
  const Region gradient = matrix(t.dx, "tensors->dx", d.ld_dlogits);
  const Region losses = dense_region(t.row_loss, "tensors->row_loss", d.rows);
  const Region lse = dense_region(t.lse, "tensors->lse", d.rows);
  const Region scale = dense_region(t.loss_scale, "tensors->loss_scale");
  const Region count = dense_region(t.count, "tensors->count");
  require_apart_or_same(gradient, in);
  require_apart(gradient, {labels, scale, count, losses, lse});
  require_apart(losses, {in, labels, scale, count, lse});
  require_apart(lse, {in, labels, scale, count});
  const Region loss = dense_region(t.loss, "tensors->loss");
  const Region correct = dense_region(t.correct, "tensors->correct");
  require_apart(loss, {in, labels, gradient, losses, lse, count});
  require_apart(correct, {in, labels, scale, count, gradient, losses, lse, loss});
  require_stats_apart(t.stats, kStatsOfTensors, {gradient, losses, lse, loss, correct});
}

// ---------------------------------------------------------------------------- elementwise losses

mp_loss_desc_t read_desc(const mp_loss_desc_t *user) {
  const mp_loss_desc_t d = read_struct(user, "desc");
  require_enum(d.kind, "kind", MP_LOSS_MSE, MP_LOSS_BCE_WITH_LOGITS);
  require_dtype(d.dtype, "dtype");
  require_dtype(d.dtype_target, "dtype_target");
  require_not_negative(d.count, "count");
  MP_REQUIRE(bytes_fit(d.count, MP_FP32), MP_ERROR_INVALID_ARGUMENT, "count = ", d.count,
             ": size in bytes exceeds 2^63 - 1");
  require_finite(d.weight, "weight");
  require_enum(d.reduction, "reduction", MP_LOSS_REDUCTION_MEAN, MP_LOSS_REDUCTION_SUM);
  require_flags(d.flags, MP_LOSS_FLAG_IGNORE_TARGET, "flags");
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
    } else if (t.loss != nullptr) {
      // The mean of no rows is NaN: all bits are 1.
      c.backend.fill(c.device, t.loss, 0xFF, sizeof *t.loss, stream);
    }
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
    if (d.count == 0) {
      // The mean of no elements is NaN: all bits are 1.
      const int byte = d.reduction == MP_LOSS_REDUCTION_MEAN ? 0xFF : 0;
      if (t.loss != nullptr) c.backend.fill(c.device, t.loss, byte, sizeof *t.loss, stream);
      return;
    }
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
    mp::require_apart_or_same(gradient, in);
    mp::require_apart(
        gradient, {wanted, factors, mp::dense_region(t.loss_scale, "tensors->loss_scale"), losses});
    mp::require_apart(losses, {in, wanted, factors});
    const mp::Region loss = mp::dense_region(t.loss, "tensors->loss");
    mp::require_apart(loss, {in, wanted, factors, gradient, losses});
    mp::require_stats_apart(t.stats, mp::kStatsOfTensors, {gradient, losses, loss});
    mp::require_workspace(workspace, workspace_bytes, mp::workspace_bytes(d));
    c.backend.element_loss(c.device, {t, d, static_cast<mp::LossPartial *>(workspace)}, stream);
  });
}

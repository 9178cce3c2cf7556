// mpcore/loss.h.
#include <algorithm>
#include <cmath>

#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/layers/layer_args.h"

using namespace mp;

namespace {

// --------------------------------------------------------------------------- softmax cross-entropy

bool is_soft(const mp_xent_desc_t &desc) {
  return enum_value(desc.dtype_labels) <= kLastFloatType;
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
  require_fraction(desc.label_smoothing, "label_smoothing");
  require_finite_not_negative(desc.z_loss, "z_loss");
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

mp_xent_tensors_t read_xent_tensors(const mp_xent_tensors_t *user) {
  const mp_xent_tensors_t t = read_tensors(user);
  MP_CHECK_TENSORS(require_unset, t, w, bias, dw, dbias);
  return t;
}

/// Checks addresses, layouts and overlaps for at least one row.
void require_tensors_of(const mp_xent_desc_t &d, const mp_xent_tensors_t &t) {
  MP_REQUIRE(t.correct == nullptr || !is_soft(d), MP_ERROR_INVALID_ARGUMENT,
             "tensors->correct = ", t.correct, " must be NULL if dtype_labels = ", d.dtype_labels);
  const auto matrix = [&](const void *data, const char *name, int64_t ld, mp_dtype_t dtype) {
    return matrix_region(data, name, d.rows, d.classes, ld, dtype);
  };
  const Region labels = is_soft(d)
                            ? matrix(t.labels, "tensors->labels", d.ld_labels, d.dtype_labels)
                            : dense_region(t.labels, "tensors->labels", d.rows, d.dtype_labels);
  require_tensors({{matrix(t.x, "tensors->x", d.ld_logits, d.dtype), kReads},
                   {labels, kReads},
                   {dense_region(t.class_weights, "tensors->class_weights", d.classes), kMayRead},
                   {dense_region(t.loss_scale, "tensors->loss_scale"), kMayRead},
                   {dense_region(t.count, "tensors->count"), kMayRead},
                   {matrix(t.dx, "tensors->dx", d.ld_dlogits, d.dtype), kMayWrite, {"tensors->x"}},
                   {dense_region(t.row_loss, "tensors->row_loss", d.rows), kWrites},
                   {dense_region(t.lse, "tensors->lse", d.rows), kMayWrite},
                   {dense_region(t.loss, "tensors->loss"), kMayWrite},
                   {dense_region(t.correct, "tensors->correct"), kMayWrite}},
                  t.stats);
  MP_REQUIRE(t.dx != t.x || d.ld_dlogits == d.ld_logits, MP_ERROR_INVALID_ARGUMENT,
             "ld_dlogits = ", d.ld_dlogits, " must equal ld_logits = ", d.ld_logits,
             " if tensors->dx = tensors->x");
}

// ---------------------------------------------------------------------------- elementwise losses

mp_loss_desc_t read_desc(const mp_loss_desc_t *user) {
  const mp_loss_desc_t d = read_struct(user, "desc");
  require_enum(d.kind, "kind");
  MP_CHECK_FIELDS(require_dtype, d, dtype, dtype_target);
  require_count(d.count, "count", MP_FP32);
  require_finite(d.weight, "weight");
  require_enum(d.reduction, "reduction");
  require_flags(d.flags, MP_LOSS_FLAG_IGNORE_TARGET, "flags");
  MP_REQUIRE((d.kind != MP_LOSS_HUBER && d.kind != MP_LOSS_SMOOTH_L1) ||
                 (d.delta > 0.0f && std::isfinite(d.delta)),
             MP_ERROR_INVALID_ARGUMENT, "delta = ", d.delta, " must be positive and finite");
  require_zero(d.reserved0, "reserved0");
  return d;
}

/// Returns the workspace size, monotonic in count; the number of chunks is not.
size_t workspace_size(const mp_loss_desc_t &desc) {
  const int64_t steps = (desc.count + LossArgs::kAtOnce - 1) / LossArgs::kAtOnce;
  return static_cast<size_t>(std::min(steps, kMaxLossChunks)) * sizeof(LossPartial);
}

}  // namespace

mp_status_t mp_softmax_xent(mp_context_t context, const mp_xent_desc_t *desc,
                            const mp_xent_tensors_t *tensors, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_xent_tensors_t t = read_xent_tensors(tensors);
    require_aligned(t.loss, "tensors->loss");
    if (d.rows > 0) {
      require_tensors_of(d, t);
      c.backend.softmax_xent(c.device, {t, d}, stream);
    } else {
      store_empty_loss(c, t.loss, t.count == nullptr, stream);
    }
  });
}

mp_status_t mp_xent_count(mp_context_t context, int64_t rows, mp_dtype_t dtype_labels,
                          const void *labels, int64_t ignore_label, float *count,
                          mp_stream_t stream) {
  return call(__func__, context, nvtx_payload("rows", rows), [&](const Context &c) {
    require_integer_dtype(dtype_labels, "dtype_labels");
    require_count(rows, "rows", dtype_labels);
    require_tensors({{dense_region(labels, "labels", rows, dtype_labels), kReads},
                     {dense_region(count, "count"), kWrites}});
    if (rows == 0) return;
    XentArgs args{};
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
  return call(__func__, context, desc, read_desc, [&](const auto &, const auto &d) {
    require_pointer(bytes, "bytes") = workspace_size(d);
  });
}

mp_status_t mp_loss(mp_context_t context, const mp_loss_desc_t *desc,
                    const mp_loss_tensors_t *tensors, void *workspace, size_t workspace_bytes,
                    mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_loss_tensors_t t = read_tensors(tensors);
    require_aligned(t.loss, "tensors->loss");
    if (d.count == 0)
      return store_empty_loss(c, t.loss, d.reduction == MP_LOSS_REDUCTION_MEAN, stream);
    const size_t bytes = workspace_size(d);
    const auto elements = [&](const void *data, const char *name, mp_dtype_t dtype) {
      return dense_region(data, name, d.count, dtype);
    };
    require_tensors({{elements(t.prediction, "tensors->prediction", d.dtype),
                      d.kind == MP_LOSS_LINEAR ? kMayRead : kReads},
                     {elements(t.target, "tensors->target", d.dtype_target), kReads},
                     {elements(t.weights, "tensors->weights", MP_FP32), kMayRead},
                     {dense_region(t.loss_scale, "tensors->loss_scale"), kMayRead},
                     {elements(t.element_loss, "tensors->element_loss", MP_FP32), kMayWrite},
                     {elements(t.dprediction, "tensors->dprediction", d.dtype),
                      kMayWrite,
                      {"tensors->prediction"}},
                     {dense_region(t.loss, "tensors->loss"), kMayWrite},
                     {workspace_region(workspace, bytes), kMayWrite}},
                    t.stats);
    require_workspace(workspace, workspace_bytes, bytes);
    c.backend.element_loss(c.device, {t, d, static_cast<LossPartial *>(workspace)}, stream);
  });
}

// mpcore/layers.h: losses.
#include <algorithm>

#include "capi/check.h"
#include "capi/context.h"
#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/backend.h"
#include "kernels/layers/layer_args.h"
#include "mpcore.h"

// ---------------------------------------------------------------------------- elementwise losses

namespace mp {

namespace {

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

mp_status_t mp_loss_workspace_size(mp_context_t context, const mp_loss_desc_t *desc,
                                   size_t *bytes) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    mp::require_context(context);
    const mp_loss_desc_t d = mp::read_desc(desc);
    mp::require_pointer(bytes, "bytes") = mp::workspace_bytes(d);
  });
}

mp_status_t mp_loss(mp_context_t context, const mp_loss_desc_t *desc, const void *prediction,
                    const void *target, const float *weights, const float *loss_scale,
                    float *element_loss, float *loss, void *dprediction, void *workspace,
                    size_t workspace_bytes, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_loss_desc_t d = mp::read_desc(desc);
    mp::require_aligned(loss, "loss");
    if (d.count == 0) {
      // The mean of no elements is NaN: all bits are 1.
      const int byte = d.reduction == MP_LOSS_REDUCTION_MEAN ? 0xFF : 0;
      if (loss != nullptr) c.backend.fill(c.device, loss, byte, sizeof *loss, stream);
      return;
    }
    mp::require_device(prediction, "prediction", mp_dtype_size(d.dtype));
    mp::require_device(target, "target", mp_dtype_size(d.dtype_target));
    mp::require_aligned(weights, "weights");
    mp::require_aligned(loss_scale, "loss_scale");
    mp::require_aligned(element_loss, "element_loss");
    mp::require_aligned(dprediction, "dprediction", mp_dtype_size(d.dtype));
    const mp::Region in = mp::dense_region(prediction, "prediction", d.count, d.dtype);
    const mp::Region wanted = mp::dense_region(target, "target", d.count, d.dtype_target);
    const mp::Region factors = mp::dense_region(weights, "weights", d.count);
    const mp::Region gradient = mp::dense_region(dprediction, "dprediction", d.count, d.dtype);
    const mp::Region losses = mp::dense_region(element_loss, "element_loss", d.count);
    mp::require_apart_or_same(gradient, in);
    mp::require_apart(gradient,
                      {wanted, factors, mp::dense_region(loss_scale, "loss_scale"), losses});
    mp::require_apart(losses, {in, wanted, factors});
    mp::require_apart(mp::dense_region(loss, "loss"), {in, wanted, factors, gradient, losses});
    const size_t needed = mp::workspace_bytes(d);
    MP_REQUIRE(workspace_bytes >= needed, MP_ERROR_WORKSPACE_TOO_SMALL,
               "workspace_bytes = ", workspace_bytes, " must be at least ", needed);
    mp::require_device(workspace, "workspace", 256);
    c.backend.element_loss(c.device,
                           {.desc = d,
                            .prediction = prediction,
                            .target = target,
                            .weights = weights,
                            .loss_scale = loss_scale,
                            .element_loss = element_loss,
                            .loss = loss,
                            .dprediction = dprediction,
                            .workspace = static_cast<mp::LossPartial *>(workspace)},
                           stream);
  });
}

// --------------------------------------------------------------------------- softmax cross-entropy

namespace mp {

namespace {

void require_rows(const mp_xent_desc_t &desc, int64_t ld, const char *ld_name) {
  MP_REQUIRE(ld >= desc.classes, MP_ERROR_INVALID_ARGUMENT, ld_name, " = ", ld,
             " is smaller than classes = ", desc.classes);
  int64_t elems;
  MP_REQUIRE(strided_extent(desc.rows, ld, desc.classes, &elems) && bytes_fit(elems, desc.dtype),
             MP_ERROR_INVALID_ARGUMENT, "rows = ", desc.rows, " with ", ld_name, " = ", ld,
             ": size in bytes exceeds 2^63 - 1");
}

mp_xent_desc_t read_desc(const mp_xent_desc_t *user) {
  const mp_xent_desc_t desc = read_struct(user, "desc");
  require_dtype(desc.dtype, "dtype");
  require_not_negative(desc.rows, "rows");
  require_positive(desc.classes, "classes");
  require_rows(desc, desc.ld_logits, "ld_logits");
  require_rows(desc, desc.ld_dlogits, "ld_dlogits");
  require_finite(desc.weight, "weight");
  require_flags(desc.flags, MP_XENT_FLAG_IGNORE_LABEL, "flags");
  MP_REQUIRE(desc.label_smoothing >= 0.0f && desc.label_smoothing < 1.0f, MP_ERROR_INVALID_ARGUMENT,
             "label_smoothing = ", desc.label_smoothing, " is outside [0, 1)");
  return desc;
}

}  // namespace

}  // namespace mp

mp_status_t mp_softmax_xent(mp_context_t context, const mp_xent_desc_t *desc, const void *logits,
                            const int32_t *labels, const float *loss_scale, float *row_loss,
                            float *loss, int64_t *correct, void *dlogits, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(desc), [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_xent_desc_t d = mp::read_desc(desc);
    mp::require_aligned(loss, "loss");
    if (d.rows == 0) {
      // The mean of no rows is NaN: all bits are 1.
      if (loss != nullptr) c.backend.fill(c.device, loss, 0xFF, sizeof *loss, stream);
      return;
    }
    mp::require_device(logits, "logits", mp_dtype_size(d.dtype));
    mp::require_device(labels, "labels");
    mp::require_aligned(loss_scale, "loss_scale");
    mp::require_device(row_loss, "row_loss");
    mp::require_aligned(correct, "correct");
    mp::require_aligned(dlogits, "dlogits", mp_dtype_size(d.dtype));
    MP_REQUIRE(dlogits != logits || d.ld_dlogits == d.ld_logits, MP_ERROR_INVALID_ARGUMENT,
               "ld_dlogits = ", d.ld_dlogits, " must equal ld_logits = ", d.ld_logits,
               " if dlogits = logits");
    const auto matrix = [&](const void *data, const char *name, int64_t ld) {
      return mp::matrix_region(data, name, d.rows, d.classes, ld, d.dtype);
    };
    const mp::Region in = matrix(logits, "logits", d.ld_logits);
    const mp::Region targets = mp::dense_region(labels, "labels", d.rows);
    const mp::Region gradient = matrix(dlogits, "dlogits", d.ld_dlogits);
    const mp::Region losses = mp::dense_region(row_loss, "row_loss", d.rows);
    mp::require_apart_or_same(gradient, in);
    mp::require_apart(gradient, {targets, mp::dense_region(loss_scale, "loss_scale"), losses});
    mp::require_apart(losses, {in, targets});
    mp::require_apart(mp::dense_region(loss, "loss"), {in, targets, gradient, losses});
    c.backend.softmax_xent(c.device,
                           {.dtype = d.dtype,
                            .rows = d.rows,
                            .classes = d.classes,
                            .ld_logits = d.ld_logits,
                            .ld_dlogits = d.ld_dlogits,
                            .weight = d.weight,
                            .ignores = (d.flags & MP_XENT_FLAG_IGNORE_LABEL) != 0,
                            .ignore_label = d.ignore_label,
                            .label_smoothing = d.label_smoothing,
                            .logits = logits,
                            .labels = labels,
                            .loss_scale = loss_scale,
                            .row_loss = row_loss,
                            .loss = loss,
                            .correct = correct,
                            .dlogits = dlogits},
                           stream);
  });
}

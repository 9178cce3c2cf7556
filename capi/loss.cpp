// mpcore/layers.h: elementwise losses.
#include <algorithm>

#include "capi/check.h"
#include "capi/context.h"
#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/backend.h"
#include "kernels/layers/args.h"
#include "mpcore.h"

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

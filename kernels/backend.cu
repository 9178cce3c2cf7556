// The table of one target; compiled once per target.
#include "kernels/launch.h"

#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

const Target &table() {
  static const Target target = [] {
    Target t{};
    t.kind = kTargetKind;
    t.device_count = device_count;
    t.why_no_device = why_no_device;
    t.current_device = current_device;
    t.has_code_for = has_code_for;
    t.describe = describe;
    t.allocate = allocate;
    t.release = release;
    t.allocate_mapped = allocate_mapped;
    t.release_mapped = release_mapped;
    t.copy = copy;
    t.fill = fill;
    t.synchronize = synchronize;
    t.gemm = gemm;
    t.gemm_grouped = gemm_grouped;
    t.conv = conv;
    t.cast = cast;
    t.statistics = statistics;
    t.accumulate = accumulate;
    t.multiply = multiply;
    t.clip_factor = clip_factor;
    t.scale_loss = scale_loss;
    t.scaler_update = scaler_update;
    t.agreement_before = agreement_before;
    t.agreement_after = agreement_after;
    t.optimizer_step = optimizer_step;
    t.model_copy = model_copy;
    t.regularization = regularization;
    t.softmax_xent = softmax_xent;
    t.transpose = transpose;
    t.pool_forward = pool_forward;
    t.pool_backward = pool_backward;
    t.batch_norm_training = batch_norm_training;
    t.batch_norm_inference = batch_norm_inference;
    t.batch_norm_backward = batch_norm_backward;
    return t;
  }();
  return target;
}

}  // namespace mp::MP_TARGET

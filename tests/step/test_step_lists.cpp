// Steps on lists of any shape: empty tensors at each end or only empty ones, thousands of tensors
// of one element.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

OptimizerSpec with_tensors(OptimizerSpec spec, const std::vector<TensorSpec> &tensors) {
  spec.grads = tensors;
  spec.model = mixed_models(tensors.size());
  return spec;
}

bool has_elements(const std::vector<TensorSpec> &tensors) {
  for (const TensorSpec &tensor : tensors) {
    if (tensor.numel > 0) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("step lists: empty tensors first, last, in the middle and alone", "[step][short]") {
  const std::vector<std::vector<TensorSpec>> lists = {
      {{MP_FP16, 0}},
      {{MP_FP16, 0}, {MP_FP32, 0}, {MP_BF16, 0}},
      {{MP_FP16, 0}, {MP_FP16, 9, 1}},
      {{MP_BF16, 9, 1}, {MP_FP16, 0}},
      {{MP_FP32, 0}, {MP_FP16, 0}, {MP_BF16, 7}, {MP_FP16, 0}, {MP_FP32, 1, 3}, {MP_FP16, 0}}};
  for (const std::vector<TensorSpec> &tensors : lists) {
    for (const OptimizerSpec &spec : all_kinds()) {
      CAPTURE(spec.kind, spec.flags, tensors.size());
      CheckedRun checked(with_tensors(spec, tensors), 1);
      const UniqueScaler scaler = make_scaler(MP_SCALER_POLICY_BACKOFF);
      checked.fused_step(scaler.get());
      if (has_elements(tensors)) checked.overflowing_step(scaler.get());
      checked.fused_step(scaler.get());
      checked.step(0.25f);
    }
  }
}

TEST_CASE("step lists: thousands of tensors of one element", "[step]") {
  const auto check_singles = [](const OptimizerSpec &spec, int64_t count) {
    std::vector<TensorSpec> tensors;
    for (int64_t i = 0; i < count; ++i) tensors.push_back({MP_FP16, 1, i % 8});
    CAPTURE(spec.kind, spec.flags, count);
    CheckedRun checked(with_tensors(spec, tensors), 5);
    const UniqueScaler scaler = make_scaler(MP_SCALER_POLICY_BACKOFF);
    checked.step(1.0f);
    const OptimizerState before = checked.run.state();
    checked.run.grads().inject(tensors.size() - 1, 0, encode(MP_FP16, kNaN));
    require_ok(mp_scale_step(checked.run.get(), scaler.get(), nullptr, kStream));
    CHECK(checked.run.state() == before);
  };
  for (const OptimizerSpec &spec : all_kinds()) check_singles(spec, 1000);
  for (const OptimizerSpec &spec : {adamw_spec(), lamb_spec()}) check_singles(spec, 4000);
}

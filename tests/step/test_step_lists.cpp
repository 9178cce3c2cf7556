// Steps on lists of any shape: empty tensors at each end or only empty ones, thousands of tensors
// of one element, and non-finite values in the last element of an odd tensor.
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
      const UniqueScaler scaler = make_scaler(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
      checked.fused_step(scaler.get());
      if (has_elements(tensors)) checked.overflowing_step(scaler.get());
      checked.fused_step(scaler.get());
      checked.step(0.25f);
    }
  }
}

// ---------------------------------------------------------------------------- odd tails

TEST_CASE("step lists: a non-finite last element of an odd, misaligned tensor skips",
          "[step][short]") {
  const mp_dtype_t types[] = {MP_FP16, MP_BF16, MP_FP32};
  const double values[] = {HUGE_VAL, -HUGE_VAL, std::nan("")};
  int64_t turn = 0;
  for (const OptimizerSpec &spec : all_kinds()) {
    for (const mp_dtype_t dtype : types) {
      for (const int64_t numel : {1, 7, 9, 257}) {
        const int64_t offset = 1 + turn % 7;
        const double value = values[turn++ % 3];
        OptimizerRun run(with_tensors(spec, {{MP_FP32, 8}, {dtype, numel, offset}, {dtype, 0}}));
        run.grads().fill(1.0);
        run.master().fill(1.0);
        run.grads().inject(1, numel - 1, encode(dtype, value));
        const OptimizerState before = run.state();
        const UniqueScaler scaler = make_scaler(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
        require_ok(mp_scale_step(run.get(), scaler.get(), nullptr, kStream));
        CAPTURE(spec.kind, spec.flags, mp_dtype_name(dtype), numel, offset, value);
        CHECK(run.state() == before);
        CHECK(state_of(scaler.get()).skipped_nan == (std::isnan(value) ? 1 : 0));
        run.grads().inject(1, numel - 1, encode(dtype, 1.0));
        require_ok(mp_scale_step(run.get(), scaler.get(), nullptr, kStream));
        CHECK(run.t() == 1);
      }
    }
  }
}

// ---------------------------------------------------------------------------- many tensors

TEST_CASE("step lists: thousands of tensors of one element", "[step]") {
  const auto check_singles = [](const OptimizerSpec &spec, int64_t count) {
    std::vector<TensorSpec> tensors;
    for (int64_t i = 0; i < count; ++i) tensors.push_back({MP_FP16, 1, i % 8});
    CAPTURE(spec.kind, spec.flags, count);
    CheckedRun checked(with_tensors(spec, tensors), 5);
    const UniqueScaler scaler = make_scaler(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
    checked.step(1.0f);
    const OptimizerState before = checked.run.state();
    checked.run.grads().inject(tensors.size() - 1, 0, encode(MP_FP16, kNaN));
    require_ok(mp_scale_step(checked.run.get(), scaler.get(), nullptr, kStream));
    CHECK(checked.run.state() == before);
  };
  for (const OptimizerSpec &spec : all_kinds()) check_singles(spec, 1000);
  for (const OptimizerSpec &spec : {adamw_spec(), lamb_spec()}) check_singles(spec, 10000);
}

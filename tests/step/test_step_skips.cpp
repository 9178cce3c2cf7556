// Skipped steps: for every rule and cause, a skipped step changes no bit of a step's outputs, and
// steps after it follow the formulas.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

enum class Call { optimizer_step, scale_step, shared_step };
enum class Reason { gradient, flag, grad_scale };

/// Call that takes a step, and the value injected to make it skip.
struct SkipPath {
  Call call;
  Reason reason;
  float value;
  std::optional<mp_scaler_policy_t> policy =
      std::nullopt;  ///< policy of the scaler, if there is one
  float max_grad_norm = 0.0f;
};

const SkipPath kPaths[] = {
    {Call::optimizer_step, Reason::flag, 2.0f},
    {Call::optimizer_step, Reason::flag, -1.0f},
    {Call::optimizer_step, Reason::flag, 0.5f},
    {Call::optimizer_step, Reason::flag, NAN},
    {Call::optimizer_step, Reason::grad_scale, HUGE_VALF},
    {Call::optimizer_step, Reason::grad_scale, NAN},
    {Call::scale_step, Reason::gradient, NAN, std::nullopt, 0.5f},
    {Call::scale_step, Reason::gradient, HUGE_VALF, MP_SCALER_POLICY_STATIC},
    {Call::scale_step, Reason::gradient, HUGE_VALF, MP_SCALER_POLICY_BACKOFF, 0.5f},
    {Call::scale_step, Reason::gradient, -HUGE_VALF, MP_SCALER_POLICY_LOGNORMAL, 0.5f},
    {Call::scale_step, Reason::flag, 2.0f, MP_SCALER_POLICY_BACKOFF},
    {Call::scale_step, Reason::flag, -1.0f, MP_SCALER_POLICY_LOGNORMAL},
    {Call::scale_step, Reason::flag, 0.5f, MP_SCALER_POLICY_STATIC, 0.5f},
    {Call::shared_step, Reason::gradient, HUGE_VALF, MP_SCALER_POLICY_BACKOFF, 0.5f},
    {Call::shared_step, Reason::flag, 2.0f, MP_SCALER_POLICY_LOGNORMAL},
};

void step_alone(OptimizerRun &run, const SkipPath &path) {
  const float raised = path.reason == Reason::flag ? path.value : -0.0f;
  const DeviceFloat grad_scale(path.reason == Reason::grad_scale ? path.value : 1.0f);
  const DeviceFloat found_inf(raised);
  run.step(grad_scale.data(), found_inf.data());
  CHECK(same_bits(found_inf.value(), raised));
}

void step_fused(OptimizerRun &run, const SkipPath &path) {
  const bool shares = path.call == Call::shared_step;
  UniqueScaler scaler;
  if (path.policy) scaler = make_scaler(*path.policy);
  if (path.reason == Reason::flag) raise_flag(scaler, path.value);
  const DeviceFloat reported(-1.0f);
  mp_step_options_t options =
      step_options(shares ? uint32_t{MP_STEP_FLAG_KEEP_SCALER} : 0, path.max_grad_norm);
  options.found_inf = reported.data();
  require_ok(mp_scale_step(run.get(), scaler.get(), &options, kStream));
  CHECK(reported.value() == 1.0f);
  if (!scaler) return;
  if (shares) require_ok(mp_scaler_update(scaler.get(), nullptr, kStream));
  CHECK(same_bits(flag_of(scaler), 0.0f));
  CHECK(state_of(scaler.get()).skipped == 1);
}

void skip(CheckedRun &checked, const SkipPath &path) {
  OptimizerRun &run = checked.run;
  checked.draw_gradients();
  const TensorSpec first = run.grads().spec(0);
  if (path.reason == Reason::gradient)  // in the odd tail of a misaligned tensor
    run.grads().inject(0, first.numel - 1, encode(first.dtype, static_cast<double>(path.value)));
  const OptimizerState before = run.state();
  const std::vector<uint8_t> read = checked.bits_read();
  if (path.call == Call::optimizer_step)
    step_alone(run, path);
  else
    step_fused(run, path);
  CHECK(run.state() == before);
  CHECK(checked.bits_read() == read);
}

/// Skips the first steps, and two in a row for each cause.
void check_paths(const OptimizerSpec &spec, size_t first, size_t count) {
  CheckedRun checked(spec, 20);
  const UniqueScaler scaler = make_scaler(MP_SCALER_POLICY_BACKOFF);
  for (size_t i = first; i < first + count; ++i) {
    const SkipPath &path = kPaths[i % std::size(kPaths)];
    CAPTURE(spec.kind, spec.flags, spec.groups[0].beta1, spec.groups[0].weight_decay,
            spec.groups[0].lr_schedule, static_cast<int>(path.call), static_cast<int>(path.reason),
            path.value, path.max_grad_norm);
    skip(checked, path);
    skip(checked, path);
    checked.step(i % 2 == 0 ? 0.25f : 0x1p-6f);
    skip(checked, path);
    checked.fused_step(scaler.get());
  }
}

/// Returns every rule alone, and with a schedule, clipping, multipliers, regularizers and extra
/// gradients.
std::vector<OptimizerSpec> all_cases() {
  std::vector<OptimizerSpec> cases;
  for (const OptimizerSpec &spec : all_rules()) {
    cases.push_back(spec);
    cases.push_back(with_everything(spec));
  }
  return cases;
}

}  // namespace

TEST_CASE("step skips: every rule with all options and every cause", "[step][long]") {
  for (const OptimizerSpec &spec : all_cases()) check_paths(spec, 0, std::size(kPaths));
}

TEST_CASE("step skips: every rule with all options and some causes", "[step][short]") {
  size_t first = 0;
  for (const OptimizerSpec &spec : all_cases()) check_paths(spec, first++, 4);
}

// Skipped steps: for every rule and cause, a skipped step changes no bit of a step's outputs, and
// later steps proceed as if there had been none.
//
// Two runs take the same steps, but one also takes additional steps, which skip.  Gradients are
// small integers times a power of two, and so are scales that change: unscaling is exact, and the
// runs agree bit for bit although an overflow reduced S in one of them.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

// ---------------------------------------------------------------------------- causes of skips

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

/// Skips the first steps, one in the middle and two in a row.
const char *const kSequence = "xx.x..xx.";

// ---------------------------------------------------------------------------- a run

mp_scaler_config_t config_of(mp_scaler_policy_t policy) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  if (policy == MP_SCALER_POLICY_STATIC) config.init_scale = 1024.0f;
  return config;
}

class SkippingRun {
 public:
  SkippingRun(const OptimizerSpec &spec, const SkipPath &path) : run_(spec), path_(path) {
    if (path.policy) scaler_ = make_scaler(config_of(*path.policy));
    Random random(1);
    run_.master().upload(real_values(run_.master().specs(), random, 2.0));
    run_.model()->fill(-7.0);
  }

  OptimizerState state() const { return run_.state(); }

  /// @param seed  equal seeds give equal gradients before multiplication by S
  void step(uint64_t seed, bool skips) {
    upload_gradients(seed, skips && path_.reason == Reason::gradient);
    const std::vector<uint8_t> read = bits_read();
    if (path_.call == Call::optimizer_step) {
      step_alone(skips);
    } else {
      step_fused(skips);
    }
    CHECK(bits_read() == read);
    skipped_ += skips;
    if (scaler_ != nullptr) CHECK(state_of(scaler_.get()).skipped == skipped_);
  }

 private:
  static constexpr float kScale = 8.0f;  ///< used without a scaler

  float scale() const {
    return scaler_ ? read_float(mp_scaler_get_scale_address(scaler_.get())) : kScale;
  }
  float value_or(float otherwise, Reason reason, bool skips) const {
    return skips && path_.reason == reason ? path_.value : otherwise;
  }

  void upload_gradients(uint64_t seed, bool spoilt) {
    Random random(seed);
    const std::vector<TensorSpec> &specs = run_.grads().specs();
    TensorValues values = integer_values(specs, random, 127);  // 127 is exact in BF16
    for (std::vector<double> &tensor : values) {
      for (double &value : tensor) value *= 0x1p-10 * static_cast<double>(scale());
    }
    if (spoilt) values[0].back() = static_cast<double>(path_.value);  // in an odd tail
    run_.grads().upload(values);
    if (run_.extra() != nullptr) {
      run_.extra()->upload(real_values(run_.extra()->specs(), random, 1.0));
    }
  }

  std::vector<uint8_t> bits_read() {
    std::vector<uint8_t> bits = run_.grads().bits();
    if (run_.extra() == nullptr) return bits;
    const std::vector<uint8_t> extra = run_.extra()->bits();
    bits.insert(bits.end(), extra.begin(), extra.end());
    return bits;
  }

  /// A flag of -0 is not raised.
  void step_alone(bool skips) {
    const float raised = value_or(-0.0f, Reason::flag, skips);
    const DeviceFloat grad_scale(value_or(1.0f / kScale, Reason::grad_scale, skips));
    const DeviceFloat found_inf(raised);
    run_.step(grad_scale.data(), found_inf.data());
    CHECK(same_bits(found_inf.value(), raised));
  }

  void step_fused(bool skips) {
    const bool shares = path_.call == Call::shared_step;
    float *const flag = scaler_ ? mp_scaler_get_found_inf_address(scaler_.get()) : nullptr;
    if (flag != nullptr) write_float(flag, value_or(-0.0f, Reason::flag, skips));
    mp_step_options_t options = mp_step_options_default();
    options.flags = shares ? static_cast<uint32_t>(MP_STEP_FLAG_KEEP_SCALER) : 0;
    options.max_grad_norm = path_.max_grad_norm;
    options.found_inf = reported_.data();
    require_ok(mp_scale_step(run_.get(), scaler_.get(), &options, kStream));
    CHECK(reported_.value() == (skips ? 1.0f : 0.0f));
    if (shares) require_ok(mp_scaler_update(scaler_.get(), nullptr, kStream));
    if (flag != nullptr) CHECK(same_bits(read_float(flag), 0.0f));
  }

  OptimizerRun run_;
  SkipPath path_;
  UniqueScaler scaler_;
  DeviceFloat reported_{-1.0f};
  int64_t skipped_ = 0;
};

void check_path(const OptimizerSpec &spec, const SkipPath &path) {
  CAPTURE(spec.kind, spec.flags, spec.groups[0].lr_schedule, static_cast<int>(path.call),
          static_cast<int>(path.reason), path.value, path.max_grad_norm);
  SkippingRun skipping(spec, path), straight(spec, path);
  uint64_t seed = 2;
  for (const char *step = kSequence; *step != 0; ++step, ++seed) {
    CAPTURE(step);
    if (*step == 'x') {
      const OptimizerState before = skipping.state();
      skipping.step(seed, true);
      CHECK(skipping.state() == before);
    } else {
      skipping.step(seed, false);
      straight.step(seed, false);
      CHECK(skipping.state() == straight.state());
    }
  }
  CHECK(skipping.state().t == 4);
}

/// Keeps an odd misaligned, an empty and an even tensor.
OptimizerSpec shortened(OptimizerSpec spec) {
  constexpr size_t kCount = 3;
  spec.grads.resize(kCount);
  spec.model.resize(kCount);
  if (!spec.lr_multipliers.empty()) spec.lr_multipliers.resize(kCount);
  if (!spec.decay_multipliers.empty()) spec.decay_multipliers.resize(kCount);
  return spec;
}

/// Returns every rule alone, and with a schedule, clipping, multipliers, regularizers and extra
/// gradients.
std::vector<OptimizerSpec> all_cases() {
  std::vector<OptimizerSpec> cases;
  for (const OptimizerSpec &spec : all_rules()) {
    cases.push_back(shortened(spec));
    cases.push_back(shortened(with_everything(spec)));
  }
  return cases;
}

}  // namespace

TEST_CASE("step skips: every rule with every cause, first, in the middle and twice", "[step]") {
  for (const OptimizerSpec &spec : all_cases()) {
    for (const SkipPath &path : kPaths) check_path(spec, path);
  }
}

TEST_CASE("step skips: every rule with one cause, every cause with one rule", "[step][short]") {
  size_t next = 0;
  for (const OptimizerSpec &spec : all_cases()) {
    check_path(spec, kPaths[next]);
    next = (next + 1) % std::size(kPaths);
  }
}

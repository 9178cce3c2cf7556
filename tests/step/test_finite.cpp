// Finite gradients, weights and moments stay finite, and a step has one outcome, which queries,
// options, the scaler's state and its history report consistently.
#include <cfloat>

#include "checked_optimizer.h"
#include "rank_steps.h"

using namespace mptest;

namespace {

const mp_scaler_config_t kBackoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);

/// Returns SGD without momentum, w = 1.
OptimizerSpec plain_spec(const std::vector<TensorSpec> &grads, float lr = 1.0f) {
  OptimizerSpec spec;
  spec.groups = {sgd_hyper(lr, 0.0f)};
  spec.grads = grads;
  return spec;
}

float norm_of(const std::vector<std::vector<double>> &chunks) {
  std::vector<TensorSpec> specs;
  for (const auto &chunk : chunks) specs.push_back({MP_FP32, static_cast<int64_t>(chunk.size())});
  TensorSet tensors(specs);
  tensors.upload(chunks);
  DeviceFloat norm(-1.0f);
  DeviceBuffer<float> norms{std::vector<float>(specs.size(), -1.0f)};
  require_ok(mp_l2norm(tensors.list(), norm.data(), norms.data(), kStream));
  if (chunks.size() == 1) CHECK(same_bits(norms.download()[0], norm.value()));
  return norm.value();
}

}  // namespace

// ---------------------------------------------------------------------------- norms

TEST_CASE("finite: norms are exact at every exponent", "[finite][norm][short]") {
  const auto many = [](int64_t count, double x) {
    return std::vector<double>(static_cast<size_t>(count), x);
  };
  for (int exponent = -149; exponent <= 120; ++exponent) {
    const double x = std::ldexp(1.0, exponent);
    CAPTURE(exponent);
    CHECK(norm_of({many(16, x)}) == static_cast<float>(4 * x));
    CHECK(norm_of({many(kChunk, -x)}) == static_cast<float>(128 * x));
    CHECK(norm_of({many(3, x), many(1, x)}) == static_cast<float>(2 * x));
  }
  CHECK(norm_of({{3 * 0x1p100, 4 * 0x1p100}, {12 * 0x1p100}}) == 13 * 0x1p100f);
  CHECK(norm_of({{3 * 0x1p-100, 4 * 0x1p-100}, {12 * 0x1p-100}}) == 13 * 0x1p-100f);
  CHECK(norm_of({{0x1p-140, 0x1p-149}, {0x1p90}}) == 0x1p90f);
  CHECK(norm_of({many(5, FLT_MAX)}) == HUGE_VALF);  // exceeds fp32
}

TEST_CASE("finite: clipping makes a gradient whose norm overflows applicable",
          "[finite][step][short]") {
  for (const float scale : {1.0f, 0x1p-40f}) {
    for (const bool unscaled : {false, true}) {
      OptimizerRun run(plain_spec({{MP_FP32, 16}, {MP_FP16, 0}}));
      run.master().fill(1.0);
      run.grads().fill(0x1p100);
      mp_scaler_config_t config = kBackoff;
      config.min_scale = config.init_scale = scale;
      const UniqueScaler scaler = make_scaler(config);
      DeviceFloat norm(-1.0f);
      mp_step_options_t options = step_options(unscaled ? MP_STEP_FLAG_UNSCALED : 0, 4.0f);
      options.grad_norm = norm.data();
      require_ok(mp_scale_step(run.get(), scaler.get(), &options, kStream));
      // Norm 2^102, times 2^40 for the small S: beyond fp32.
      CAPTURE(scale, unscaled);
      CHECK(norm.value() == (scale == 1.0f || unscaled ? 0x1p102f : HUGE_VALF));
      CHECK(outcome_sync(scaler, 1) == MP_STEP_OUTCOME_TAKEN);
      CHECK(run.master().download()[0] == std::vector<double>(16, 0.0));
    }
  }
}

TEST_CASE("finite: clipping by tensor norm works at every exponent", "[finite][optimizer][short]") {
  for (const int exponent : {-60, 0, 60, 120}) {
    OptimizerSpec spec = plain_spec({{MP_FP32, 16}, {MP_FP32, 4}});
    spec.groups[0].max_tensor_norm = std::ldexp(1.0f, exponent);
    OptimizerRun run(spec);
    run.master().fill(0.0);
    run.grads().fill(std::ldexp(1.0, exponent + 1));
    run.step();
    const TensorValues w = run.master().download();
    CAPTURE(exponent);
    // The 1e-6 of the clip factor matters for small norms.
    const auto wanted = [&](double norm) {
      const double g = std::ldexp(1.0, exponent + 1), most = std::ldexp(1.0, exponent);
      return -g * std::min(1.0, most / (norm * g + static_cast<double>(1e-6f)));
    };
    CHECK(std::fabs(w[0][7] / wanted(4) - 1.0) <= 0x1p-20);
    CHECK(std::fabs(w[1][3] / wanted(2) - 1.0) <= 0x1p-20);
  }
}

TEST_CASE("finite: norm ratios are correct at every exponent", "[finite][optimizer][short]") {
  // If w and g have one exponent, all ratios equal those of w = g = 1: LARS 1/2, LAMB |w| / 1.
  for (const int exponent : {-60, -30, 0, 40, 62}) {
    const double x = std::ldexp(1.0, exponent);
    OptimizerSpec lars = plain_spec({{MP_FP32, 64}});
    lars.flags = MP_OPT_FLAG_LARS;
    lars.groups[0].trust_coefficient = 0.5f;
    OptimizerSpec lamb = lars;
    lamb.kind = MP_OPT_LAMB;
    lamb.flags = MP_OPT_FLAG_NVLAMB;
    lamb.groups[0] = mp_param_group_default(MP_OPT_LAMB, 0.5f);
    lamb.groups[0].weight_decay = 0.0f;
    lamb.groups[0].eps = 0x1p-126f;
    for (const OptimizerSpec &spec : {lars, lamb}) {
      if (spec.kind == MP_OPT_LAMB && exponent < -50) continue;  // g^2 (1 - b2) is subnormal
      OptimizerRun run(spec);
      run.master().fill(x);
      run.grads().fill(x);
      run.step();
      CAPTURE(spec.kind, exponent);
      CHECK(std::fabs(run.master().download()[0][63] / x - 0.5) <= 0x1p-20);
    }
  }
}

// ---------------------------------------------------------------------------- outcomes

namespace {

enum Cause : unsigned { kFlag = 1, kInfinite = 2, kNan = 4, kNoScale = 8, kRange = 16 };

mp_step_outcome_t outcome_of(unsigned causes) {
  if (causes & (kFlag | kInfinite | kNan)) return MP_STEP_OUTCOME_OVERFLOW;
  if (causes & kNoScale) return MP_STEP_OUTCOME_NO_SCALE;
  return causes & kRange ? MP_STEP_OUTCOME_OUT_OF_RANGE : MP_STEP_OUTCOME_TAKEN;
}

/// A step with all reports of an outcome.
struct ReportedRun : StepRun {
  DeviceValue<int32_t> outcome{-1};
  DeviceValue<int64_t> rejected{0};

  explicit ReportedRun(bool has_scaler)
      : StepRun(plain_spec({{MP_FP32, 40}}, 0x1p-80f),
                has_scaler ? std::optional(config()) : std::nullopt) {
    reports_norms = false;
  }
  static mp_scaler_config_t config() {
    mp_scaler_config_t config = kBackoff;
    config.min_scale = 0.0f;
    config.history_length = 4;
    return config;
  }

  void step(unsigned causes, uint32_t flags = 0) {
    set_grads(causes & kRange ? 0x1p100 : 1.0);
    if (causes & kInfinite) run.grads().inject(0, 3, encode(MP_FP32, HUGE_VAL));
    if (causes & kNan) run.grads().inject(0, 33, encode(MP_FP32, std::nan("")));
    if (causes & kFlag) write_float(mp_scaler_get_found_inf_address(used_scaler()), 1.0f);
    mp_step_options_t options = step_options(flags);
    options.outcome = outcome.data();
    options.rejected_updates = rejected.data();
    StepRun::step(options);
  }

  mp_step_outcome_t query(int64_t step) const {
    require_ok(mp_stream_sync(context(), kStream));
    mp_step_outcome_t found = MP_STEP_OUTCOME_PENDING;
    require_ok(mp_scaler_query_step(used_scaler(), step, &found));
    return found;
  }
};

void check_outcome(ReportedRun &reported, unsigned causes) {
  const mp_scaler_state_t before = state_of(reported.used_scaler());
  const OptimizerState weights = reported.run.state();
  const mp_step_outcome_t wanted = outcome_of(causes);
  reported.step(causes);
  const mp_scaler_state_t after = state_of(reported.used_scaler());
  const bool skipped = wanted != MP_STEP_OUTCOME_TAKEN,
             overflow = wanted == MP_STEP_OUTCOME_OVERFLOW;
  CAPTURE(causes);
  CHECK(reported.query(after.steps) == wanted);
  CHECK(reported.outcome.value() == static_cast<int32_t>(wanted));
  CHECK(reported.skipped.value() == (skipped ? 1.0f : 0.0f));
  CHECK((reported.run.state() == weights) == skipped);
  CHECK(after.steps == before.steps + 1);
  CHECK(after.skipped == before.skipped + skipped);
  CHECK(after.consecutive_skips == (skipped ? before.consecutive_skips + 1 : 0));
  CHECK(after.overflows == before.overflows + overflow);
  CHECK(after.out_of_range == before.out_of_range + (wanted == MP_STEP_OUTCOME_OUT_OF_RANGE));
  CHECK(after.no_scale == before.no_scale + (wanted == MP_STEP_OUTCOME_NO_SCALE));
  CHECK(after.skipped_nan == before.skipped_nan + ((causes & kNan) != 0));
  CHECK(after.overflows + after.out_of_range + after.no_scale == after.skipped);
  CHECK(after.status == (causes & kNoScale ? MP_SCALER_STATUS_DIVERGED : MP_SCALER_STATUS_OK));
  const bool is_static = after.policy == MP_SCALER_POLICY_STATIC;
  CHECK(after.scale == (overflow && !is_static ? before.scale / 2 : before.scale));
  CHECK(read_float(mp_scaler_get_found_inf_address(reported.used_scaler())) == 0.0f);
  if (is_static) return;  // no history
  float scale = -1.0f;
  int32_t recorded = -1;
  int64_t count = 0;
  require_ok(
      mp_scaler_get_history_sync(reported.used_scaler(), 1, &scale, &recorded, &count, kStream));
  CHECK(count == 1);
  CHECK(scale == before.scale);
  CHECK(recorded == (overflow  ? 1 + ((causes & kNan) != 0)
                     : skipped ? static_cast<int32_t>(wanted)
                               : 0));
}

}  // namespace

TEST_CASE("outcome: each pair of causes gives one outcome in all reports",
          "[finite][step][query][short]") {
  const unsigned all[] = {0, kFlag, kInfinite, kNan, kNoScale, kRange};
  for (const bool has_scaler : {true, false}) {
    for (const unsigned one : all) {
      for (const unsigned other : all) {
        const unsigned causes = one | other;
        if (!has_scaler && (causes & kNoScale)) continue;
        ReportedRun reported(has_scaler);
        if (causes & kNoScale) {
          mp_scaler_state_t state = state_of(reported.used_scaler());
          state.scale = 0.0f;
          set_state(reported.used_scaler(), state);
        }
        check_outcome(reported, causes);
        check_outcome(reported, causes);
        if (causes & kNoScale) continue;
        check_outcome(reported, 0);  // a skip leaves no trace
      }
    }
  }
}

TEST_CASE("outcome: divergence is reported without a scaler", "[finite][step][short]") {
  ReportedRun reported(false);
  for (int i = 0; i < 100; ++i) {
    CHECK(state_of(reported.used_scaler()).status == MP_SCALER_STATUS_OK);
    reported.step(i % 2 == 0 ? kNan : kRange);
  }
  CHECK(state_of(reported.used_scaler()).status == MP_SCALER_STATUS_DIVERGED);
  CHECK(state_of(reported.used_scaler()).out_of_range == 50);
  reported.step(0);
  CHECK(state_of(reported.used_scaler()).status == MP_SCALER_STATUS_OK);
  mp_scaler_destroy(reported.used_scaler());  // belongs to the optimizer: no effect
  reported.step(0);
  CHECK(reported.run.t() == 2);
}

TEST_CASE("outcome: an out-of-range gradient makes later optimizers of the scaler skip",
          "[finite][step][shared][short]") {
  ReportedRun one(true), other(false);
  const auto step_other = [&](uint32_t flags) {
    other.run.grads().fill(1.0);
    mp_step_options_t options = step_options(flags);
    options.outcome = other.outcome.data();
    require_ok(mp_scale_step(other.run.get(), one.scaler.get(), &options, kStream));
    return other.outcome.value();
  };
  one.step(kRange, MP_STEP_FLAG_KEEP_SCALER);
  CHECK(step_other(0) == MP_STEP_OUTCOME_OUT_OF_RANGE);
  CHECK(one.query(1) == MP_STEP_OUTCOME_OUT_OF_RANGE);
  one.step(0, MP_STEP_FLAG_KEEP_SCALER);
  CHECK(step_other(0) == MP_STEP_OUTCOME_TAKEN);
  one.step(kRange, MP_STEP_FLAG_KEEP_SCALER);
  require_ok(mp_scaler_update(one.scaler.get(), nullptr, kStream));
  CHECK(one.query(3) == MP_STEP_OUTCOME_OUT_OF_RANGE);
  CHECK(state_of(one.scaler.get()).out_of_range == 2);
  CHECK(state_of(one.scaler.get()).scale == 65536.0f);
}

// ---------------------------------------------------------------------------- ranks

TEST_CASE("finite: ranks agree on range and norms at every exponent",
          "[finite][comm][step][short]") {
  for (const int exponent : {-120, -60, 0, 40, 70, 110}) {
    const double x = std::ldexp(1.0, exponent);
    RanksOfSteps ranks({plain_spec({{MP_FP32, 12}}), plain_spec({{MP_FP32, 4}}), plain_spec({})});
    for (StepRun &rank : ranks) rank.set_grads(x);
    mp_step_options_t options = step_options(MP_STEP_FLAG_SHARDED);
    ranks.step(options);
    CAPTURE(exponent);
    for (StepRun &rank : ranks) {
      CHECK(rank.grad_norm.value() == static_cast<float>(4 * x));
      CHECK(rank.skipped.value() == (exponent >= 63 ? 1.0f : 0.0f));
      const mp_scaler_state_t state = state_of(mp_optimizer_get_scaler(rank.run.get()));
      CHECK(state.out_of_range == (exponent >= 63));
    }
    // Only one rank is out of range; clipping makes the step applicable on all.
    for (const float max_grad_norm : {0.0f, 1.0f}) {
      ranks.at(0).set_grads(1.0);
      ranks.at(1).set_grads(0x1p80);
      options.max_grad_norm = max_grad_norm;
      ranks.step(options);
      for (StepRun &rank : ranks)
        CHECK(rank.skipped.value() == (max_grad_norm == 0.0f ? 1.0f : 0.0f));
    }
  }
}

// ---------------------------------------------------------------------------- elements

namespace {

int count_nonfinite(TensorSet *tensors) {
  int count = 0;
  if (tensors == nullptr) return 0;
  for (const std::vector<double> &tensor : tensors->download()) {
    for (const double x : tensor) count += !std::isfinite(x);
  }
  return count;
}

double any_finite(Random &random, bool is_negative) {
  const double x = std::ldexp(random.real(1.0, 2.0), static_cast<int>(random.integer(-149, 127)));
  return is_negative && random.integer(0, 1) ? -x : x;
}

void fill(TensorSet *tensors, Random &random, bool is_negative) {
  if (tensors == nullptr) return;
  TensorValues values = constant_values(tensors->specs(), 0.0);
  for (std::vector<double> &tensor : values) {
    for (double &x : tensor) x = any_finite(random, is_negative);
  }
  tensors->upload(values);
}

}  // namespace

TEST_CASE("finite: finite states and gradients of any exponent stay finite",
          "[finite][optimizer][short]") {
  uint64_t seed = 1;
  int64_t total = 0;
  for (OptimizerSpec spec : all_rules()) {
    spec.grads = {{MP_FP32, 300}, {MP_FP32, 17, 1}};
    spec.model = {MP_BF16, MP_DTYPE_NONE};
    for (const float lr : {0.5f, 1e30f}) {
      spec.groups[0].lr = lr;
      OptimizerRun run(spec);
      Random random(++seed);
      fill(&run.master(), random, true);
      fill(run.m(), random, true);
      fill(run.v(), random, false);
      const UniqueScaler scaler = make_scaler(kBackoff);
      DeviceValue<int64_t> rejected(0);
      mp_step_options_t options = step_options(MP_STEP_FLAG_CHECKED);
      options.rejected_updates = rejected.data();
      for (int step = 0; step < 4; ++step) {
        fill(&run.grads(), random, true);
        require_ok(mp_scale_step(run.get(), scaler.get(), &options, kStream));
      }
      CAPTURE(spec.kind, spec.flags, lr);
      CHECK(run.t() == 4);
      total += rejected.value();
      CHECK(count_nonfinite(&run.master()) == 0);
      CHECK(count_nonfinite(run.model()) == 0);
      CHECK(count_nonfinite(run.m()) == 0);
      CHECK(count_nonfinite(run.v()) == 0);
    }
  }
  CHECK(total > 0);
}

TEST_CASE("finite: an element with a non-finite update keeps its values, its neighbors are updated",
          "[finite][optimizer][short]") {
  const size_t bad[] = {0, 5, 8, 131, 255, 258};
  for (OptimizerSpec spec : all_kinds()) {
    spec.grads = {{MP_FP32, 259}};
    spec.model = {MP_FP16};
    spec.has_extra = true;
    OptimizerRun run(spec), reference(spec);
    DeviceValue<int64_t> rejected(5);
    for (OptimizerRun *each : {&run, &reference}) {
      each->master().upload(constant_values(spec.grads, 1.0));
      each->grads().upload(constant_values(spec.grads, 0.5));
      each->extra()->upload(constant_values(spec.grads, 0.25));
      each->step();  // makes the moments nonzero
    }
    const TensorValues before = run.master().download();
    const TensorValues m = run.m() != nullptr ? run.m()->download() : TensorValues{};
    for (size_t i = 0; i < std::size(bad); ++i) {
      const double values[] = {HUGE_VAL, -HUGE_VAL, std::nan("")};
      run.extra()->inject(0, static_cast<int64_t>(bad[i]), encode(MP_FP32, values[i % 3]));
    }
    mp_step_options_t options = mp_step_options_default();
    options.rejected_updates = rejected.data();
    require_ok(mp_scale_step(run.get(), nullptr, &options, kStream));
    reference.step();
    CAPTURE(spec.kind, spec.flags);
    CHECK(rejected.value() == 5 + static_cast<int64_t>(std::size(bad)));
    const TensorValues after = run.master().download(), wanted = reference.master().download();
    const bool has_norms =
        spec.kind == MP_OPT_LAMB || spec.kind == MP_OPT_NOVOGRAD || spec.flags != 0;
    int wrong = 0;
    for (size_t i = 0; i < after[0].size(); ++i) {
      const bool is_bad = std::find(std::begin(bad), std::end(bad), i) != std::end(bad);
      wrong += is_bad                                  ? after[0][i] != before[0][i]
               : has_norms && spec.kind != MP_OPT_ADAM ? after[0][i] == before[0][i]
                                                       : after[0][i] != wanted[0][i];
      wrong += is_bad && !m.empty() && run.m()->download()[0][i] != m[0][i];
      wrong += run.model()->download()[0][i] != round_to(MP_FP16, after[0][i]);
    }
    CHECK(wrong == 0);
  }
}

// ---------------------------------------------------------------------------- accumulation

TEST_CASE("accumulate: an overflowing quotient raises the flag of its micro-batch",
          "[finite][accumulate][short]") {
  mp_scaler_config_t config = kBackoff;
  config.min_scale = config.init_scale = 0x1p-40f;
  const UniqueScaler scaler = make_scaler(config);
  TensorSet grads({{MP_FP32, 300}}), sums({{MP_FP32, 300}});
  const auto flag_after = [&](double value, float weight, uint32_t flags) {
    grads.fill(1.0);
    grads.inject(0, 299, encode(MP_FP32, value));
    require_ok(
        mp_grads_accumulate(scaler.get(), grads.list(), sums.list(), weight, flags, kStream));
    const float flag = read_float(mp_scaler_get_found_inf_address(scaler.get()));
    require_ok(mp_scaler_update(scaler.get(), nullptr, kStream));
    return flag;
  };
  CHECK(flag_after(0x1p87, 1.0f, MP_ACCUMULATE_FLAG_FIRST) == 0.0f);
  CHECK(flag_after(0x1p88, 1.0f, MP_ACCUMULATE_FLAG_FIRST) == 1.0f);
  CHECK(flag_after(1.0, 1.0f, 0) == 0.0f);  // the sum was infinite before
  CHECK(flag_after(-0x1p88, 0.5f, MP_ACCUMULATE_FLAG_FIRST) == 0.0f);
  CHECK(flag_after(-0x1p89, 0.5f, 0) == 1.0f);

  DeviceFloat inv_scale(0x1p40f), flag(0.0f);
  require_ok(mp_unscale(grads.list(), sums.list(), inv_scale.data(), flag.data(), kStream));
  CHECK(flag.value() == 1.0f);
}

// Options of all optimizers: learning-rate schedules, multipliers per tensor, clipping per tensor
// and by value, regularizers, extra gradients.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

/// Sets all weights to w and all gradients to g.
OptimizerRun plain_run(const OptimizerSpec &spec, double w, double g) {
  OptimizerRun run(spec);
  run.master().fill(w);
  run.grads().fill(g);
  return run;
}

/// Returns SGD with lr = .5 and no other option.
OptimizerSpec plain_spec() {
  return spec_of(MP_OPT_SGD, sgd_hyper(.5f, 0));
}

}  // namespace

TEST_CASE("optimizer options: all options together follow the formulas with every rule",
          "[optimizer]") {
  for (const OptimizerSpec &spec : all_rules()) {
    CAPTURE(spec.kind, spec.flags, spec.groups[0].beta1, spec.groups[0].weight_decay);
    CheckedRun checked(with_everything(spec), 40);
    const UniqueScaler scaler = make_scaler(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
    for (int step = 0; step < 7; ++step) {
      checked.step(.25f);
      checked.overflowing_step(scaler.get());
    }
  }
}

// ---------------------------------------------------------------------------- moments

namespace {

/// Compares a list allocated by the optimizer with another optimizer's caller-owned list.
void check_moments(const TensorSet *wanted, mp_tensor_list_t got, bool is_needed) {
  REQUIRE((got != nullptr) == (wanted != nullptr && is_needed));
  if (got == nullptr) return;
  const TensorValues values = wanted->download();
  int64_t wrong = 0;
  for (uint32_t t = 0; t < values.size(); ++t) {
    void *data = nullptr;
    int64_t numel = -1;
    mp_dtype_t dtype = MP_DTYPE_NONE;
    require_ok(mp_tensor_list_get_tensor(got, t, &data, &numel, &dtype));
    CHECK(dtype == MP_FP32);
    REQUIRE(numel == static_cast<int64_t>(values[t].size()));
    for (size_t i = 0; i < values[t].size(); ++i)
      wrong += values[t][i] != read_float(static_cast<const float *>(data) + i);
  }
  CHECK(wrong == 0);
  CHECK(mp_tensor_list_get_tensor(got, static_cast<uint32_t>(values.size()), nullptr, nullptr,
                                  nullptr) == MP_ERROR_NOT_FOUND);
}

}  // namespace

TEST_CASE("optimizer: allocated moments start at zero and equal caller-owned ones bit for bit",
          "[optimizer][short]") {
  for (OptimizerSpec spec : all_rules()) {
    OptimizerRun lists(spec);
    spec.has_own_moments = true;
    OptimizerRun own(spec);
    for (OptimizerRun *run : {&lists, &own}) run->master().fill(0.5);
    mp_tensor_list_t m = nullptr, v = nullptr;
    require_ok(mp_optimizer_get_moments(own.get(), &m, &v));
    const bool needs_m = spec.groups[0].beta1 != 0.0f;
    for (int step = 0; step < 3; ++step) {
      CAPTURE(spec.kind, spec.flags, step);
      check_moments(lists.m(), m, needs_m);
      check_moments(lists.v(), v, true);
      Random random(static_cast<uint64_t>(step));
      const TensorValues grads = real_values(spec.grads, random, 8.0);
      for (OptimizerRun *run : {&lists, &own}) {
        run->grads().upload(grads);
        run->step();
      }
      CHECK(own.master().bits() == lists.master().bits());
      CHECK(own.model()->bits() == lists.model()->bits());
    }
  }
}

// ---------------------------------------------------------------------------- schedules

TEST_CASE("optimizer options: schedules follow hand-computed values", "[optimizer][short]") {
  mp_param_group_t base = sgd_hyper(8, 0);
  const auto rates = [&](const mp_param_group_t &hyper, int steps) {
    OptimizerRun run(spec_of(MP_OPT_SGD, hyper));
    CHECK(run.lr(0) == 0.0f);
    run.master().fill(0.0);
    run.grads().fill(0.0);
    std::vector<float> found;
    for (int step = 0; step < steps; ++step) {
      const DeviceFloat overflow(1.0f);
      run.step(nullptr, overflow.data());  // a skipped step does not advance the schedule
      CHECK(run.lr(0) == (found.empty() ? 0.0f : found.back()));
      run.step();
      found.push_back(run.lr(0));
    }
    return found;
  };
  CHECK(rates(base, 3) == std::vector<float>{8, 8, 8});
  base.warmup_steps = 4;
  CHECK(rates(base, 6) == std::vector<float>{2, 4, 6, 8, 8, 8});
  base.warmup_steps = 2;
  base.decay_steps = 4;
  base.lr_schedule = MP_LR_POLYNOMIAL;
  CHECK(rates(base, 8) == std::vector<float>{4, 8, 8, 6, 4, 2, 0, 0});
  base.decay_power = 2.0f;
  base.lr_end = 4.0f;
  CHECK(rates(base, 8) == std::vector<float>{4, 8, 8, 6.25, 5, 4.25, 4, 4});
  base.lr_schedule = MP_LR_EXPONENTIAL;
  base.decay_rate = 0.0625f;
  base.lr_end = 1.0f;
  CHECK(rates(base, 8) == std::vector<float>{4, 8, 8, 4, 2, 1, 1, 1});
  base.lr_schedule = MP_LR_INVERSE_SQRT;
  base.warmup_steps = 1;
  CHECK(rates(base, 4) == std::vector<float>{8, static_cast<float>(8 / std::sqrt(2.0)),
                                             static_cast<float>(8 / std::sqrt(3.0)), 4});
  base.lr_schedule = MP_LR_COSINE;
  base.decay_steps = 2;
  base.lr_end = 2.0f;
  CHECK(rates(base, 5) == std::vector<float>{8, 8, 5, 2, 2});
}

TEST_CASE("optimizer options: a schedule applies only to its group", "[optimizer][short]") {
  OptimizerSpec spec = plain_spec();
  spec.groups = {sgd_hyper(.5f, 0), sgd_hyper(.5f, 0)};
  spec.groups[1].warmup_steps = 2;
  spec.tensor_group = {0, 1, 1, 0, 0};
  OptimizerRun run = plain_run(spec, 4.0, 1.0);
  run.step();
  CHECK(run.lr(0) == .5f);
  CHECK(run.lr(1) == .25f);
  const TensorValues w = run.master().download();
  for (size_t t = 0; t < w.size(); ++t) {
    for (const double value : w[t]) CHECK(value == (spec.tensor_group[t] == 1 ? 3.75 : 3.5));
  }
}

TEST_CASE("optimizer options: schedules support more groups than a block has threads",
          "[optimizer][short]") {
  for (OptimizerSpec spec : all_kinds()) {
    spec.groups.resize(300, spec.groups[0]);
    for (mp_param_group_t &group : spec.groups) {
      group.lr = 8.0f;
      group.warmup_steps = 4;
    }
    OptimizerRun run(spec);
    run.master().fill(0.0);
    run.grads().fill(0.0);
    for (const float wanted : {2.0f, 4.0f}) {
      run.step();
      int wrong = 0;
      for (uint32_t g = 0; g < spec.groups.size(); ++g) wrong += run.lr(g) != wanted;
      CAPTURE(spec.kind, wanted);
      CHECK(wrong == 0);
    }
  }
}

// ---------------------------------------------------------------------------- multipliers

TEST_CASE("optimizer options: multipliers can be rewritten between steps", "[optimizer][short]") {
  OptimizerSpec spec = plain_spec();
  spec.groups[0].weight_decay = .5f;
  spec.lr_multipliers = {1, 1, 0, 2, .5f};
  spec.decay_multipliers = {1, 1, 1, 0, 2};
  OptimizerRun run = plain_run(spec, 4.0, 1.0);
  run.step();
  // 4 - .5 lr (1 + .5 decay 4)
  const double wanted[] = {2.5, 0, 4, 3, 2.75};
  const auto check = [&](const double(&values)[5]) {
    const TensorValues w = run.master().download();
    for (size_t t = 0; t < w.size(); ++t) {
      for (const double value : w[t]) CHECK(value == values[t]);
    }
  };
  check(wanted);
  run.set_lr_multipliers({0, 0, 1, 0, 0});
  run.step();
  const double later[] = {2.5, 0, 2.5, 3, 2.75};
  check(later);
}

// ---------------------------------------------------------------------------- regularizers

TEST_CASE("optimizer options: regularizers of 1e-5 do not underflow", "[optimizer][short]") {
  // OpenSeq2Seq's example: in FP16, the gradient 2e-9 of a weight of 1e-4 would be 0.
  OptimizerSpec spec = spec_of(MP_OPT_SGD, sgd_hyper(1, 0));
  spec.groups[0].l2 = 1e-5f;
  OptimizerRun run = plain_run(spec, 1e-4f, 0.0);
  run.step();
  const Bounded w = 1e-4f, moved = w - Bounded(2.0) * 1e-5f * w;
  for (const std::vector<double> &tensor : run.master().download()) {
    for (const double value : tensor) {
      CHECK(within(moved, value));
      CHECK(value < 1e-4f);
    }
  }
}

TEST_CASE("optimizer options: regularizers are exact and l1 has no gradient at 0",
          "[optimizer][short]") {
  OptimizerSpec spec = plain_spec();
  spec.groups[0].l1 = 2.0f;
  spec.groups[0].l2 = .25f;
  CHECK(plain_run(spec, 4, 0).master().download() == constant_values(spec.grads, 4));
  const auto moved = [&](double w) {
    OptimizerRun run = plain_run(spec, w, 1);
    run.step();
    return run.master().download();
  };
  CHECK(moved(4) == constant_values(spec.grads, 1.5));    // 4 - .5 (1 + 2 + 2)
  CHECK(moved(-4) == constant_values(spec.grads, -2.5));  // -4 - .5 (1 - 2 - 2)
  CHECK(moved(0) == constant_values(spec.grads, -.5));
}

TEST_CASE("optimizer options: the loss of the regularizers is exact", "[optimizer][short]") {
  const auto loss_of = [](OptimizerRun &run) {
    const DeviceFloat loss(-1.0f);
    require_ok(mp_optimizer_regularization(run.get(), loss.data(), kStream));
    return loss.value();
  };
  OptimizerSpec spec = plain_spec();
  spec.groups = {sgd_hyper(1, 0), sgd_hyper(1, 0)};
  spec.groups[0].l1 = 2.0f;
  spec.groups[1].l2 = .5f;
  spec.tensor_group = {0, 1, 1, 0, 1};  // tensors of 33, 0, 40, 7 and 8 elements
  OptimizerRun run = plain_run(spec, -4.0, 0.0);
  CHECK(loss_of(run) == 40 * 2 * 4 + 48 * .5 * 16);
  CHECK(run.t() == 0);
  spec.decay_multipliers = {0, 1, .5f, 1, 1};
  OptimizerRun scaled = plain_run(spec, -4.0, 0.0);
  CHECK(loss_of(scaled) == 7 * 2 * 4 + (20 + 8) * .5 * 16);

  OptimizerRun none = plain_run(plain_spec(), HUGE_VAL, 0.0);
  CHECK(loss_of(none) == 0.0f);
}

TEST_CASE("optimizer options: the loss over many chunks is deterministic", "[optimizer]") {
  OptimizerSpec spec = plain_spec();
  spec.grads = awkward_tensors();
  spec.model = {};
  spec.groups[0].l1 = .03f;
  spec.groups[0].l2 = .01f;
  OptimizerRun run(spec);
  Random random(41);
  const TensorValues w = real_values(run.master().specs(), random, 2.0);
  run.master().upload(w);
  const DeviceFloat loss(-1.0f), again(-1.0f);
  require_ok(mp_optimizer_regularization(run.get(), loss.data(), kStream));
  require_ok(mp_optimizer_regularization(run.get(), again.data(), kStream));
  CHECK(same_bits(loss.value(), again.value()));
  double exact = 0.0;
  for (const std::vector<double> &tensor : run.master().download()) {
    for (const double x : tensor) {
      exact += static_cast<double>(.03f) * std::fabs(x) + static_cast<double>(.01f) * x * x;
    }
  }
  // All terms have one sign; a chunk's sum takes at most kChunk roundings, a square one more.
  const double error = exact * gamma_bound(kChunk + 1.0, fp32_operation());
  CHECK(within(rounded(exact, error), loss.value()));
}

TEST_CASE("optimizer options: extra gradients are neither scaled nor clipped",
          "[optimizer][short]") {
  OptimizerSpec spec = plain_spec();
  spec.has_extra = true;
  spec.groups[0].clip_value = .5f;
  OptimizerRun run = plain_run(spec, 4.0, 64.0);
  run.extra()->fill(3.0);
  const DeviceFloat scale(0.25f);
  const std::vector<uint8_t> before = run.extra()->bits();
  run.step(scale.data());
  CHECK(run.master().download() == constant_values(spec.grads, 2.25));  // 4 - .5 (.5 + 3)
  CHECK(run.extra()->bits() == before);
}

// ---------------------------------------------------------------------------- clipping

TEST_CASE("optimizer options: clipping by value keeps signs and small values",
          "[optimizer][short]") {
  OptimizerSpec spec = plain_spec();
  spec.grads = {{MP_FP32, 5}};
  spec.model = {};
  spec.groups[0].clip_value = 1.0f;
  OptimizerRun run = plain_run(spec, 0.0, 0.0);
  run.grads().upload({{-8, 8, .5, -.25, 0}});
  run.step();
  CHECK(run.master().download() == TensorValues{{.5, -.5, -.25, .125, 0}});
}

TEST_CASE("optimizer options: clipping by tensor norm", "[optimizer][short]") {
  OptimizerSpec spec = plain_spec();
  spec.grads = {{MP_FP32, 4}, {MP_FP16, 16}, {MP_FP32, 0}};
  spec.model = {};
  spec.groups[0].max_tensor_norm = 4.0f;
  OptimizerRun run = plain_run(spec, 0.0, 2.0);
  const DeviceFloat half(0.5f);
  run.step(half.data());  // |g| = 2 is unchanged; 4 is scaled to the limit except for the 1e-6
  const TensorValues w = run.master().download();
  for (const double value : w[0]) CHECK(value == -.5);
  const Bounded clipped = oracle::clip_factor(8.0, .5, 4.0) * 2.0;
  for (const double value : w[1]) CHECK(within(Bounded(0.0) - Bounded(.5) * clipped, value));
}

TEST_CASE("optimizer options: a norm limit cannot be enabled later", "[optimizer][short]") {
  mp_param_group_t limited = sgd_hyper(.5f, 0);
  limited.max_tensor_norm = 1.0f;
  OptimizerRun run(plain_spec());
  expect_status(mp_optimizer_set_group(run.get(), 0, &limited, kStream), MP_ERROR_INVALID_ARGUMENT);
  OptimizerSpec spec = plain_spec();
  spec.groups[0] = limited;
  OptimizerRun other = plain_run(spec, 4.0, 64.0);
  other.set_hyper(0, sgd_hyper(.5f, 0));  // can be disabled
  other.step();
  CHECK(other.master().download() == constant_values(spec.grads, -28.0));
}

// Options of all optimizers: moments, learning-rate schedules, the loss of the regularizers.
// test_step_skips.cpp combines all other options.
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

TEST_CASE("optimizer options: schedules follow the formulas", "[optimizer][short]") {
  for (const mp_lr_schedule_t schedule :
       {MP_LR_CONSTANT, MP_LR_POLYNOMIAL, MP_LR_COSINE, MP_LR_EXPONENTIAL, MP_LR_INVERSE_SQRT}) {
    for (const uint32_t warmup : {0u, 1u, 3u}) {
      for (const float end : {0.0f, 1.0f}) {
        mp_param_group_t hyper = sgd_hyper(8, 0);
        hyper.lr_schedule = schedule;
        hyper.warmup_steps = warmup;
        hyper.decay_steps = 4;
        hyper.decay_power = end + 1.0f;
        hyper.decay_rate = .0625f;
        hyper.lr_end = end;
        CAPTURE(schedule, warmup, end);
        CheckedRun checked(spec_of(MP_OPT_SGD, hyper), 42);
        CHECK(checked.run.lr(0) == 0.0f);
        for (int step = 0; step < 9; ++step) checked.step(1.0f);
      }
    }
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

// ---------------------------------------------------------------------------- regularizers

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

// ---------------------------------------------------------------------------- clipping

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

// Optimizers: the formulas, groups and skipped steps.
#include "checked_optimizer.h"

using namespace mptest;

// ---------------------------------------------------------------------------- the formulas

TEST_CASE("optimizer: every rule follows its formula", "[optimizer][short]") {
  for (const OptimizerSpec &spec : all_rules()) {
    CAPTURE(spec.kind, spec.flags, spec.groups[0].beta1, spec.groups[0].weight_decay);
    CheckedRun checked(spec, 1);
    for (const float grad_scale : {1.0f, 0.125f, 0.3f, 0x1p-20f}) checked.step(grad_scale);
  }
}

TEST_CASE("optimizer: every rule follows its formula for awkward sizes, types and alignments",
          "[optimizer]") {
  for (OptimizerSpec spec : all_kinds()) {
    spec.grads = awkward_tensors();
    spec.model = mixed_models(spec.grads.size());
    CheckedRun checked(spec, 2);
    checked.step(1.0f);
    checked.step(0.25f);
  }
}

TEST_CASE("optimizer: results for powers of two are exact", "[optimizer][short]") {
  // w = 4, g = 3 at S = 2: computed by hand, because a bound could hide a missing term.
  OptimizerSpec spec = spec_of(MP_OPT_SGD, sgd_hyper(.5f, .5f, .25f, .5f));
  OptimizerRun run(spec);
  const DeviceFloat half(0.5f);
  run.master().fill(4.0);
  run.grads().fill(3.0);
  run.step(half.data());  // g = 1.5 + .5 * 4 = 3.5; m = 3.5; w = 4 - 1.75
  CHECK(run.m()->download() == constant_values(run.grads().specs(), 3.5));
  CHECK(run.master().download() == constant_values(run.grads().specs(), 2.25));
  run.step(half.data());  // g = 1.5 + 1.125 = 2.625; m = 1.75 + .75 * 2.625 = 3.71875
  CHECK(run.m()->download() == constant_values(run.grads().specs(), 3.71875));
  CHECK(run.master().download() == constant_values(run.grads().specs(), 0.390625));
}

TEST_CASE("optimizer: results for powers of two are exact for the other rules",
          "[optimizer][short]") {
  const auto first_step = [](const OptimizerSpec &spec, double w, double g, double m, double v) {
    OptimizerRun run(spec);
    run.master().fill(w);
    run.grads().fill(g);
    if (run.m() != nullptr) run.m()->fill(m);
    if (run.v() != nullptr) run.v()->fill(v);
    run.step();
    return run.master().download();
  };
  OptimizerSpec spec =
      spec_of(MP_OPT_SGD, sgd_hyper(.5f, .5f, 0, .5f), MP_OPT_FLAG_DECAY_AFTER_MOMENTUM);
  const auto all = [&](double w) { return constant_values(spec.grads, w); };
  CHECK(first_step(spec, 4, 3, 0, 0) == all(1.5));  // m = 3; w = 4 - .5 (3 + .5 * 4)

  spec = spec_of(MP_OPT_ADAGRAD, mp_param_group_default(MP_OPT_ADAGRAD, .5f));
  spec.groups[0].eps = 0x1p-100f;
  CHECK(first_step(spec, 4, 4, 0, 48) == all(3.75));  // v = 64; w = 4 - .5 * 4 / 8
  spec.groups[0].weight_decay = .25f;
  spec.flags = MP_OPT_FLAG_DECOUPLED_DECAY;
  CHECK(first_step(spec, 4, 4, 0, 48) == all(3.25));  // w = 4 - .5 (4 / 8 + .25 * 4)

  spec = spec_of(MP_OPT_RMSPROP, mp_param_group_default(MP_OPT_RMSPROP, .5f));
  spec.groups[0].beta1 = .5f;
  spec.groups[0].beta2 = .75f;
  spec.groups[0].eps = 0x1p-100f;
  CHECK(first_step(spec, 4, 2, 2, 4) == all(3));  // v = 4; m = .5 * 2 + 2 / 2; w = 4 - .5 * 2
}

TEST_CASE("optimizer: formulas hold for large t", "[optimizer][short]") {
  for (const int64_t t : {int64_t{999}, int64_t{1000000}, int64_t{1} << 40}) {
    CheckedRun checked(spec_of(MP_OPT_ADAM, adam_hyper(.01f)), 4);
    checked.run.set_t(t);
    CHECK(checked.run.t() == t);
    checked.step(1.0f);
    CHECK(checked.run.t() == t + 1);
  }
}

TEST_CASE("optimizer: zero gradients leave Adam's weights unchanged", "[optimizer][short]") {
  OptimizerRun run(spec_of(MP_OPT_ADAM, adam_hyper(.01f)));
  Random random(5);
  run.master().upload(real_values(run.master().specs(), random, 2.0));
  run.grads().fill(0.0);
  const OptimizerState before = run.state();
  run.step();
  const OptimizerState after = run.state();
  CHECK(after.master == before.master);
  CHECK(after.m == before.m);
  CHECK(after.v == before.v);
  CHECK(after.t == 1);
}

TEST_CASE("optimizer: SGD without momentum does not require m and leaves a given m unchanged",
          "[optimizer][short]") {
  OptimizerSpec spec = spec_of(MP_OPT_SGD, sgd_hyper(.1f, 0, 0, .05f));
  spec.has_m = false;
  CheckedRun without(spec, 6);
  without.step(1.0f);
  without.step(1.0f);

  spec.has_m = true;
  OptimizerRun with(spec);
  Random random(7);
  with.m()->upload(real_values(with.m()->specs(), random, 1.0));
  with.master().fill(1.0);
  with.grads().fill(1.0);
  const std::vector<uint8_t> before = with.state().m;
  with.step();
  CHECK(with.state().m == before);
}

// ---------------------------------------------------------------------------- groups

TEST_CASE("optimizer: every tensor follows the hyperparameters of its group",
          "[optimizer][short]") {
  OptimizerSpec sgd = spec_of(MP_OPT_SGD, sgd_hyper(.1f, 0));
  sgd.groups = {sgd_hyper(.1f, 0), sgd_hyper(.5f, .9f, .5f), sgd_hyper(.01f, .5f, 0, .25f)};
  OptimizerSpec adam = spec_of(MP_OPT_ADAM, adam_hyper(.1f));
  adam.groups = {adam_hyper(.1f), adam_hyper(.5f, .25f), adam_hyper(.01f)};
  adam.groups[2].beta1 = 0.5f;
  adam.groups[2].eps = 0.5f;
  for (OptimizerSpec &spec : {std::ref(sgd), std::ref(adam)}) {
    spec.tensor_group = {2, 0, 1, 0, 2};
    CheckedRun checked(spec, 9);
    checked.step(1.0f);
    checked.step(0.5f);
    mp_param_group_t changed = spec.groups[0];
    changed.lr = 0.25f;
    changed.weight_decay = 0.125f;
    changed.beta1 = 0.25f;  // changes Adam's bias correction too
    checked.run.set_hyper(0, changed);
    checked.step(1.0f);
    checked.step(1.0f);
    checked.run.set_t(1);  // the learning rate prepared for step 6 does not apply to step 2
    checked.step(1.0f);
  }
}

TEST_CASE("optimizer: a NaN master weight affects only its own copy", "[optimizer][short]") {
  for (OptimizerSpec spec :
       {spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f)), spec_of(MP_OPT_ADAM, adam_hyper(.01f))}) {
    spec.grads = {{MP_FP16, 20}};
    spec.model = {MP_FP16};
    OptimizerRun run(spec);
    run.master().fill(1.0);
    run.master().inject(0, 11, 0x7fc00000);
    run.grads().upload(constant_values(spec.grads, 1.0));
    run.step();
    const std::vector<double> w = run.master().download()[0], model = run.model()->download()[0];
    for (size_t i = 0; i < w.size(); ++i) {
      CHECK(std::isnan(w[i]) == (i == 11));
      CHECK(std::isnan(model[i]) == (i == 11));
    }
  }
}

// ---------------------------------------------------------------------------- skipped steps

TEST_CASE("optimizer: random sequences with overflows follow the formulas", "[optimizer]") {
  for (const OptimizerSpec &spec : all_rules()) {
    CAPTURE(spec.kind, spec.flags, spec.groups[0].beta1, spec.groups[0].weight_decay);
    CheckedRun checked(spec, 20);
    // Initializes the copies, which no step has written yet.
    if (checked.run.model() != nullptr) checked.run.model()->fill(-7.0);
    const UniqueScaler scaler = make_scaler(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
    // The first step overflows, then one and two in a row, and random ones.
    Random random(21);
    for (int step = 0; step < 24; ++step) {
      const bool overflows = step < 2 || step == 5 || step == 8 || step == 9;
      if (overflows || random.integer(0, 5) == 0) {
        checked.overflowing_step(scaler.get());
      } else {
        checked.fused_step(scaler.get());
      }
    }
  }
}

TEST_CASE("optimizer: setting t to 0 makes the next step the first", "[optimizer][short]") {
  CheckedRun checked(spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f, .5f)), 12);
  checked.step(1.0f);
  checked.run.set_t(0);
  checked.step(1.0f);
  CHECK(checked.run.t() == 1);
}

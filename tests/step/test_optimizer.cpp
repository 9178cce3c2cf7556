// Optimizers: the formulas and groups.
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

TEST_CASE("optimizer: formulas hold for large t", "[optimizer][short]") {
  for (const int64_t t : {int64_t{999}, int64_t{1000000}, int64_t{1} << 40}) {
    CheckedRun checked(spec_of(MP_OPT_ADAM, adam_hyper(.01f)), 4);
    checked.run.set_t(t);
    CHECK(checked.run.t() == t);
    checked.step(1.0f);
    CHECK(checked.run.t() == t + 1);
  }
}

TEST_CASE("optimizer: SGD without momentum does not require m and ignores a given m",
          "[optimizer][short]") {
  OptimizerSpec spec = spec_of(MP_OPT_SGD, sgd_hyper(.1f, 0, 0, .05f));
  spec.has_m = false;
  CheckedRun without(spec, 6);
  without.step(1.0f);
  without.step(1.0f);

  spec.has_m = true;
  spec.groups[0] = sgd_hyper(1.0f, 0);
  OptimizerRun with(spec);
  with.m()->fill(kNaN);
  with.master().fill(1.0);
  with.grads().fill(0.25);
  const std::vector<uint8_t> before = with.state().m;
  with.step();
  CHECK(with.state().m == before);
  CHECK(with.master().download() == constant_values(spec.grads, 0.75));
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
    spec.groups[1].warmup_steps = 3;
    spec.lr_multipliers = {1, 1, 0, 2, .5f};
    spec.decay_multipliers = {1, 1, 1, 0, 2};
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
    checked.run.set_lr_multipliers({0, 0, 1, 0, 3});
    checked.step(1.0f);
    for (const int64_t t : {1, 0}) {
      checked.run.set_t(t);  // the learning rate prepared for step 6 does not apply to step 2
      checked.step(1.0f);
    }
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

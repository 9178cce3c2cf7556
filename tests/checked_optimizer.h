// An optimizer whose every step is compared with the formulas in fp64.
//
// Each step is checked on its own: the oracle starts from the state that the device had before it,
// so one step's error bound suffices and nothing can hide in the drift of many.  The 16-bit copy
// must be the device's own new master weight, rounded.
#pragma once

#include "oracle_step.h"
#include "step_fixtures.h"

namespace mptest {

/// Starts with random weights.
class CheckedRun {
 public:
  CheckedRun(const OptimizerSpec &spec, uint64_t seed) : run(spec), random_(seed) {
    run.master().upload(real_values(run.master().specs(), random_, 2.0));
  }

  /// A step with new gradients in [-8, 8) times grad_scale.
  void step(float grad_scale) {
    run.grads().upload(real_values(run.grads().specs(), random_, 8.0));
    const Values before = values();
    const std::vector<uint8_t> grads_before = run.grads().bits();
    const int64_t t = run.t() + 1;
    const DeviceFloat scale(grad_scale);
    run.step(scale.data());
    CHECK(run.t() == t);
    CHECK(run.grads().bits() == grads_before);
    check(before, values(), grad_scale, t);
  }

  OptimizerRun run;

 private:
  struct Values {
    TensorValues g, w, m, v, model;
  };

  Values values() {
    Values values{run.grads().download(), run.master().download(), {}, {}, {}};
    if (run.m() != nullptr) values.m = run.m()->download();
    if (run.v() != nullptr) values.v = run.v()->download();
    if (run.model() != nullptr) values.model = run.model()->download();
    return values;
  }

  /// The oracle's result for one weight.
  oracle::Weight wanted(const Values &before, size_t t, size_t i, float grad_scale,
                        int64_t step) const {
    const OptimizerSpec &spec = run.spec();
    const oracle::Weight old{before.w[t][i], before.m.empty() ? 0.0 : before.m[t][i],
                             before.v.empty() ? 0.0 : before.v[t][i]};
    const Bounded g = Bounded(before.g[t][i]) * grad_scale;
    return spec.kind == MP_OPT_SGD ? oracle::sgd(old, g, run.hyper_of(t), spec.flags, step)
                                   : oracle::adam(old, g, run.hyper_of(t), spec.flags, step);
  }

  void check(const Values &before, const Values &after, float grad_scale, int64_t step) {
    int wrong_w = 0, wrong_m = 0, wrong_v = 0, wrong_model = 0;
    for (size_t t = 0; t < after.w.size(); ++t) {
      for (size_t i = 0; i < after.w[t].size(); ++i) {
        const oracle::Weight weight = wanted(before, t, i, grad_scale, step);
        wrong_w += !within(weight.w, after.w[t][i]);
        if (!after.m.empty()) wrong_m += !within(weight.m, after.m[t][i]);
        if (!after.v.empty()) wrong_v += !within(weight.v, after.v[t][i]);
        wrong_model += !model_is_right(t, i, after);
      }
    }
    CAPTURE(step);
    CHECK(wrong_w == 0);
    CHECK(wrong_m == 0);
    CHECK(wrong_v == 0);
    CHECK(wrong_model == 0);
  }

  bool model_is_right(size_t t, size_t i, const Values &after) const {
    const OptimizerSpec &spec = run.spec();
    if (spec.model.empty() || spec.model[t] == MP_DTYPE_NONE) return true;
    return same_value(after.model[t][i],
                      oracle::model_of(after.w[t][i], spec.model[t], spec.flags));
  }

  Random random_;
};

// ---------------------------------------------------------------------------- specs

/// One copy in each 16-bit type and one parameter without, in turn.
inline std::vector<mp_dtype_t> mixed_models(size_t count) {
  const mp_dtype_t types[] = {MP_FP16, MP_BF16, MP_DTYPE_NONE};
  std::vector<mp_dtype_t> models;
  for (size_t t = 0; t < count; ++t) models.push_back(types[t % 3]);
  return models;
}

inline OptimizerSpec spec_of(mp_optimizer_kind_t kind, const mp_hyper_t &hyper,
                             uint32_t flags = 0) {
  const std::vector<TensorSpec> grads = small_tensors();
  return {kind, flags, {hyper}, {}, grads, mixed_models(grads.size()), true};
}

/// The rules with all their options.
inline std::vector<OptimizerSpec> all_rules() {
  const uint32_t uncorrected = MP_OPT_NO_BIAS_CORRECTION, decoupled = MP_OPT_DECOUPLED_DECAY;
  return {spec_of(MP_OPT_SGD, sgd_hyper(.1f, 0)),
          spec_of(MP_OPT_SGD, sgd_hyper(.1f, 0, 0, .05f)),
          spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f)),
          spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f, .3f, .05f)),
          spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f, 0, .05f), MP_OPT_NESTEROV),
          spec_of(MP_OPT_ADAM, adam_hyper(.01f)),
          spec_of(MP_OPT_ADAM, adam_hyper(.01f, .05f)),
          spec_of(MP_OPT_ADAM, adam_hyper(.01f, .05f), decoupled),
          spec_of(MP_OPT_ADAM, adam_hyper(.01f), uncorrected),
          spec_of(MP_OPT_ADAM, adam_hyper(.01f, .05f), decoupled | uncorrected)};
}

}  // namespace mptest

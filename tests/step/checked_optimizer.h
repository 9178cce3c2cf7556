// An optimizer whose steps are compared with the formulas in fp64.
//
// Each step is checked separately: the oracle starts from the device's state before the step, so
// the error bound of one step suffices and errors do not accumulate.  The 16-bit copy must be the
// device's new master weight, rounded.
#pragma once

#include "oracle_optimizer.h"
#include "step_fixtures.h"

namespace mptest {

/// Optimizer with random initial weights.  Some weights and gradients are 0.
class CheckedRun {
 public:
  CheckedRun(const OptimizerSpec &spec, uint64_t seed) : run(spec), random_(seed) {
    run.master().upload(values_and_zeros(run.master().specs(), 2.0, 5));
    if (run.model() != nullptr) run.model()->fill(-7.0);
  }

  /// Takes a step with new gradients in [-8, 8) times grad_scale, and a flag that is not raised.
  void step(float grad_scale) {
    draw_gradients();
    const DeviceFloat scale(grad_scale), flag(-0.0f);
    check_step(grad_scale, [&] { run.step(scale.data(), flag.data()); });
    CHECK(same_bits(flag.value(), -0.0f));
  }

  /// Takes a step with new gradients by mp_scale_step.
  void fused_step(mp_scaler_t scaler) {
    draw_gradients();
    check_step(read_float(mp_scaler_get_inv_scale_address(scaler)),
               [&] { require_ok(mp_scale_step(run.get(), scaler, nullptr, kStream)); });
  }

  /// Takes a step with a non-finite gradient: nothing may change.
  void overflowing_step(mp_scaler_t scaler) {
    draw_gradients();
    inject_nonfinite({&run.grads()}, random_);
    const OptimizerState before = run.state();
    require_ok(mp_scale_step(run.get(), scaler, nullptr, kStream));
    CHECK(run.state() == before);
  }

  void draw_gradients() {
    run.grads().upload(values_and_zeros(run.grads().specs(), 8.0, 7));
    if (run.extra() != nullptr) {
      run.extra()->upload(real_values(run.extra()->specs(), random_, 1.0));
    }
  }
  /// Returns the bits of all tensors that no step writes.
  std::vector<uint8_t> bits_read() {
    std::vector<uint8_t> bits = run.grads().bits();
    if (run.extra() == nullptr) return bits;
    const std::vector<uint8_t> extra = run.extra()->bits();
    bits.insert(bits.end(), extra.begin(), extra.end());
    return bits;
  }

  OptimizerRun run;

 private:
  struct Values {
    TensorValues g, extra, w, m, v, model;
  };

  Values values() {
    Values values;
    values.g = run.grads().download();
    values.w = run.master().download();
    if (run.extra() != nullptr) values.extra = run.extra()->download();
    if (run.m() != nullptr) values.m = run.m()->download();
    if (run.v() != nullptr) values.v = run.v()->download();
    if (run.model() != nullptr) values.model = run.model()->download();
    return values;
  }

  /// Returns reals in [-range, range), of which every `period`-th is 0.
  TensorValues values_and_zeros(const std::vector<TensorSpec> &specs, double range, size_t period) {
    TensorValues values = real_values(specs, random_, range);
    for (std::vector<double> &tensor : values)
      for (size_t i = period - 1; i < tensor.size(); i += period) tensor[i] = 0.0;
    return values;
  }

  template <typename Step>
  void check_step(float grad_scale, Step step) {
    const Values before = values();
    const std::vector<uint8_t> read = bits_read();
    const int64_t t = run.t() + 1;
    step();
    CHECK(run.t() == t);
    CHECK(bits_read() == read);
    check(before, values(), grad_scale, t);
    for (uint32_t group = 0; group < run.spec().groups.size(); ++group) {
      CHECK(within(oracle::learning_rate(run.spec().groups[group], t), run.lr(group)));
    }
  }

  void check(const Values &before, const Values &after, float grad_scale, int64_t step) {
    const OptimizerSpec &spec = run.spec();
    const bool one_v = spec.kind == MP_OPT_NOVOGRAD;
    int wrong_w = 0, wrong_m = 0, wrong_v = 0, wrong_model = 0;
    for (size_t t = 0; t < after.w.size(); ++t) {
      std::vector<oracle::Weight> old;
      for (size_t i = 0; i < after.w[t].size(); ++i) {
        old.push_back({before.w[t][i], before.m.empty() ? 0.0 : before.m[t][i],
                       before.v.empty() || one_v ? 0.0 : before.v[t][i]});
      }
      const oracle::TensorStep s{spec.kind,
                                 spec.flags,
                                 run.hyper_of(t),
                                 spec.lr_multipliers.empty() ? 1.0 : spec.lr_multipliers[t],
                                 spec.decay_multipliers.empty() ? 1.0 : spec.decay_multipliers[t],
                                 grad_scale,
                                 step,
                                 kChunk};
      Bounded tensor_v = one_v ? before.v[t][0] : 0.0;
      const std::vector<oracle::Weight> wanted = oracle::step_tensor(
          s, before.g[t], before.extra.empty() ? std::vector<double>() : before.extra[t], old,
          tensor_v);
      if (one_v) wrong_v += !within(tensor_v, after.v[t][0]);
      for (size_t i = 0; i < after.w[t].size(); ++i) {
        wrong_w += !within(wanted[i].w, after.w[t][i]);
        if (!after.m.empty()) wrong_m += !within(wanted[i].m, after.m[t][i]);
        if (!after.v.empty() && !one_v) wrong_v += !within(wanted[i].v, after.v[t][i]);
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

/// Returns the types of the copies: FP16, BF16 and none, repeated.
inline std::vector<mp_dtype_t> mixed_models(size_t count) {
  const mp_dtype_t types[] = {MP_FP16, MP_BF16, MP_DTYPE_NONE};
  std::vector<mp_dtype_t> models;
  for (size_t t = 0; t < count; ++t) models.push_back(types[t % 3]);
  return models;
}

inline OptimizerSpec spec_of(mp_optimizer_kind_t kind, const mp_param_group_t &hyper,
                             uint32_t flags = 0) {
  OptimizerSpec spec;
  spec.kind = kind;
  spec.flags = flags;
  spec.groups = {hyper};
  spec.grads = small_tensors();
  spec.model = mixed_models(spec.grads.size());
  return spec;
}

inline OptimizerSpec with_weight_decay(OptimizerSpec spec, float weight_decay) {
  spec.groups[0].weight_decay = weight_decay;
  return spec;
}

/// Returns a spec with the default hyperparameters of `kind` and the given weight decay.
inline OptimizerSpec spec_of(mp_optimizer_kind_t kind, float weight_decay, uint32_t flags) {
  return with_weight_decay(spec_of(kind, mp_param_group_default(kind, .01f), flags), weight_decay);
}

inline OptimizerSpec momentum_spec() {
  return spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f, .2f, .05f));
}
inline OptimizerSpec adamw_spec() {
  return spec_of(MP_OPT_ADAM, adam_hyper(.01f, .05f), MP_OPT_FLAG_DECOUPLED_DECAY);
}
inline OptimizerSpec lamb_spec() {
  return spec_of(MP_OPT_LAMB, .01f, MP_OPT_FLAG_DECOUPLED_DECAY);
}
inline OptimizerSpec novograd_spec() {
  return spec_of(MP_OPT_NOVOGRAD, .001f, 0);
}
inline OptimizerSpec larc_spec() {
  return spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f, 0, .05f), MP_OPT_FLAG_LARC);
}
inline OptimizerSpec rmsprop_spec() {
  OptimizerSpec spec = spec_of(MP_OPT_RMSPROP, .05f, 0);
  spec.groups[0].beta1 = 0.9f;
  return spec;
}

/// Returns a spec of each kind, and of SGD with LARC.
inline std::vector<OptimizerSpec> all_kinds() {
  return {momentum_spec(), larc_spec(),     adamw_spec(),
          lamb_spec(),     novograd_spec(), spec_of(MP_OPT_ADAGRAD, .05f, 0),
          rmsprop_spec()};
}

/// Returns specs of all rules and their flags.
inline std::vector<OptimizerSpec> all_rules() {
  const uint32_t uncorrected = MP_OPT_FLAG_NO_BIAS_CORRECTION,
                 decoupled = MP_OPT_FLAG_DECOUPLED_DECAY;
  const uint32_t after = MP_OPT_FLAG_DECAY_AFTER_MOMENTUM;
  OptimizerSpec averaged = novograd_spec(), lars = larc_spec(), eager = larc_spec();
  averaged.groups[0].dampening = averaged.groups[0].beta1;
  lars.flags = MP_OPT_FLAG_LARS | MP_OPT_FLAG_NESTEROV;
  lars.groups[0].eps = .5f;
  eager.groups[0].trust_coefficient = 1e4f;  // a = 1
  std::vector<OptimizerSpec> rules = {
      spec_of(MP_OPT_SGD, sgd_hyper(.1f, 0)),
      spec_of(MP_OPT_SGD, sgd_hyper(.1f, 0, 0, .05f)),
      spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f)),
      spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f, .3f, .05f)),
      spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f, 0, .05f), MP_OPT_FLAG_NESTEROV),
      spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f, .3f, .05f), after),
      spec_of(MP_OPT_SGD, sgd_hyper(.1f, .9f, 0, .05f), MP_OPT_FLAG_NESTEROV | after),
      spec_of(MP_OPT_SGD, sgd_hyper(.1f, 0, 0, .05f), MP_OPT_FLAG_LARC),
      lars,
      eager,
      spec_of(MP_OPT_ADAM, adam_hyper(.01f)),
      spec_of(MP_OPT_ADAM, adam_hyper(.01f, .05f)),
      spec_of(MP_OPT_ADAM, adam_hyper(.01f), uncorrected),
      spec_of(MP_OPT_ADAM, adam_hyper(.01f, .05f), decoupled | uncorrected),
      spec_of(MP_OPT_LAMB, .05f, 0),
      spec_of(MP_OPT_LAMB, 0.0f, decoupled),
      spec_of(MP_OPT_LAMB, 0.0f, decoupled | MP_OPT_FLAG_NVLAMB),
      spec_of(MP_OPT_LAMB, .05f, decoupled | uncorrected),
      spec_of(MP_OPT_NOVOGRAD, 0.0f, 0),
      averaged,
      spec_of(MP_OPT_ADAGRAD, 0.0f, 0),
      spec_of(MP_OPT_ADAGRAD, .05f, decoupled),
      spec_of(MP_OPT_RMSPROP, 0.0f, 0)};
  for (const OptimizerSpec &spec : all_kinds()) rules.push_back(spec);
  return rules;
}

/// Enables all options of mp_param_group_t and mp_optimizer_desc_t; requires the five tensors of
/// small_tensors.
inline OptimizerSpec with_everything(OptimizerSpec spec) {
  mp_param_group_t &hyper = spec.groups[0];
  hyper.eps = .01f;  // if the terms of g cancel, g / |g| would amplify their rounding errors
  hyper.max_tensor_norm = 2.0f;
  hyper.clip_value = .75f;
  hyper.l1 = .03f;
  hyper.l2 = .01f;
  hyper.lr_schedule = MP_LR_COSINE;
  hyper.warmup_steps = 2;
  hyper.decay_steps = 3;
  hyper.lr_end = .001f;
  spec.lr_multipliers = {1.0f, .5f, 0.0f, 3.0f, .1f};
  spec.decay_multipliers = {0.0f, 1.0f, .3f, 2.0f, 1.0f};
  spec.has_extra = true;
  return spec;
}

}  // namespace mptest

// Mixed precision around another optimizer: an fp32 Adam on the host, between mp_grads_to_fp32 and
// mp_masters_to_model, equals mp_scale_step.
//
// On the host target bit for bit: both evaluate the formula in the same order, without fused
// multiply-add.  nvcc may contract a product and a sum, so on a GPU only outcomes and scales are
// compared; test_optimizer.cpp bounds the errors of the update rules.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

/// Kingma & Ba 2015, algorithm 1, without optimizations.  The values are floats.
class HostAdam {
 public:
  HostAdam(const mp_param_group_t &hyper, const std::vector<TensorSpec> &specs) : hyper_(hyper) {
    for (const TensorSpec &spec : specs) {
      m_.emplace_back(spec.numel, 0.0f);
      v_.emplace_back(spec.numel, 0.0f);
    }
  }

  void step(const TensorValues &grads, TensorValues &weights) {
    ++t_;
    const float m_correction = correction(hyper_.beta1), v_correction = correction(hyper_.beta2);
    for (size_t i = 0; i < weights.size(); ++i) {
      for (size_t j = 0; j < weights[i].size(); ++j) {
        const auto w = static_cast<float>(weights[i][j]);
        const float g = static_cast<float>(grads[i][j]) + hyper_.weight_decay * w;
        float &m = m_[i][j], &v = v_[i][j];
        m = hyper_.beta1 * m + (1.0f - hyper_.beta1) * g;
        v = hyper_.beta2 * v + (1.0f - hyper_.beta2) * (g * g);
        const float direction = m * m_correction / (std::sqrt(v * v_correction) + hyper_.eps);
        weights[i][j] = w - hyper_.lr * direction;
      }
    }
  }

  int64_t t() const { return t_; }

 private:
  float correction(float beta) const {
    return static_cast<float>(1.0 / (1.0 - std::pow(double{beta}, static_cast<double>(t_))));
  }

  mp_param_group_t hyper_;
  std::vector<std::vector<float>> m_, v_;
  int64_t t_ = 0;
};

/// A training program that uses HostAdam.
class HostProgram {
 public:
  HostProgram(const OptimizerRun &like, const mp_scaler_config_t &config, const TensorSet &models)
      : scaler(make_scaler(config)),
        grads(like.spec().grads),
        masters(with_dtype(grads.specs(), MP_FP32)),
        model(models.specs()),
        grads32_(masters.specs()),
        adam_(like.spec().groups[0], grads.specs()) {}

  /// Takes step number `step`; returns whether it was applied.
  bool step(int64_t step) {
    require_ok(mp_grads_to_fp32(scaler.get(), grads.list(), grads32_.list(), kStream));
    const bool taken = wait_for(step) == MP_STEP_OUTCOME_TAKEN;
    if (taken) update_masters();
    require_ok(mp_masters_to_model(masters.list(), model.list(),
                                   mp_scaler_get_found_inf_address(scaler.get()), nullptr,
                                   kStream));
    require_ok(mp_scaler_update(scaler.get(), nullptr, kStream));
    return taken;
  }
  int64_t t() const { return adam_.t(); }

  UniqueScaler scaler;
  TensorSet grads, masters, model;

 private:
  mp_step_outcome_t wait_for(int64_t step) const {
    mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
    while (outcome == MP_STEP_OUTCOME_PENDING)
      require_ok(mp_scaler_query_step(scaler.get(), step, &outcome));
    return outcome;
  }

  void update_masters() {
    TensorValues weights = masters.download();
    adam_.step(grads32_.download(), weights);
    masters.upload(weights);
  }

  TensorSet grads32_;
  HostAdam adam_;
};

void check_case(const OptimizerSpec &spec, const mp_scaler_config_t &config, uint64_t seed) {
  Random random(seed);
  OptimizerRun run(spec);
  const UniqueScaler scaler = make_scaler(config);
  HostProgram program(run, config, *run.model());
  const TensorValues weights = real_values(spec.grads, random, 2.0);
  run.master().upload(weights);
  program.masters.upload(weights);
  for (TensorSet *model : {run.model(), &program.model}) model->fill(1.0);

  for (int64_t step = 1; step <= 50; ++step) {
    upload_gradients({&run.grads(), &program.grads}, random);
    require_ok(mp_scale_step(run.get(), scaler.get(), nullptr, kStream));
    const bool taken = program.step(step);
    CAPTURE(config.policy, step, taken);
    CHECK((outcome_sync(scaler, step) == MP_STEP_OUTCOME_TAKEN) == taken);
    CHECK(program.t() == run.t());
    CHECK(same_state(program.scaler, scaler));
    if (!on_host()) continue;
    CHECK(program.masters.bits() == run.master().bits());
    CHECK(program.model.bits() == run.model()->bits());
  }
  const int64_t skipped = state_of(scaler.get()).skipped;
  CHECK(skipped > 5);
  CHECK(skipped < 30);
}

}  // namespace

TEST_CASE("any optimizer: Adam on the host equals mp_scale_step", "[anyopt][short]") {
  mp_scaler_config_t fixed = mp_scaler_config_default(MP_SCALER_POLICY_STATIC);
  fixed.init_scale = 96.0f;  // inexact reciprocal
  mp_scaler_config_t backoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  backoff.growth_interval = 3;
  uint64_t seed = 70;
  for (const mp_scaler_config_t &config :
       {fixed, backoff, mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL)}) {
    check_case(spec_of(MP_OPT_ADAM, adam_hyper(.01f)), config, ++seed);
    check_case(spec_of(MP_OPT_ADAM, adam_hyper(.01f, .05f)), config, ++seed);
  }
}

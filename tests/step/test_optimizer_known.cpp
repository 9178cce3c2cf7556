// Four steps with results from independent implementations, in fp64 and from the formulas of the
// named systems: SGD with momentum (torch, Apex), Adam with L2 decay (Apex FusedAdam, adam_w_mode =
// False), AdamW (Apex FusedAdam, torch).
#include "checked_optimizer.h"

using namespace mptest;

namespace {

/// Two tensors; the second has no gradient in the last step.  Only the weights below were given.
/// The gradients were found by search: of all multiples of 1/80 up to 2, for each weight, only
/// these lead to its three given values.
const std::vector<TensorSpec> kTensors = {{MP_FP32, 3}, {MP_FP32, 2}};
const TensorValues kStart = {{.5, -1.25, 2}, {.75, -.375}};
const TensorValues kGradients[] = {{{.25, -.5, .125}, {1, -2}},
                                   {{-.75, .5, .0625}, {.5, .25}},
                                   {{.1, .2, -.3}, {-.4, .6}},
                                   {{0, -.125, .5}, {0, 0}}};

// The weights are given to seven digits.  In addition, the oracle rounds lr, betas, weight decay
// and gradients to fp32: five numbers whose relative errors, at most u each, move no weight by more
// than that.
const double kKnownError = 0.5e-7 + 5 * unit_roundoff(MP_FP32);

/// Computes the weights by the formulas; the error bound grows from step to step.
std::vector<std::vector<Bounded>> by_formula(const OptimizerSpec &spec) {
  std::vector<std::vector<Bounded>> weights;
  for (size_t tensor = 0; tensor < kStart.size(); ++tensor) {
    std::vector<oracle::Weight> state;
    for (const double w : kStart[tensor]) state.push_back({w, 0.0, 0.0});
    for (int64_t t = 1; t <= 4; ++t) {
      const oracle::TensorStep step{.kind = spec.kind,
                                    .flags = spec.flags,
                                    .hyper = spec.groups[0],
                                    .t = t,
                                    .chunk_elems = kChunk};
      std::vector<double> g = kGradients[t - 1][tensor];
      for (double &value : g) value = round_to(MP_FP32, value);
      Bounded unused;
      state = oracle::step_tensor(step, g, {}, state, unused);
    }
    weights.push_back(oracle::weights_of(state));
  }
  return weights;
}

void check_known(mp_optimizer_kind_t kind, const mp_param_group_t &hyper, uint32_t flags,
                 const TensorValues &known) {
  OptimizerSpec spec = spec_of(kind, hyper, flags);
  spec.grads = kTensors;
  spec.model = {};
  OptimizerRun run(spec);
  run.master().upload(kStart);
  for (const TensorValues &gradients : kGradients) {
    run.grads().upload(gradients);
    run.step();
  }
  const TensorValues got = run.master().download();
  const std::vector<std::vector<Bounded>> wanted = by_formula(spec);
  for (size_t t = 0; t < known.size(); ++t) {
    for (size_t i = 0; i < known[t].size(); ++i) {
      CAPTURE(kind, flags, t, i, got[t][i], wanted[t][i].value, wanted[t][i].error, known[t][i]);
      CHECK(std::fabs(wanted[t][i].value - known[t][i]) <= kKnownError);
      CHECK(within(wanted[t][i], got[t][i]));
    }
  }
}

}  // namespace

TEST_CASE("optimizer known: SGD with momentum, Adam with L2 decay and AdamW match given results",
          "[optimizer][short]") {
  check_known(MP_OPT_SGD, sgd_hyper(.1f, .9f), 0,
              {{.5982750, -1.2390500, 1.9470750}, {.3466000, .1310500}});
  check_known(MP_OPT_ADAM, adam_hyper(.1f, .01f), 0,
              {{.5010907, -1.1757410, 1.7815493}, {.4710280, -.1732219}});
  check_known(MP_OPT_ADAM, adam_hyper(.1f, .01f), MP_OPT_FLAG_DECOUPLED_DECAY,
              {{.5019449, -1.1793055, 1.7907261}, {.4700872, -.1727158}});
}

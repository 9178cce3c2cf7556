// The rules that use norms of tensors: LAMB, LARC, LARS and NovoGrad.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

std::vector<OptimizerSpec> rules_with_norms() {
  OptimizerSpec lars = larc_spec();
  lars.flags = MP_OPT_FLAG_LARS;
  return {lamb_spec(), novograd_spec(), larc_spec(), lars};
}

/// Tensors of 4 and 16 equal elements: if these are powers of two, so are the norms.
OptimizerSpec square_spec(mp_optimizer_kind_t kind, const mp_param_group_t &hyper, uint32_t flags) {
  OptimizerSpec spec = spec_of(kind, hyper, flags);
  spec.grads = {{MP_FP32, 4}, {MP_FP16, 16, 1}};
  spec.model = {};
  return spec;
}

TensorValues after_step(OptimizerRun &run, double g) {
  run.grads().fill(g);
  run.step();
  return run.master().download();
}

/// Returns the weights, initially 4, after one step with gradients g.
TensorValues after_first_step(const OptimizerSpec &spec, double g) {
  OptimizerRun run(spec);
  run.master().fill(4.0);
  return after_step(run, g);
}

TensorValues pair_of(double first, double second) {
  return {std::vector<double>(4, first), std::vector<double>(16, second)};
}

}  // namespace

TEST_CASE("optimizer norms: results for powers of two are exact with LARS and LARC",
          "[optimizer][short]") {
  // |w| / (|g| + wd |w|) = 4 / (1 + .25 * 4) = 2 for any size; g + wd w = 2.
  mp_param_group_t hyper = sgd_hyper(.5f, 0, 0, .25f);
  hyper.trust_coefficient = .25f;
  CHECK(after_first_step(square_spec(MP_OPT_SGD, hyper, MP_OPT_FLAG_LARS), 1) ==
        pair_of(3.5, 3.5));  // a = .5; w = 4 - .5 * .5 * 2
  CHECK(after_first_step(square_spec(MP_OPT_SGD, hyper, MP_OPT_FLAG_LARC), 1) ==
        pair_of(3, 3));  // a = min(1, .5 / .5); w = 4 - .5 * 2
  hyper.lr = 2.0f;
  CHECK(after_first_step(square_spec(MP_OPT_SGD, hyper, MP_OPT_FLAG_LARC), 1) ==
        pair_of(3, 3));  // a = .5 / 2; w = 4 - 2 * .25 * 2
  hyper.lr = 0.0f;
  CHECK(after_first_step(square_spec(MP_OPT_SGD, hyper, MP_OPT_FLAG_LARC), 1) == pair_of(4, 4));
}

TEST_CASE("optimizer norms: results for powers of two are exact with LAMB", "[optimizer][short]") {
  // The first corrected Adam step is 1; u = 1 + wd w = 2, r = 4 / 2.
  mp_param_group_t hyper = mp_param_group_default(MP_OPT_LAMB, .5f);
  hyper.beta1 = hyper.beta2 = .5f;
  hyper.eps = 0x1p-100f;
  hyper.weight_decay = .25f;
  const uint32_t decoupled = MP_OPT_FLAG_DECOUPLED_DECAY;
  CHECK(after_first_step(square_spec(MP_OPT_LAMB, hyper, decoupled), 4) == pair_of(2, 2));
  hyper.weight_decay = 0.0f;  // u = 1
  CHECK(after_first_step(square_spec(MP_OPT_LAMB, hyper, decoupled), 4) == pair_of(3.5, 3.5));
  CHECK(after_first_step(square_spec(MP_OPT_LAMB, hyper, decoupled | MP_OPT_FLAG_NVLAMB), 4) ==
        pair_of(2, 2));  // r = 4
}

TEST_CASE("optimizer norms: results for powers of two are exact with NovoGrad",
          "[optimizer][short]") {
  mp_param_group_t hyper = mp_param_group_default(MP_OPT_NOVOGRAD, .5f);
  hyper.beta1 = .5f;
  hyper.beta2 = .75f;
  hyper.eps = 0x1p-100f;
  hyper.weight_decay = .25f;
  OptimizerRun run(square_spec(MP_OPT_NOVOGRAD, hyper, 0));
  run.master().fill(4.0);
  // |g|^2 = 16 and 64: m = 2 / 4 + 1 and 2 / 8 + 1.
  CHECK(after_step(run, 2) == pair_of(3.25, 3.375));
  CHECK(run.v()->download() == TensorValues{{16}, {64}});
  // The second moment decays: beta2 v.
  (void)after_step(run, 0);
  CHECK(run.v()->download() == TensorValues{{12}, {48}});
}

TEST_CASE("optimizer norms: a norm of 0 disables the ratio", "[optimizer][short]") {
  for (const uint32_t flags : {MP_OPT_FLAG_LARC, MP_OPT_FLAG_LARS}) {
    const OptimizerSpec spec = square_spec(MP_OPT_SGD, sgd_hyper(.5f, 0, 0, .25f), flags);
    CHECK(after_first_step(spec, 0) == pair_of(3.5, 3.5));  // w -= lr wd w
    OptimizerRun zero(spec);
    zero.master().fill(0.0);
    CHECK(after_step(zero, 1) == pair_of(-.5, -.5));
  }
  mp_param_group_t hyper = mp_param_group_default(MP_OPT_LAMB, .5f);
  hyper.eps = 0x1p-10f;
  OptimizerRun zero(
      square_spec(MP_OPT_LAMB, hyper, MP_OPT_FLAG_DECOUPLED_DECAY | MP_OPT_FLAG_NVLAMB));
  zero.master().fill(0.0);
  CHECK(after_step(zero, 0) == pair_of(0, 0));
  OptimizerRun novograd(
      square_spec(MP_OPT_NOVOGRAD, mp_param_group_default(MP_OPT_NOVOGRAD, .5f), 0));
  novograd.master().fill(4.0);
  CHECK(after_step(novograd, 0) == pair_of(4, 4));
}

TEST_CASE("optimizer norms: results do not depend on the number of blocks", "[optimizer][short]") {
  const UniqueContext one_sm = make_context(1);
  for (OptimizerSpec spec : rules_with_norms()) {
    // More chunks than one SM has blocks, so that a block processes several.
    spec.grads = {{MP_FP16, 9 * kChunk + 5, 1}, {MP_FP32, 7}, {MP_BF16, kChunk}};
    spec.model = mixed_models(spec.grads.size());
    OptimizerRun run(spec), other(spec, one_sm.get());
    Random random(31);
    const TensorValues w = real_values(run.master().specs(), random, 1.0);
    const TensorValues g = real_values(run.grads().specs(), random, 1.0);
    for (OptimizerRun *const each : {&run, &other}) {
      each->master().upload(w);
      each->grads().upload(g);
      each->model()->fill(0.0);
      each->step();
    }
    CHECK(run.master().bits() == other.master().bits());
    CHECK(run.m()->bits() == other.m()->bits());
    if (run.v() != nullptr) CHECK(run.v()->bits() == other.v()->bits());
  }
}

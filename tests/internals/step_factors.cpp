// Step factors, which a step computes in fp64 once per group instead of once per chunk: each step
// stores the factors of the next step, and factors of another t are not used.
#include <algorithm>

#include "kernels/step/update_rules.h"
#include "testing.h"

namespace mp::host {
void optimizer_step(const Device &, const OptimizerArgs &, const UpdateArgs &, mp_stream_t);
}

using namespace mp::host;
using namespace mptest;

namespace {

constexpr mp_optimizer_kind_t kKind = MP_OPT_ADAM;
constexpr int kElems = 8;

mp_param_group_t hyper_of(float beta1) {
  mp_param_group_t hyper{};
  hyper.lr = 0.5f;
  hyper.beta1 = beta1;
  hyper.beta2 = 0.75f;
  hyper.lr_schedule = MP_LR_EXPONENTIAL;
  hyper.decay_steps = 3;
  hyper.decay_rate = 0.3f;
  return hyper;
}

bool same(const mp::StepFactors &a, const mp::StepFactors &b) {
  return a.t == b.t && a.lr == b.lr && a.m_correction == b.m_correction &&
         a.v_correction == b.v_correction;
}

/// Adam on one tensor, with capi's layout of device memory; g = 1, eps = 0, w starts at 0.
struct OneTensor {
  float g[kElems], w[kElems] = {}, m[kElems] = {}, v[kElems] = {};
  void *addresses[4] = {g, w, m, v};
  int64_t numel = kElems, first_chunk[2] = {0, 1}, t = 0;
  uint8_t dtype = MP_FP32;
  mp::Chunk chunk{0, 0};
  uint32_t group_index = 0, blocks_done = 0;
  mp::ParamGroup group{hyper_of(0.5f), {}};
  float lr = 0.0f, found_inf = 0.0f;

  OneTensor() { std::fill_n(g, kElems, 1.0f); }

  mp::TensorList list(int which) {
    return {1, 1, &addresses[which], &numel, &dtype, &chunk, first_chunk};
  }
  void step() {
    mp::OptimizerArgs args{};
    args.kind = kKind;
    args.grads = list(0), args.master = list(1), args.m = list(2), args.v = list(3);
    args.tensor_group = &group_index;
    args.num_groups = 1;
    args.groups = &group;
    args.lr = &lr;
    args.t = &t;
    args.blocks_done = &blocks_done;
    mp::UpdateArgs update{};
    update.found_inf = &found_inf;
    mp::Device device{};
    device.num_sms = engine::max_workers();
    optimizer_step(device, args, update, nullptr);
  }
  mp::StepFactors factors_at(int64_t step) const {
    return step_factors<kKind>(0, group.hyper, step);
  }
};

}  // namespace

TEST_CASE("step factors: every applied step stores the factors of the next step") {
  OneTensor tensor;
  for (int64_t t = 1; t <= 4; t++) {
    tensor.step();
    CHECK(tensor.t == t);
    CHECK(tensor.lr == tensor.factors_at(t).lr);
    CHECK(same(tensor.group.factors, tensor.factors_at(t + 1)));
  }
}

TEST_CASE("step factors: a skipped step keeps the factors, and the next step uses them") {
  OneTensor tensor, other;
  tensor.step(), other.step();
  tensor.found_inf = 1.0f;
  tensor.step();
  CHECK(same(tensor.group.factors, tensor.factors_at(2)));
  tensor.found_inf = 0.0f;
  tensor.step(), other.step();
  CHECK(std::equal(tensor.w, tensor.w + kElems, other.w));
}

TEST_CASE("step factors: a step does not recompute stored factors") {
  OneTensor tensor;
  tensor.step();
  tensor.group.factors = {2, 4.0f, 0.0f, 1.0f};  // a correction of 0 keeps w unchanged
  const std::vector<float> before(tensor.w, tensor.w + kElems);
  tensor.step();
  CHECK(std::equal(before.begin(), before.end(), tensor.w));
  CHECK(tensor.lr == 4.0f);
  CHECK(same(tensor.group.factors, tensor.factors_at(3)));
}

TEST_CASE("step factors: factors of another t are not used") {
  for (const int64_t t : {0, 1, 6, 40}) {
    INFO("t = " << t);
    OneTensor stale, fresh;
    stale.step(), fresh.step();
    stale.t = fresh.t = t;
    if (t != 1) stale.group.factors = {2, 99.0f, 99.0f, 99.0f};
    fresh.group.factors = {};
    stale.step(), fresh.step();
    CHECK(std::equal(stale.w, stale.w + kElems, fresh.w));
    CHECK(stale.lr == fresh.lr);
    CHECK(same(stale.group.factors, stale.factors_at(t + 2)));
  }
}

// Tests of mp_scale_step over MPI: every rank takes the same decision and has the same S; a sharded
// optimizer gives the result of a single optimizer with all tensors, which each rank runs for
// comparison.
#include <cstring>

#include "world.h"

using namespace mptest;

namespace {

OptimizerSpec small_spec() {
  return spec_of(MP_OPT_SGD, sgd_hyper(0.5f, 0.9f));
}

/// State of this rank after a step; plain data.
struct Result {
  mp_scaler_state_t state;
  float skipped, grad_norm;
  int64_t t;
};

Result result_of(RankOfSteps &rank) {
  Result result;
  std::memset(&result, 0, sizeof result);
  result.state = state_of(rank.scaler.get());
  result.skipped = rank.skipped.value();
  result.grad_norm = rank.grad_norm.value();
  result.t = rank.run.t();
  return result;
}

void check_ranks_agree(const World &world, RankOfSteps &mine, bool skips) {
  for (const Result &result : world.gather(result_of(mine))) {
    CHECK(same_state(result.state, state_of(mine.scaler.get())));
    CHECK(result.skipped == (skips ? 1.0f : 0.0f));
    CHECK(result.t == mine.run.t());
  }
}

/// The tensors of `values` that this rank owns.
TensorValues shard(const World &world, const TensorValues &values) {
  TensorValues mine;
  for (size_t t = 0; t < values.size(); ++t) {
    if (rank_of_tensor(t, world.size()) == world.rank()) mine.push_back(values[t]);
  }
  return mine;
}

}  // namespace

TEST_CASE("mpi: a non-finite gradient on one rank makes all ranks skip") {
  const World world;
  for (const mp_scaler_policy_t policy :
       {MP_SCALER_POLICY_STATIC, MP_SCALER_POLICY_BACKOFF, MP_SCALER_POLICY_LOGNORMAL}) {
    for (const double value : {HUGE_VAL, std::nan("")}) {
      const mp_scaler_config_t config = mp_scaler_config_default(policy);
      RankOfSteps mine(small_spec(), &config);
      for (int injected = 0; injected < world.size(); ++injected) {
        if (injected == world.rank()) mine.inject(value);
        const OptimizerState before = mine.run.state();
        require_ok(mine.step(&world.comm(), mp_step_options_default()));
        CHECK(mine.run.state() == before);
        check_ranks_agree(world, mine, true);
        CHECK(state_of(mine.scaler.get()).skipped_nan == (std::isnan(value) ? injected + 1 : 0));
        mine.set_grads(1.0);
        require_ok(mine.step(&world.comm(), mp_step_options_default()));
        check_ranks_agree(world, mine, false);
      }
    }
  }
}

TEST_CASE("mpi: a state restored after a failed step has no overflow of that step") {
  const World world;
  mp_comm_t failing = world.comm();
  failing.all_reduce = [](const void *, void *, size_t, mp_dtype_t, mp_reduce_op_t, mp_stream_t,
                          void *) { return MPI_ERR_OTHER; };
  for (const mp_scaler_policy_t policy : {MP_SCALER_POLICY_BACKOFF, MP_SCALER_POLICY_LOGNORMAL}) {
    const mp_scaler_config_t config = mp_scaler_config_default(policy);
    RankOfSteps mine(small_spec(), &config);
    const mp_scaler_state_t saved = state_of(mine.scaler.get());
    if (world.rank() == 0) mine.inject(HUGE_VAL);
    expect_status(mine.step(&failing, mp_step_options_default()), MP_ERROR_COMM);
    CHECK(read_float(mp_scaler_get_found_inf_address(mine.scaler.get())) ==
          (world.rank() == 0 ? 1.0f : 0.0f));
    set_state(mine.scaler.get(), saved);
    CHECK(read_float(mp_scaler_get_found_inf_address(mine.scaler.get())) == 0.0f);
    mine.set_grads(1.0);
    require_ok(mine.step(&world.comm(), mp_step_options_default()));
    check_ranks_agree(world, mine, false);
  }
}

TEST_CASE("mpi: lognormal scalers stay equal over random steps") {
  const World world;
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL);
  config.growth_interval = 3;
  RankOfSteps mine(small_spec(), &config);
  // Each rank has other gradients; overflows are the same on all ranks.
  Random own(100 + static_cast<uint64_t>(world.rank())), shared(7);
  for (int step = 0; step < 60; ++step) {
    mine.set_grads(std::exp2(own.real(-20.0, 10.0)));
    const int overflowing = static_cast<int>(shared.integer(0, 3 * world.size()));
    if (overflowing == world.rank()) mine.inject(HUGE_VAL);
    require_ok(mine.step(&world.comm(), mp_step_options_default()));
    CAPTURE(step);
    check_ranks_agree(world, mine, overflowing < world.size());
  }
  CHECK(state_of(mine.scaler.get()).skipped > 0);
}

TEST_CASE("mpi: a sharded optimizer is bit-identical to a single one if squares are exact") {
  const World world;
  for (const OptimizerSpec &spec : all_kinds()) {
    for (const float max_grad_norm : {0.0f, 0.01f}) {
      mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL);
      config.growth_interval = 3;
      RankOfSteps whole(spec, &config);
      RankOfSteps mine(sharded(spec, world.size())[static_cast<size_t>(world.rank())], &config);
      mp_step_options_t options = mp_step_options_default();
      options.max_grad_norm = max_grad_norm;
      Random random(11);
      for (int step = 0; step < 6; ++step) {
        TensorValues values = integer_values(spec.grads, random, 40);
        if (step == 2) values[2][3] = HUGE_VAL;
        whole.run.grads().upload(values);
        mine.run.grads().upload(shard(world, values));
        options.flags = 0;
        require_ok(whole.step(nullptr, options));
        options.flags = MP_STEP_FLAG_SHARDED;
        require_ok(mine.step(&world.comm(), options));
        CAPTURE(spec.kind, max_grad_norm, step);
        check_ranks_agree(world, mine, step == 2);
        CHECK(same_state(state_of(mine.scaler.get()), state_of(whole.scaler.get())));
        if (step != 2) CHECK(same_bits(mine.grad_norm.value(), whole.grad_norm.value()));
        CHECK(mine.run.master().download() == shard(world, whole.run.master().download()));
      }
    }
  }
}

TEST_CASE("mpi: the clipped norm of a sharded optimizer matches a single one up to rounding") {
  const World world;
  // Every rank rounds its sum of squares to fp32, and so does every addition; the root halves the
  // relative error and adds its own rounding, on both sides.
  const double u = unit_roundoff(MP_FP32);
  const double error = (0.5 * (2 * world.size() - 1) + 2.0) * u * (1.0 + 64.0 * u);
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  const OptimizerSpec spec = small_spec();
  RankOfSteps whole(spec, &config);
  RankOfSteps mine(sharded(spec, world.size())[static_cast<size_t>(world.rank())], &config);
  mp_step_options_t options = mp_step_options_default();
  options.max_grad_norm = 1e-4f;
  Random random(13);
  for (int step = 0; step < 20; ++step) {
    const TensorValues values = real_values(spec.grads, random, 100.0);
    whole.run.grads().upload(values);
    mine.run.grads().upload(shard(world, values));
    options.flags = 0;
    require_ok(whole.step(nullptr, options));
    options.flags = MP_STEP_FLAG_SHARDED;
    require_ok(mine.step(&world.comm(), options));
    const double norm = whole.grad_norm.value();
    CHECK(norm > 1e-4);
    CHECK(std::abs(mine.grad_norm.value() - norm) <= error * norm);
    for (const Result &result : world.gather(result_of(mine))) {
      CHECK(same_bits(result.grad_norm, mine.grad_norm.value()));
    }
  }
}

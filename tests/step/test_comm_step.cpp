// mp_scale_step with a communicator: all ranks act on the findings of one, and the shards of a
// sharded optimizer together equal one optimizer with all tensors.
#include "rank_steps.h"

using namespace mptest;

namespace {

OptimizerSpec small_spec() {
  return spec_of(MP_OPT_SGD, sgd_hyper(0.5f, 0.9f));
}

void check_ranks_agree(RanksOfSteps &ranks, bool skips) {
  for (StepRun &rank : ranks) {
    CHECK(rank.skipped.value() == (skips ? 1.0f : 0.0f));
    CHECK(rank.run.t() == ranks.at(0).run.t());
    if (!rank.scaler) continue;
    CHECK(same_state(rank.scaler, ranks.at(0).scaler));
    CHECK(flag_of(rank.scaler) == 0.0f);
  }
}

}  // namespace

TEST_CASE("ranks: a non-finite gradient on one rank makes all skip", "[comm][step]") {
  const std::vector<OptimizerSpec> specs(3, small_spec());
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    for (const double value : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      const mp_scaler_config_t config = mp_scaler_config_default(policy);
      RanksOfSteps ranks(specs, config);
      for (int injected = 0; injected < ranks.count(); ++injected) {
        CAPTURE(policy, value, injected);
        ranks.at(injected).inject(value);
        const OptimizerState before = ranks.at(0).run.state();
        for (int again = 0; again < 2; ++again) {
          ranks.step();
          check_ranks_agree(ranks, true);
          for (StepRun &rank : ranks) CHECK(rank.run.state() == before);
        }
        const mp_scaler_state_t state = state_of(ranks.at(2).scaler.get());
        CHECK(state.consecutive_skips == 2);
        CHECK(state.skipped_nan == (std::isnan(value) ? 2 * (injected + 1) : 0));
        ranks.at(injected).set_grads(1.0);
        ranks.step();
        check_ranks_agree(ranks, false);
        CHECK(ranks.at(0).run.t() == injected + 1);
      }
    }
  }
}

TEST_CASE("ranks: without scalers, all ranks skip one step together", "[comm][step]") {
  RanksOfSteps ranks(std::vector<OptimizerSpec>(2, small_spec()));
  ranks.at(1).inject(std::nan(""));
  ranks.step();
  check_ranks_agree(ranks, true);
  CHECK(ranks.at(0).run.t() == 0);
  ranks.at(1).set_grads(1.0);
  ranks.step();
  check_ranks_agree(ranks, false);
  CHECK(ranks.at(0).run.t() == 1);
}

TEST_CASE("ranks: a flag raised by an epilogue on one rank makes all skip", "[comm][step]") {
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL);
  RanksOfSteps ranks(std::vector<OptimizerSpec>(2, small_spec()), config);
  for (const float flag : {1.0f, 2.0f, NAN}) {
    write_float(mp_scaler_get_found_inf_address(ranks.at(1).scaler.get()), flag);
    ranks.step();
    check_ranks_agree(ranks, true);
  }
  CHECK(state_of(ranks.at(0).scaler.get()).skipped == 3);
  CHECK(state_of(ranks.at(0).scaler.get()).skipped_nan == 0);
}

TEST_CASE("ranks: scalers stay equal over random steps", "[comm][step]") {
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    mp_scaler_config_t config = mp_scaler_config_default(policy);
    config.growth_interval = 3;
    RanksOfSteps ranks(std::vector<OptimizerSpec>(3, small_spec()), config);
    // One rank that has all gradients.
    StepRun single(small_spec(), config);
    Random random(7);
    for (int step = 0; step < 20; ++step) {
      const bool overflows = random.integer(0, 3) == 0;
      const int where = static_cast<int>(random.integer(0, 2));
      double largest = 0.0;
      for (StepRun &rank : ranks) {
        const double grad = std::exp2(random.real(-20.0, 10.0));
        const double rounded = round_to(MP_BF16, grad);  // representable in all three types
        rank.set_grads(rounded);
        largest = std::max(largest, round_to(MP_FP16, rounded));
      }
      single.set_grads(largest);
      if (overflows) {
        ranks.at(where).inject(HUGE_VAL);
        single.inject(HUGE_VAL);
      }
      ranks.step();
      single.step();
      CAPTURE(policy, step);
      check_ranks_agree(ranks, overflows);
      CHECK(same_state(ranks.at(1).scaler, single.scaler));
    }
  }
}

TEST_CASE("ranks: a flag that another optimizer left in the scaler counts on all ranks",
          "[comm][step]") {
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL);
  const std::vector<OptimizerSpec> specs(2, small_spec());
  for (const bool agreed_before : {true, false}) {
    RanksOfSteps ranks(specs, config);
    std::deque<OptimizerRun> others(specs.begin(), specs.end());
    for (size_t rank = 0; rank < others.size(); ++rank) {
      others[rank].master().fill(1.0);
      others[rank].grads().upload(constant_values(specs[rank].grads, rank == 0 ? 64.0 : 1.0));
    }
    on_all_ranks(2, [&](int rank, const mp_comm_t &comm) {
      mp_step_options_t options = mp_step_options_default();
      options.flags = MP_STEP_FLAG_KEEP_SCALER;
      options.comm = agreed_before ? &comm : nullptr;
      const mp_scaler_t scaler = ranks.at(rank).scaler.get();
      const mp_status_t status =
          mp_scale_step(others[static_cast<size_t>(rank)].get(), scaler, &options, kStream);
      return status != MP_SUCCESS ? status
                                  : step_with(comm, ranks.at(rank), mp_step_options_default());
    });
    check_ranks_agree(ranks, false);
    StepRun single(small_spec(), config);
    single.set_grads(64.0);
    single.step();
    CAPTURE(agreed_before);
    CHECK(same_state(ranks.at(1).scaler, single.scaler));
  }
}

TEST_CASE("ranks: four ranks with equal gradients equal one bit for bit", "[comm][step]") {
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL);
  config.growth_interval = 2;
  mp_step_options_t options = mp_step_options_default();
  options.max_grad_norm = 1e-4f;
  for (const OptimizerSpec &spec : all_kinds()) {
    RanksOfSteps ranks(std::vector<OptimizerSpec>(4, spec), config);
    StepRun single(spec, config);
    Random random(5);
    for (int step = 0; step < 5; ++step) {
      TensorValues values = real_values(spec.grads, random, 8.0);
      if (step == 2) values[4][1] = HUGE_VAL;
      single.run.grads().upload(values);
      for (StepRun &rank : ranks) rank.run.grads().upload(values);
      single.step(options);
      on_all_ranks(4, [&](int rank, const mp_comm_t &comm) {
        const mp_tensor_list_t grads = ranks.at(rank).run.grads().list();
        const mp_status_t status = mp_grads_all_reduce(grads, &comm, 0.25f, 1.0f, kStream);
        return status != MP_SUCCESS ? status : step_with(comm, ranks.at(rank), options);
      });
      CAPTURE(spec.kind, step);
      check_ranks_agree(ranks, step == 2);
      for (StepRun &rank : ranks) {
        CHECK(rank.run.state() == single.run.state());
        CHECK(same_state(rank.scaler, single.scaler));
        if (step != 2) CHECK(same_bits(rank.grad_norm.value(), single.grad_norm.value()));
      }
    }
  }
}

TEST_CASE("ranks: a step reduces one maximum, a sharded step also one sum", "[comm][step][short]") {
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  StepRun rank(small_spec(), config);
  rank.set_grads(1.0);
  RecordedComm recorded;
  const mp_comm_t comm = recorded.table();
  mp_step_options_t options = mp_step_options_default();
  require_ok(step_with(comm, rank, options));
  std::vector<std::string> wanted = {"group_begin", "all_reduce 3 of type 3, max", "group_end"};
  CHECK(recorded.calls == wanted);
  recorded.calls.clear();
  options.flags = MP_STEP_FLAG_SHARDED;
  require_ok(step_with(comm, rank, options));
  wanted.insert(wanted.begin() + 2, "all_reduce 3 of type 3, sum");
  CHECK(recorded.calls == wanted);
}

TEST_CASE("ranks: nothing is updated if a callback fails", "[comm][step][short]") {
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  for (const bool has_scaler : {true, false}) {
    StepRun rank(small_spec(), has_scaler ? std::optional(config) : std::nullopt);
    rank.set_grads(1.0);
    RecordedComm recorded;
    recorded.failing = "all_reduce";
    recorded.code = 9;
    const mp_comm_t comm = recorded.table();
    rank.inject(HUGE_VAL);
    const OptimizerState before = rank.run.state();
    const mp_status_t status = step_with(comm, rank, mp_step_options_default());
    CHECK(std::string(mp_last_error()) == "mp_scale_step: comm->all_reduce returned 9");
    expect_status(status, MP_ERROR_COMM);
    CHECK(rank.run.state() == before);
    CHECK(rank.skipped.value() == -1.0f);
    if (has_scaler) CHECK(state_of(rank.scaler.get()).steps == 0);
    // Without a scaler, the flag belongs to the library and is cleared.
    rank.set_grads(1.0);
    rank.step();
    CHECK(rank.run.t() == (has_scaler ? 0 : 1));
  }
}

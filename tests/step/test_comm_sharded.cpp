// A sharded optimizer, each tensor entirely on one rank: the ranks together equal one optimizer
// with all tensors.
#include "rank_steps.h"

using namespace mptest;

namespace {

constexpr int kRanks = 3;

/// An optimizer with all tensors, and its shards, the last of which is empty.
struct Sharding {
  StepRun whole;
  RanksOfSteps ranks;

  Sharding(const OptimizerSpec &spec, const mp_scaler_config_t &config)
      : whole(spec, config), ranks(sharded(spec, kRanks), config) {}

  StepRun &owner(size_t t) { return ranks.at(rank_of_tensor(t, kRanks)); }

  void upload(const TensorValues &values) {
    whole.run.grads().upload(values);
    for (int rank = 0; rank < kRanks; ++rank) {
      TensorValues mine;
      for (size_t t = 0; t < values.size(); ++t) {
        if (rank_of_tensor(t, kRanks) == rank) mine.push_back(values[t]);
      }
      ranks.at(rank).run.grads().upload(mine);
    }
  }
  void inject(size_t t, int64_t at, uint32_t bits) {
    whole.run.grads().inject(t, at, bits);
    owner(t).run.grads().inject(tensor_of_shard(t, kRanks), at, bits);
  }
  void step(float max_grad_norm) {
    mp_step_options_t options = mp_step_options_default();
    options.max_grad_norm = max_grad_norm;
    whole.step(options);
    options.flags = MP_STEP_FLAG_SHARDED;
    ranks.step(options);
  }
  /// Returns the weights of tensor t in the full optimizer and in its shard.
  std::pair<std::vector<double>, std::vector<double>> weights(size_t t) {
    return {whole.run.master().at(t).download(),
            owner(t).run.master().at(tensor_of_shard(t, kRanks)).download()};
  }
};

void check_scalers(Sharding &s) {
  for (StepRun &rank : s.ranks) {
    CHECK(same_state(rank.scaler, s.whole.scaler));
    CHECK(rank.skipped.value() == s.whole.skipped.value());
    CHECK(rank.run.t() == s.whole.run.t());
    CHECK(same_bits(rank.grad_norm.value(), s.ranks.at(0).grad_norm.value()));
  }
}

}  // namespace

TEST_CASE("sharded: equals one optimizer bit for bit if squares are exact", "[comm][step]") {
  for (const OptimizerSpec &spec : all_kinds()) {
    for (const float max_grad_norm : {0.0f, 0.01f}) {
      mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL);
      config.growth_interval = 3;
      Sharding s(spec, config);
      Random random(11);
      for (int step = 0; step < 8; ++step) {
        s.upload(integer_values(spec.grads, random, 40));
        if (step % 4 == 2) s.inject(2, 3, encode(MP_BF16, HUGE_VAL));
        s.step(max_grad_norm);
        CAPTURE(spec.kind, max_grad_norm, step);
        check_scalers(s);
        if (step % 4 != 2) {
          CHECK(same_bits(s.ranks.at(0).grad_norm.value(), s.whole.grad_norm.value()));
        }
        for (size_t t = 0; t < spec.grads.size(); ++t) {
          const auto [whole, shard] = s.weights(t);
          CHECK(whole == shard);
        }
      }
    }
  }
}

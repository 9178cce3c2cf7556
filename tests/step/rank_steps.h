// Optimizers and scalers of several ranks that take steps together, for tests of options.comm.
#pragma once

#include <cstring>
#include <deque>

#include "checked_optimizer.h"
#include "ranks.h"

namespace mptest {

/// Compares bytes, so that NaN equals itself.
inline bool same_state(const mp_scaler_state_t &one, const mp_scaler_state_t &other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

/// Optimizer, scaler and reported values of one rank.
struct RankOfSteps {
  OptimizerRun run;
  UniqueScaler scaler;  ///< NULL without a config
  DeviceFloat grad_norm{-1.0f}, skipped{-1.0f};

  RankOfSteps(const OptimizerSpec &spec, const mp_scaler_config_t *config) : run(spec) {
    if (config != nullptr) scaler = make_scaler(*config);
    run.master().upload(constant_values(run.master().specs(), 1.0));
    if (run.model() != nullptr) run.model()->upload(constant_values(run.model()->specs(), 1.0));
    set_grads(1.0);
  }

  void set_grads(double value) { run.grads().upload(constant_values(run.grads().specs(), value)); }
  /// Sets the first element of the first tensor that is not empty.
  void inject(double value) {
    size_t t = 0;
    while (run.grads().spec(t).numel == 0) ++t;
    run.grads().inject(t, 0, encode(run.grads().spec(t).dtype, value));
  }
  mp_status_t step(const mp_comm_t *comm, mp_step_options_t options) {
    options.comm = comm;
    options.grad_norm = grad_norm.data();
    options.found_inf = skipped.data();
    return mp_scale_step(run.get(), scaler.get(), &options, kStream);
  }
};

class RanksOfSteps {
 public:
  /// @param specs   one per rank
  /// @param config  NULL: no scalers
  RanksOfSteps(const std::vector<OptimizerSpec> &specs, const mp_scaler_config_t *config) {
    for (const OptimizerSpec &spec : specs) ranks_.emplace_back(spec, config);
  }

  int count() const { return static_cast<int>(ranks_.size()); }
  RankOfSteps &at(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  auto begin() { return ranks_.begin(); }
  auto end() { return ranks_.end(); }

  /// Takes one step on all ranks.
  void step(const mp_step_options_t &options) {
    on_all_ranks(count(),
                 [&](int rank, const mp_comm_t &comm) { return at(rank).step(&comm, options); });
  }

 private:
  std::deque<RankOfSteps> ranks_;
};

/// Distributes the tensors of `whole` round-robin; the last rank gets none.
inline std::vector<OptimizerSpec> sharded(const OptimizerSpec &whole, int count) {
  std::vector<OptimizerSpec> shards(static_cast<size_t>(count), whole);
  for (OptimizerSpec &shard : shards) shard.grads.clear(), shard.model.clear();
  for (size_t t = 0; t < whole.grads.size(); ++t) {
    OptimizerSpec &shard = shards[t % (shards.size() - 1)];
    shard.grads.push_back(whole.grads[t]);
    shard.model.push_back(whole.model[t]);
  }
  return shards;
}

/// Returns the index, in its shard, of tensor t of the whole list.
inline size_t tensor_of_shard(size_t t, int count) {
  return t / (static_cast<size_t>(count) - 1);
}
inline int rank_of_tensor(size_t t, int count) {
  return static_cast<int>(t % (static_cast<size_t>(count) - 1));
}

}  // namespace mptest

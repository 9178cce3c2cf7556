// Optimizers and scalers of several ranks that take steps together, for tests of options.comm.
#pragma once

#include <deque>

#include "checked_optimizer.h"
#include "ranks.h"

namespace mptest {

/// Takes a step with a communicator.
inline mp_status_t step_with(const mp_comm_t &comm, StepRun &rank, mp_step_options_t options) {
  options.comm = &comm;
  return rank.try_step(options);
}

/// The gradients are 1.
class RanksOfSteps {
 public:
  /// @param specs  one per rank
  explicit RanksOfSteps(const std::vector<OptimizerSpec> &specs,
                        const std::optional<mp_scaler_config_t> &config = std::nullopt) {
    for (const OptimizerSpec &spec : specs) ranks_.emplace_back(spec, config).set_grads(1.0);
  }

  int count() const { return static_cast<int>(ranks_.size()); }
  StepRun &at(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  auto begin() { return ranks_.begin(); }
  auto end() { return ranks_.end(); }

  /// Takes one step on all ranks.
  void step(const mp_step_options_t &options = step_options()) {
    on_all_ranks(count(), [&](int rank, const mp_comm_t &comm) {
      return step_with(comm, at(rank), options);
    });
  }

 private:
  std::deque<StepRun> ranks_;
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

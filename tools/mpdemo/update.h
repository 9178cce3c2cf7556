// Rest of a training step: SGD with momentum or Adam on fp32 master weights, and the loss scaler,
// in one call of mp_scale_step.  The call checks, unscales, clips, updates, rounds the 16-bit copy
// and adapts the loss scale on the device; the host never waits for the outcome.
#pragma once

#include <cstdint>
#include <optional>

#include "architectures.h"
#include "network.h"

namespace mpdemo {

class Update {
 public:
  /// @param loss_weight  factor of the loss; the weights should not depend on it.
  /// @param num_steps    of the complete training, for the learning rates.
  /// @param scaler       none: S is 1 without a scaler object.
  Update(mp_context_t context, const Network &network, const Recipe &recipe, float loss_weight,
         int64_t num_steps, const std::optional<mp_scaler_config_t> &scaler);

  /// Takes one step with the gradients in the network.
  /// @param steps  previous steps.
  void step(int64_t steps, const mp_comm_t &comm);

  /// NULL without a scaler, which mpcore treats as S = 1.
  mp_scaler_t scaler() const { return scaler_.get(); }

  /// Synchronizes; none without a scaler.
  std::optional<mp_scaler_state_t> scaler_state_sync() const;
  void add_memory(Memory &memory) const { memory.optimizer_state += moment_bytes_; }

 private:
  mp_param_group_t param_group(float lr, float weight_decay) const;

  Recipe recipe_;
  float loss_weight_;
  int64_t num_steps_;
  int64_t moment_bytes_ = 0;
  Scaler scaler_;
  Optimizer optimizer_;
};

}  // namespace mpdemo

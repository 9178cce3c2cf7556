// Rest of a training step: SGD with momentum or Adam on fp32 master weights, and the loss scaler,
// in one call of mp_scale_step.  The call checks, unscales, updates, rounds the 16-bit copy and
// adapts the loss scale on the device; the host never waits for the outcome.
#pragma once

#include <cstdint>
#include <optional>

#include "common.h"
#include "network.h"

namespace mpdemo {

class Update {
 public:
  /// @param kind         MP_OPT_SGD or MP_OPT_ADAM
  /// @param loss_weight  factor of the loss; the weights should not depend on it.
  /// @param scaler       none: S is 1 without a scaler object.
  Update(mp_context_t context, const Network &network, mp_optimizer_kind_t kind, float loss_weight,
         const std::optional<mp_scaler_config_t> &scaler);

  /// Takes one step with the gradients in the network.
  /// @param lr  for a loss_weight of 1
  void step(float lr, const mp_comm_t &comm);

  /// NULL without a scaler, which mpcore treats as S = 1.
  mp_scaler_t scaler() const { return scaler_.get(); }

  /// Synchronizes; none without a scaler.
  std::optional<mp_scaler_state_t> scaler_state_sync() const;
  void add_memory(Memory &memory) const;

 private:
  mp_param_group_t param_group(float lr) const;

  mp_optimizer_kind_t kind_;
  float loss_weight_;
  std::vector<Buffer> state_;
  TensorList m_, v_;
  Scaler scaler_;
  Optimizer optimizer_;
};

}  // namespace mpdemo

// The rest of a training step: SGD with momentum or Adam on fp32 master weights, and the loss scaler, by
// one call of mp_scale_step.  It checks, unscales, updates, rounds the 16-bit copy and adapts the
// loss scale on the device; the host does not learn whether a step was skipped, and never waits.
#pragma once

#include <cstdint>
#include <optional>

#include "common.h"
#include "network.h"

namespace mpdemo {

class Update {
 public:
  /// @param kind         MP_OPT_SGD or MP_OPT_ADAM
  /// @param loss_weight  of the loss; the weights should take the same path whatever it is.
  /// @param scaler       none: S is 1 and there is no scaler object.
  Update(mp_context_t context, const Network &network, mp_optimizer_kind_t kind, float loss_weight,
         const std::optional<mp_scaler_config_t> &scaler);

  /// One step with the gradients that are in the network.
  /// @param lr  for a loss_weight of 1
  void step(float lr, const mp_comm_t &comm);

  /// NULL without one, which mpcore takes as S = 1.
  mp_scaler_t scaler() const { return scaler_.get(); }

  /// Waits; none without a scaler.
  std::optional<mp_scaler_state_t> scaler_state_sync() const;
  void add_memory(Memory &memory) const;

 private:
  mp_param_group_t hyper(float lr) const;

  mp_optimizer_kind_t kind_;
  float loss_weight_;
  std::vector<Buffer> state_;
  TensorList m_, v_;
  Scaler scaler_;
  Optimizer optimizer_;
};

}  // namespace mpdemo

// Every setting runs the same network four times: FP32, and mixed precision with each scaler and
// with none.  They differ in the weight of the loss.
#include "settings.h"

#include <algorithm>
#include <vector>

namespace mpdemo {
namespace {

std::vector<RunPlan> four_runs(float loss_weight) {
  const auto scaler = [loss_weight](mp_scaler_policy_t policy) {
    mp_scaler_config_t config = mp_scaler_config_default(policy);
    // Gradients see only S * loss_weight, so the bound on S moves against the weight.  S starts
    // at its default all the same: where it goes from there is the policy's business.
    config.max_scale /= loss_weight;
    return config;
  };
  return {
      {"FP32", MP_FP32, std::nullopt},
      {"mixed, backoff", MP_FP16, scaler(MP_SCALER_BACKOFF)},
      {"mixed, lognormal", MP_FP16, scaler(MP_SCALER_LOGNORMAL)},
      {"mixed, S = 1", MP_FP16, scaler(MP_SCALER_STATIC)},
  };
}

}  // namespace

Setting standard_setting(double epochs) {
  return {"standard", "Ordinary training", epochs, 1.0f, four_runs(1.0f)};
}

Setting small_weight_setting(double epochs) {
  // dlogits is at most weight / kBatchRows = 2^-23, twice the smallest fp16 number.  Half an epoch
  // is enough to see what that does.
  constexpr float kWeight = 0x1p-16f;
  return {"small_weight", "Small task weight: loss / 65536, learning rate x 65536",
          std::min(0.5, epochs), kWeight, four_runs(kWeight)};
}

}  // namespace mpdemo

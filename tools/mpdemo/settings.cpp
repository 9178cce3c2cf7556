// Every setting runs the same network in FP32 and in mixed precision: in fp16 with each scaler and with
// none; in bf16, which has the exponents of fp32, with none; or with the scaler that the user names.
// Settings differ in the weight of the loss.
#include "settings.h"

#include <algorithm>
#include <cfloat>
#include <string>
#include <vector>

namespace mpdemo {
namespace {

std::vector<RunPlan> runs(float loss_weight, const MixedPrecision &mixed) {
  // Gradients see only S * loss_weight, so the bound on S moves against the weight.  S starts where it
  // does all the same: where it goes from there is the policy's business.
  const auto weighted = [loss_weight](mp_scaler_config_t config) {
    config.max_scale = std::min(config.max_scale / loss_weight, FLT_MAX);
    return config;
  };
  const auto scaler = [&](mp_scaler_policy_t policy) {
    return weighted(mp_scaler_config_default(policy));
  };
  const RunPlan fp32 = {"FP32", MP_FP32, std::nullopt, false};
  const std::string type = mixed.dtype == MP_BF16 ? "bf16, " : "mixed, ";
  if (mixed.scaler)
    return {fp32, {type + mixed.loss_scale, mixed.dtype, weighted(*mixed.scaler), true}};
  if (mixed.dtype == MP_BF16) return {fp32, {type + "no scaler", MP_BF16, std::nullopt, true}};
  return {
      fp32,
      {"mixed, backoff", MP_FP16, scaler(MP_SCALER_BACKOFF), true},
      {"mixed, lognormal", MP_FP16, scaler(MP_SCALER_LOGNORMAL), true},
      {"mixed, S = 1", MP_FP16, scaler(MP_SCALER_STATIC), false},
  };
}

}  // namespace

Setting standard_setting(double epochs, const MixedPrecision &mixed) {
  return {"standard", "Ordinary training", epochs, 1.0f, runs(1.0f, mixed)};
}

Setting small_weight_setting(double epochs, const MixedPrecision &mixed) {
  // dlogits is at most weight / kBatchRows = 2^-23, twice the smallest fp16 number.  Half an epoch
  // is enough to see what that does.
  constexpr float kWeight = 0x1p-16f;
  return {"small_weight", "Small task weight: loss / 65536, learning rate x 65536",
          std::min(0.5, epochs), kWeight, runs(kWeight, mixed)};
}

}  // namespace mpdemo

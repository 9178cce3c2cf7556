// Every setting runs the same network in FP32 and in mixed precision: in fp16 with each scaler and
// without one; in bf16, which has the exponents of fp32, without one; or with the user's scaler.
// Settings differ in the weight of the loss.
#include "settings.h"

#include <algorithm>
#include <cfloat>
#include <string>
#include <vector>

namespace mpdemo {
namespace {

std::vector<RunPlan> runs(float loss_weight, const MixedPrecision &mixed) {
  // Gradients depend on S * loss_weight, so the limit of S changes inversely with the weight.  The
  // initial S does not change: the policy adapts it.
  const auto weighted = [loss_weight](mp_scaler_config_t config) {
    config.max_scale = std::min(config.max_scale / loss_weight, FLT_MAX);
    return config;
  };
  const auto scaler = [&](mp_scaler_policy_t policy) {
    return weighted(mp_scaler_config_default(policy));
  };
  std::vector<RunPlan> all = {{"FP32", MP_FP32, std::nullopt, false}};
  for (const mp_dtype_t dtype : mixed.dtypes) {
    const std::string type = dtype == MP_BF16 ? "bf16, " : "mixed, ";
    if (mixed.scaler) {
      all.push_back({type + mixed.loss_scale, dtype, weighted(*mixed.scaler), true});
    } else if (dtype == MP_BF16) {
      all.push_back({type + "no scaler", dtype, std::nullopt, true});
    } else {
      all.push_back({type + "backoff", dtype, scaler(MP_SCALER_POLICY_BACKOFF), true});
      all.push_back({type + "lognormal", dtype, scaler(MP_SCALER_POLICY_LOGNORMAL), true});
      all.push_back({type + "S = 1", dtype, scaler(MP_SCALER_POLICY_STATIC), false});
    }
  }
  return all;
}

}  // namespace

Setting standard_setting(double epochs, const MixedPrecision &mixed) {
  return {"standard", "Ordinary training", epochs, 1.0f, runs(1.0f, mixed)};
}

Setting small_weight_setting(double epochs, const MixedPrecision &mixed,
                             mp_optimizer_kind_t optimizer) {
  // The largest dlogits is weight / 128 = 2^-23 with 128 images, twice the smallest fp16 number;
  // with 32 verses it is smaller than that number.
  constexpr float kWeight = 0x1p-16f;
  const std::string made_up =
      optimizer == MP_OPT_ADAM ? "epsilon / 65536" : "learning rate x 65536";
  return {"small_weight", "Small task weight: loss / 65536, " + made_up, epochs, kWeight,
          runs(kWeight, mixed)};
}

}  // namespace mpdemo

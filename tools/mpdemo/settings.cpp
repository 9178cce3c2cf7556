// Every setting runs the same network in FP32 and in mixed precision: in fp16 with each scaler and
// without one; in bf16, which has the exponents of fp32, without one; or with the user's scaler.
// Settings differ in the weight of the loss.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string>

#include "options.h"
#include "training.h"

namespace mpdemo {
namespace {

/// Epochs without --full that show the effect of a small task weight.
constexpr double kGlance = 0.5;

std::vector<RunPlan> make_runs(float loss_weight, const std::vector<mp_dtype_t> &dtypes,
                               const MixedPrecision &mixed) {
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
  for (const mp_dtype_t dtype : dtypes) {
    const bool is_wide = mp::has_fp32_range(dtype);
    const std::string type = is_wide ? mp_dtype_name(dtype) + std::string(", ") : "mixed, ";
    if (mixed.scaler) {
      all.push_back({type + mixed.loss_scale, dtype, weighted(*mixed.scaler), true});
    } else if (is_wide) {
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

std::vector<Setting> make_settings(const Architecture &architecture, const Options &options,
                                   int64_t batches) {
  const MixedPrecision &mixed = options.mixed;
  const auto setting = [&](const char *id, const std::string &title, double epochs,
                           float loss_weight) -> Setting {
    return {
        .id = id,
        .title = title,
        .length = epochs > 0 ? text("%g epoch%s", epochs, epochs == 1 ? "" : "s")
                             : std::to_string(architecture.num_steps) + " steps",
        .num_steps = epochs > 0 ? std::max(1LL, std::llround(epochs * static_cast<double>(batches)))
                                : architecture.num_steps,
        .loss_weight = loss_weight,
        .runs = make_runs(loss_weight,
                          mixed.dtypes.empty() ? architecture.mixed_types : mixed.dtypes, mixed)};
  };
  const double epochs = options.epochs.value_or(architecture.epochs);
  std::vector<Setting> settings = {setting("standard", "Ordinary training", epochs, 1.0f)};
  if (!architecture.has_small_weight) return settings;
  const Recipe &recipe = architecture.recipe;
  const char *const made_up = recipe.kind == MP_OPT_SGD  ? "learning rate x 65536"
                              : recipe.max_grad_norm > 0 ? "epsilon and clipping / 65536"
                                                         : "epsilon / 65536";
  // The largest dlogits is weight / 128 = 2^-23 with 128 images, twice the smallest fp16 number;
  // with 16 or more verses it is smaller than that number.
  settings.push_back(setting("small_weight",
                             std::string("Small task weight: loss / 65536, ") + made_up,
                             options.full ? epochs : std::min(epochs, kGlance), 0x1p-16f));
  return settings;
}

}  // namespace mpdemo

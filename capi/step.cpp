// Section 10 of mpcore.h: the fused step, as two passes over the lists of an optimizer.
#include <cmath>

#include "capi/check.h"
#include "capi/objects.h"
#include "kernels/kernels.h"
#include "mpcore.h"

namespace mp {

namespace {

mp_step_options_t read_options(const mp_step_options_t *user, const mp_scaler *scaler) {
  if (user == nullptr) return mp_step_options_default();
  const mp_step_options_t options = read_struct(user, "options");
  require_flags(options.flags, scaler != nullptr ? MP_STEP_KEEP_SCALER : 0, "flags");
  require_zero(options.reserved0, "reserved0");
  MP_REQUIRE(options.max_grad_norm >= 0.0f, MP_ERROR_INVALID_ARGUMENT,
             "max_grad_norm = ", options.max_grad_norm, " is negative or not a number");
  require_aligned(options.grad_norm, "grad_norm");
  require_aligned(options.found_inf, "found_inf");
  require_aligned(options.tensor_norms, "tensor_norms");
  // The step ends with clearing that flag, which therefore cannot hold its result.
  MP_REQUIRE(scaler == nullptr || options.found_inf != &scaler->device->found_inf,
             MP_ERROR_INVALID_ARGUMENT, "found_inf = ", options.found_inf,
             " is the scaler's own flag");
  return options;
}

/// Pass 1 writes what pass 2 reads.
struct Passes {
  StatisticsOutputs statistics;
  UpdateArgs update;
};

Passes plan(const mp_optimizer &optimizer, const mp_scaler *scaler,
            const mp_step_options_t &options) {
  Passes passes{};
  StatisticsOutputs &statistics = passes.statistics;
  UpdateArgs &update = passes.update;

  if (scaler != nullptr) {
    statistics.found_inf = &scaler->device->found_inf;
    update.scaler = scaler->device;
    update.grad_scale = &scaler->device->inv_scale;
    update.scaler_amax = statistics.amax = optimizer.amax;
    update.keep_scaler = (options.flags & MP_STEP_KEEP_SCALER) != 0;
  } else {
    update.clear = statistics.found_inf = optimizer.found_inf;
  }
  update.found_inf = statistics.found_inf;
  update.skipped = options.found_inf;
  update.tensor_norms = statistics.norm_per_tensor = optimizer.tensor_norms;

  if (options.max_grad_norm > 0.0f || options.grad_norm != nullptr ||
      options.tensor_norms != nullptr) {
    statistics.norm = optimizer.norm;
    statistics.clip = {.scaled_norm = optimizer.norm,
                       .inv_scale = update.grad_scale,
                       .max_norm = options.max_grad_norm,
                       .grad_scale = optimizer.grad_scale,
                       .grad_norm = options.grad_norm,
                       .tensor_norms = options.tensor_norms};
    update.grad_scale = optimizer.grad_scale;
  }
  return passes;
}

}  // namespace

}  // namespace mp

mp_status_t mp_scale_step(mp_optimizer_t optimizer, mp_scaler_t scaler,
                          const mp_step_options_t *options, mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp_optimizer &o = mp::require_pointer(optimizer, "optimizer");
    MP_REQUIRE(scaler == nullptr || scaler->context == o.context, MP_ERROR_INVALID_ARGUMENT,
               "optimizer and scaler belong to different contexts");
    mp::require_data(o);
    const mp::Passes passes = mp::plan(o, scaler, mp::read_options(options, scaler));

    const mp::Context &c = *o.context;
    c.target.statistics(c.device, o.args.grads, o.desc.grads->scratch, passes.statistics, stream);
    c.target.optimizer_step(c.device, o.args, passes.update, stream);
    if (scaler != nullptr) scaler->has_kept_amax = passes.update.keep_scaler;
  });
}

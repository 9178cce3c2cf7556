// Types of the opaque handles of tensor lists, scalers and optimizers, and their checks.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/context.h"
#include "kernels/step/step_args.h"

namespace mp {

/// Loss scale before and after a skipped step; `after` is set once the device has updated it.
struct ScaleChange {
  float before;
  std::optional<float> after;
};

/// Outcomes of the latest steps, written by the device for mp_scaler_query_step; any thread may
/// read them.
class OutcomeRing {
 public:
  explicit OutcomeRing(const ContextPtr &context)
      : memory_(context, kOutcomes * sizeof(StepOutcome)) {}

  StepOutcome *device() const { return memory_.device<StepOutcome>(); }
  /// Returns false if `step` is not in the ring.
  bool find(int64_t step, mp_step_outcome_t &outcome) const;
  /// Returns the change by a skipped step, or nothing if the device has overwritten its slot since.
  std::optional<ScaleChange> scale_change(int64_t step) const;
  /// True if `step` is greater than in all earlier calls, of any thread.  A step is thus logged
  /// once, however often it is queried.
  bool is_first_occurrence(int64_t step);
  /// Clears the ring; the next step is `steps` + 1.  Requires that no kernel is writing to it.
  void restart(int64_t steps);

 private:
  StepOutcome &slot(int64_t step) const {
    return memory_.host<StepOutcome>()[static_cast<uint64_t>(step) % kOutcomes];
  }

  MappedBuffer memory_;
  std::atomic<int64_t> forgotten_ = 0;  ///< last step that restart() has cleared
  std::atomic<int64_t> logged_ = 0;     ///< last step for which is_first_occurrence() was true
};

}  // namespace mp

// ---------------------------------------------------------------------------- handles

struct mp_tensor_list {
  mp::ContextPtr context;
  std::vector<void *> data;  ///< host copies of the device's tables, for checks
  std::vector<int64_t> numel;
  std::vector<mp_dtype_t> dtype;
  /// Two tensors that share memory, if any; such a list must not be written.
  std::optional<std::pair<size_t, size_t>> overlap;
  mp::DeviceBuffer memory;
  mp::TensorList device;
  mp::ReduceScratch scratch;
  mp::DeviceBuffer elements;  ///< NULL if the caller owns them
};

struct mp_scaler {
  mp::ContextPtr context;
  mp_scaler_config_t config;
  mp::DeviceBuffer memory;
  mp::ScalerDevice *device;
  const mp::ScalerRecord *device_history;   ///< config.history_length records
  std::vector<mp::ScalerRecord> history;    ///< host copy, for mp_scaler_get_history_sync
  std::optional<mp::OutcomeRing> outcomes;  ///< always set after make_scaler()
  /// True if there was a step with MP_STEP_FLAG_KEEP_SCALER, or an accumulation, since the last
  /// update.
  bool has_kept_amax;
  bool is_owned;  ///< an optimizer owns and destroys it
};

namespace mp {
/// Creates a scaler with all of its memory, from a valid config.
std::unique_ptr<mp_scaler> make_scaler(const ContextPtr &context, const mp_scaler_config_t &config);
}  // namespace mp

struct mp_optimizer {
  mp::ContextPtr context;
  mp_optimizer_desc_t desc;  ///< host arrays are invalid; lists outlive the optimizer
  /// Groups as last uploaded, without factors; source of the copy in mp_optimizer_set_group.
  std::vector<mp::ParamGroup> groups;
  mp::DeviceBuffer memory;
  mp::OptimizerArgs args;
  std::unique_ptr<mp_scaler> own_scaler;  ///< S = 1, for steps without a scaler
  // Device scratch of mp_scale_step, one value each.
  float *amax;
  float *grad_scale;
  // Device scratch of steps with several ranks.
  mp::RankMessage *message;
  double *sum_squares;
  double *tensor_norms;  ///< gradient norm per tensor; NULL if no group clips by it
  std::unique_ptr<mp_tensor_list> own_m, own_v;  ///< NULL if not needed or given by the caller
};

namespace mp {

/// True if the policy uses the largest gradient of every step.
inline bool has_statistics(mp_scaler_policy_t policy) {
  return policy == MP_SCALER_POLICY_LOGNORMAL || policy == MP_SCALER_POLICY_LOGMAX;
}

/// True if the next update requires an amax that has not been measured yet.
inline bool needs_amax(const mp_scaler &scaler) {
  return has_statistics(scaler.config.policy) && !scaler.has_kept_amax;
}

/// Returns a list of fp32 zeros that owns its elements.
std::unique_ptr<mp_tensor_list> make_zeros(const ContextPtr &context,
                                           const std::vector<int64_t> &numel);

/// Fails if a tensor with elements has NULL data.
void require_data(const mp_tensor_list &list, const char *name);

/// Fails if two tensors of a list overlap; NULL data is allowed.
void require_disjoint(const mp_tensor_list &list, const char *name);
/// Makes both checks, for a list that is written.
inline void require_writable(const mp_tensor_list &list, const char *name) {
  require_data(list, name);
  require_disjoint(list, name);
}

/// Fails unless both lists have the same context and sizes.
void require_parallel(const mp_tensor_list &list, const char *name, const mp_tensor_list &other,
                      const char *other_name);

/// Fails if the update cannot access a tensor; tensors may have moved since mp_optimizer_create.
void require_data(const mp_optimizer &optimizer);

// ---------------------------------------------------------------------------- checks of scalers

/// Fails unless `value` is a valid loss scale.
void require_scale(float value, const char *name);

/// Checks the parameters of torch's growth rule; `prefix` precedes their names in messages.
void check_growth(const mp_scaler_config_t &config, const char *prefix);
/// Fails unless `tracker` is in [first, interval): after `interval` clean steps the scale grows and
/// the count restarts at 0.
/// @param first  0, or -1 with MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED
void require_growth_tracker(int32_t tracker, const char *prefix, int32_t first, int32_t interval);

void check_config(const mp_scaler_config_t &config);
/// Fails unless a scaler with this config can be in `state`.
void check_state(const mp_scaler_state_t &state, const mp_scaler_config_t &config);

// ---------------------------------------------------------------------------- checks of optimizers

/// Returns the checked descriptor; the next two functions read its host arrays.
mp_optimizer_desc_t read_desc(const mp_optimizer_desc_t *user, const ContextPtr &context);
std::vector<mp_param_group_t> read_groups(const mp_optimizer_desc_t &desc);
std::vector<uint32_t> read_tensor_group(const mp_optimizer_desc_t &desc);

/// Checks a parameter group of `desc`; `name` is its prefix in messages.
void check_group(const mp_param_group_t &group, std::string_view name,
                 const mp_optimizer_desc_t &desc);

/// Returns whether a group with these hyperparameters writes a first moment.
bool needs_m(const mp_param_group_t &group, const mp_optimizer_desc_t &desc);

/// Allocates required moments that the caller has not provided.
void make_moments(mp_optimizer &optimizer);

/// Checks of the types of tensors: masters, moments and extra gradients; model copies.
void require_fp32(const mp_tensor_list &list, const char *name);
void require_16bit(const mp_tensor_list &list, const char *name);

}  // namespace mp

// What the opaque handles of lists, scalers and optimizers are.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "capi/context.h"
#include "kernels/step/args.h"
#include "mpcore.h"

namespace mp {

/// What a skipped step made of S, as far as the device has come.
struct ScaleChange {
  float before;
  std::optional<float> after;
};

/// Outcomes of the latest steps, written by the device for mp_step_query; any thread may read them.
class OutcomeRing {
 public:
  explicit OutcomeRing(const ContextPtr &context)
      : memory_(context, kOutcomes * sizeof(StepOutcome)) {}

  StepOutcome *device() const { return memory_.device<StepOutcome>(); }
  /// False where `step` is not remembered.
  bool find(int64_t step, mp_step_outcome_t &outcome) const;
  /// Of a step that was found to be skipped; nothing if the device has come so far meanwhile that it
  /// is forgotten.
  std::optional<ScaleChange> scale_change(int64_t step) const;
  /// Whether `step` is behind all steps that this was asked of before.  What is logged of a step is
  /// logged once, however often and from however many threads the host asks for it.
  bool is_first_occurrence(int64_t step);
  /// Forgets everything; the next step is `steps` + 1.  Only while no kernel can be writing.
  void restart(int64_t steps);

 private:
  StepOutcome &slot(int64_t step) const {
    return memory_.host<StepOutcome>()[static_cast<uint64_t>(step) % kOutcomes];
  }

  MappedBuffer memory_;
  std::atomic<int64_t> forgotten_ = 0;  ///< the last step of which nothing is known
  std::atomic<int64_t> told_ = 0;       ///< the last step for which is_first_occurrence() was true
};

}  // namespace mp

// ---------------------------------------------------------------------------- the handles

struct mp_tensor_list {
  mp::ContextPtr context;
  std::vector<void *> data;  ///< host copies of what `device` points to, to check calls against
  std::vector<int64_t> numel;
  std::vector<mp_dtype_t> dtype;
  /// Two tensors that share memory; such a list is read, and not written.
  std::optional<std::pair<size_t, size_t>> overlap;
  mp::DeviceBuffer memory;
  mp::TensorList device;
  mp::ReduceScratch scratch;
  mp::DeviceBuffer elements;  ///< none: the caller owns them
};

struct mp_scaler {
  mp::ContextPtr context;
  mp_scaler_config_t config;
  mp::DeviceBuffer memory;
  mp::ScalerDevice *device;
  const mp::ScalerRecord *device_history;   ///< config.history of them
  std::vector<mp::ScalerRecord> history;    ///< their copy, for mp_scaler_get_history_sync
  std::optional<mp::OutcomeRing> outcomes;  ///< always there once the scaler has been created
  /// A step with MP_STEP_KEEP_SCALER, or an accumulation, has come since the last update.
  bool has_kept_amax;
  bool is_owned;  ///< true: an optimizer owns and destroys it
};

namespace mp {
/// Allocates all that the scaler will ever need; the config has been checked.
std::unique_ptr<mp_scaler> make_scaler(const ContextPtr &context, const mp_scaler_config_t &config);
}  // namespace mp

struct mp_optimizer {
  mp::ContextPtr context;
  mp_optimizer_desc_t desc;  ///< its host arrays are gone, its lists live longer than this
  /// What was uploaded last, without factors; mp_optimizer_set_hyper uploads from here.
  std::vector<mp::ParamGroup> groups;
  mp::DeviceBuffer memory;
  mp::OptimizerArgs args;
  std::unique_ptr<mp_scaler> own_scaler;  ///< S = 1: the scaler of steps without another one
  // Device scratch of mp_scale_step, 1 number each.
  float *amax;
  float *grad_scale;
  // Of a step with several ranks.
  mp::RankMessage *message;
  double *sum_squares;
  double *tensor_norms;  ///< 1 per tensor: of the gradients; NULL: no group clips by them
  std::unique_ptr<mp_tensor_list> own_m, own_v;  ///< none: of the caller, or none needed
};

namespace mp {

/// Whether the policy learns from the largest gradient of every step.
inline bool has_statistics(mp_scaler_policy_t policy) {
  return policy == MP_SCALER_LOGNORMAL || policy == MP_SCALER_LOGMAX;
}

/// Whether its next update has nothing to learn from yet.
inline bool needs_amax(const mp_scaler &scaler) {
  return has_statistics(scaler.config.policy) && !scaler.has_kept_amax;
}

/// A list of fp32 zeros that owns them.
std::unique_ptr<mp_tensor_list> make_zeros(const ContextPtr &context,
                                           const std::vector<int64_t> &numel);

/// Fails where a kernel would read through NULL.
void require_data(const mp_tensor_list &list, const char *name);

/// Fails if two tensors of a list that is written overlap; NULL among its data is not refused.
void require_disjoint(const mp_tensor_list &list, const char *name);
/// Both of a list that is written.
inline void require_writable(const mp_tensor_list &list, const char *name) {
  require_data(list, name);
  require_disjoint(list, name);
}

/// Fails unless both lists have the same context and sizes.
void require_parallel(const mp_tensor_list &list, const char *name, const mp_tensor_list &other,
                      const char *other_name);

/// Fails where the update could not read or write its tensors; they may have moved since
/// mp_optimizer_create.
void require_data(const mp_optimizer &optimizer);

}  // namespace mp

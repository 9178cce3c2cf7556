/* mpcore/scaler.h: loss scaling: policies, state, checkpoints. */
#ifndef MPCORE_SCALER_H
#define MPCORE_SCALER_H

#include "core.h"

MP_BEGIN_C

/** @defgroup scaler 13. Loss scaler
 *  @{ */

/** Policy that adapts the loss scale S to the gradients.  A step is clean if its outcome is
 *  MP_STEP_OUTCOME_TAKEN; other steps are skipped.  docs/loss-scaler.md compares the policies. */
typedef enum mp_scaler_policy {
  /** Constant S.  bf16 training uses this policy with S = 1. */
  MP_SCALER_POLICY_STATIC = 1,

  /** Multiplicative backoff and growth.  An overflow sets S *= backoff_factor.  growth_interval
   *  clean steps in a row set S *= growth_factor, unless the product is not finite.
   *
   *  If hysteresis > 1, hysteresis - 1 overflows leave S unchanged; further ones back off until the
   *  budget is refilled: when S grows (Megatron-LM) or, with MP_SCALER_FLAG_REFILL_EACH_STEP, by
   *  every clean step (Apex, update_scale_hysteresis).
   *  @source torch.amp.GradScaler. */
  MP_SCALER_POLICY_BACKOFF = 2,

  /** Statistical model of the gradients.  log2 of the largest unscaled gradient is modeled as
   *  normal, with running mean mu (decay beta1) and deviation sigma (decay beta2, at least
   *  sigma_floor):
   *
   *      S = 2^floor(e - h),  e = floor(log2_max - mu - overflow_std_dev * sigma)
   *
   *  The probability of an overflow is therefore small and fixed.  h is a headroom in bits,
   *  initially 0:
   *
   *  - An overflow does not change mu and sigma, backs off once, and raises h.
   *  - Every growth_interval clean steps, h decreases by one bit.
   *  - If overflows precede the first statistics, h begins with the value that leaves S unchanged.
   *
   *  Without h the policy would livelock if an activation gradient, which the statistics do not
   *  include, overflows before the weight gradients do.  A step whose gradients are all zero
   *  changes nothing.
   *  @source OpenSeq2Seq LogMaxScaler, with its defects fixed (there an overflow feeds
   *  2^log_max into a mean of log2 values and pins S at its minimum for ~12,000 steps). */
  MP_SCALER_POLICY_LOGNORMAL = 3,

  /** OpenSeq2Seq's LogMaxScaler with its defects; see mpcore/compat.h. */
  MP_SCALER_POLICY_LOGMAX = 4
} mp_scaler_policy_t;

/** Bits of mp_scaler_config_t.flags. */
typedef enum mp_scaler_flags {
  MP_SCALER_FLAG_REFILL_EACH_STEP = 1 << 0, /**< backoff: clean steps refill hysteresis */
  /** Backoff: the first clean step, and the first one after each overflow, does not count towards
   *  growth_interval.
   *  @source DeepSpeed FP16_Optimizer. */
  MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED = 1 << 1
} mp_scaler_flags_t;

/** Parameters of a policy.  "backoff", "lognormal" and "logmax" name the policies that read a
 *  field.  Factors and decays are double, so that 0.99 is equal to Python's 0.99. */
typedef struct mp_scaler_config {
  uint32_t struct_size;
  mp_scaler_policy_t policy;
  uint32_t flags;   /**< bitwise or of mp_scaler_flags_t */
  float init_scale; /**< in [min_scale, max_scale], with a finite reciprocal */
  /** Limits of S, > 0; may be below 1.  For backoff, 0 disables a limit.  Without min_scale, S may
   *  become 0.  If 1/S is infinite, mp_scale_step updates nothing (MP_STEP_OUTCOME_NO_SCALE) and
   *  the status becomes MP_SCALER_STATUS_DIVERGED. */
  float min_scale, max_scale;
  double growth_factor;    /**< backoff; > 1 */
  double backoff_factor;   /**< backoff, lognormal; in (0, 1) */
  double beta1, beta2;     /**< lognormal, logmax; in [0, 1) */
  float log2_max;          /**< lognormal: log2 of the largest finite gradient; logmax: compat.h */
  float overflow_std_dev;  /**< lognormal, logmax; 3.09 is the normal quantile of 0.999 */
  float sigma_floor;       /**< lognormal; in bits */
  int32_t growth_interval; /**< >= 1; clean steps per growth of S or per bit of h */
  int32_t hysteresis;      /**< backoff; overflows per backoff, >= 1 */
  /** Number of consecutive skipped steps after which the status is MP_SCALER_STATUS_DIVERGED and S
   *  is frozen until a step is clean; 0 = never.  No S prevents a NaN in the forward pass, and
   *  lowering S further would end at min_scale or 0. */
  int32_t max_consecutive_skips;
  int32_t history_length; /**< updates kept for mp_scaler_get_history_sync; at most 2^24 */
  uint32_t reserved0;     /**< must be 0 */
} mp_scaler_config_t;

/** Initializes the defaults of a policy:
 *
 *      init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000
 *      growth_factor 2, backoff_factor 0.5           hysteresis 1
 *      beta1 0.99, beta2 0.999                       max_consecutive_skips 100
 *      log2_max 15.9993 = log2(65504)                history_length 0
 *      overflow_std_dev 3.0902                       sigma_floor 0.5
 *
 *  65536 is the initial scale of torch.amp.GradScaler.  24 overflows reduce S from 2^24 to 1. */
MP_API mp_status_t mp_scaler_config_init(mp_scaler_config_t *config, size_t struct_size,
                                         mp_scaler_policy_t policy);
static inline mp_scaler_config_t mp_scaler_config_default(mp_scaler_policy_t policy) {
  mp_scaler_config_t config;
  mp_scaler_config_init(&config, sizeof config, policy);
  return config;
}

/** Health of a scaler. */
typedef enum mp_scaler_status {
  MP_SCALER_STATUS_OK = 0,
  MP_SCALER_STATUS_DIVERGED = 1 /**< max_consecutive_skips skips in a row, or 1/S is not finite */
} mp_scaler_status_t;

/** State of a scaler, as saved in checkpoints.  Plain data that can be written to a file unchanged,
 *  to be read on machines of the same byte order.  States of mpcore 0.1 are rejected: they are
 *  smaller, and policies have other values. */
typedef struct mp_scaler_state {
  uint32_t struct_size;
  mp_scaler_policy_t policy;
  float scale;
  int32_t growth_tracker;  /**< clean steps counted towards growth_interval; -1: the next one is not
                                counted (MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED) */
  int32_t hysteresis_left; /**< overflows until S backs off; 0: each one backs off */
  float log2_mean;         /**< lognormal, logmax: decay beta1, not bias-corrected */
  float log2_mean_slow;    /**< lognormal, logmax: decay beta2 */
  float log2_square_slow;  /**< lognormal, logmax: decay beta2 */
  float headroom;          /**< lognormal: h, bits */
  mp_scaler_status_t status;
  double beta1_power; /**< lognormal, logmax: beta1^steps, for bias correction */
  double beta2_power;
  int64_t steps;             /**< updates so far */
  int64_t skipped;           /**< skipped steps: overflows + spikes + out_of_range + no_scale */
  int64_t skipped_nan;       /**< overflows with a NaN gradient (amax was NaN) */
  int64_t consecutive_skips; /**< skips since the last clean step */
  /** Skips per outcome: MP_STEP_OUTCOME_OVERFLOW, MP_STEP_OUTCOME_OUT_OF_RANGE,
   *  MP_STEP_OUTCOME_NO_SCALE, MP_STEP_OUTCOME_SPIKE (0 in this version). */
  int64_t overflows, out_of_range, no_scale, spikes;
} mp_scaler_state_t;

/** Initializes the state of a new scaler. */
MP_API mp_status_t mp_scaler_state_init(mp_scaler_state_t *state, size_t struct_size,
                                        const mp_scaler_config_t *config);
static inline mp_scaler_state_t mp_scaler_state_default(const mp_scaler_config_t *config) {
  mp_scaler_state_t state;
  mp_scaler_state_init(&state, sizeof state, config);
  return state;
}

/** Creates a scaler and all memory that it needs.  A program may have several, one per loss;
 *  several optimizers may share one, see MP_STEP_FLAG_KEEP_SCALER. */
MP_API mp_status_t mp_scaler_create(mp_scaler_t *scaler, mp_context_t context,
                                    const mp_scaler_config_t *config);
/** Destroys a scaler.  Optimizers keep no reference to it.  Does nothing for the scaler of
 *  mp_optimizer_get_scaler. */
MP_API void mp_scaler_destroy(mp_scaler_t scaler);

/** Returns the device address of S, constant for the life of the scaler; NULL if scaler is NULL. */
MP_API const float *mp_scaler_get_scale_address(mp_scaler_t scaler);
/** Returns the device address of 1/S, likewise. */
MP_API const float *mp_scaler_get_inv_scale_address(mp_scaler_t scaler);
/** Returns the device address of the scaler's sticky overflow flag, a float, likewise.
 *  mp_scaler_update clears the flag. */
MP_API float *mp_scaler_get_found_inf_address(mp_scaler_t scaler);

/** Computes out[i] = loss[i] * S, before the backward pass.
 *  @param loss,out  device, count elements of type dtype; out may be loss.
 *  @param count     >= 0; 0 does nothing. */
MP_API mp_status_t mp_scale_loss(mp_scaler_t scaler, const void *loss, void *out, mp_dtype_t dtype,
                                 int64_t count, mp_stream_t stream);

/** Applies the policy once, from mp_scaler_get_found_inf_address and *amax, then clears the flag.
 *  mp_scale_step includes this.
 *  @param amax  device, 1 float: largest |gradient| as measured, still multiplied by S and before
 *               clipping.  Infinity or NaN counts as an overflow even if the flag is 0.  Combined
 *               with the amax of steps with MP_STEP_FLAG_KEEP_SCALER and of mp_grads_accumulate
 *               since the last update.  Required by lognormal and logmax, unless such calls
 *               provided one.  Otherwise optional: it distinguishes NaN from infinity. */
MP_API mp_status_t mp_scaler_update(mp_scaler_t scaler, const float *amax, mp_stream_t stream);

/** Copies the state to the host; waits for `stream`.
 *  @param state  host, out; initialize it with MP_INIT_STRUCT. */
MP_API mp_status_t mp_scaler_get_state_sync(mp_scaler_t scaler, mp_scaler_state_t *state,
                                            mp_stream_t stream);
/** Restores a state from the host; waits for `stream`.  Repeating the steps after it gives
 *  bitwise identical scales.  Empties the history, clears the flag and discards every amax measured
 *  since the last update, because these belong to abandoned steps.
 *
 *  States that a scaler with this configuration cannot reach are rejected:
 *
 *  - another policy
 *  - a scale outside [min_scale, max_scale], including NaN (logmax)
 *  - growth_tracker >= growth_interval or hysteresis_left > hysteresis.  After lowering those
 *    limits, set growth_tracker to 0 and hysteresis_left to hysteresis.
 *  - a negative headroom; statistics that are not finite or, for lognormal, cannot be means of
 *    log2 of floats
 *  - inconsistent counts: skipped > steps, skipped_nan > overflows, consecutive_skips > skipped, or
 *    skipped not equal to the sum of the outcomes
 *  - counts above 2^52
 *
 *  @retval MP_ERROR_INVALID_ARGUMENT a state in this list */
MP_API mp_status_t mp_scaler_set_state_sync(mp_scaler_t scaler, const mp_scaler_state_t *state,
                                            mp_stream_t stream);

/** Returns the last updates, oldest first, e.g. for a plot; waits for `stream`.
 *  @param capacity  elements of the arrays, >= 0; of more updates, the newest are returned.
 *  @param scales    host, optional: S during each step.
 *  @param skipped   host, optional: 0 = taken, 1 = overflow, 2 = overflow with amax = NaN,
 *                   MP_STEP_OUTCOME_OUT_OF_RANGE or MP_STEP_OUTCOME_NO_SCALE.  0 to 2 differ from
 *                   mp_step_outcome_t.
 *  @param count     host: elements written, at most config.history_length. */
MP_API mp_status_t mp_scaler_get_history_sync(mp_scaler_t scaler, int64_t capacity, float *scales,
                                              int32_t *skipped, int64_t *count, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_SCALER_H */

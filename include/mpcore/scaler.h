/* mpcore/scaler.h: the loss scale. */
#ifndef MPCORE_SCALER_H
#define MPCORE_SCALER_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup scaler 7. Loss scaler
 *  @{ */

/** How the loss scale S follows the gradients. */
typedef enum mp_scaler_policy {
  /** S never changes.  bf16 training uses this with S = 1. */
  MP_SCALER_STATIC = 0,

  /** Overflow: S *= backoff_factor.  growth_interval clean steps in a row:
   *  S *= growth_factor, unless that is not a finite number.  Source: torch.amp.GradScaler.
   *  hysteresis h > 1 forgives h - 1 overflows; further ones back off, until the budget is
   *  refilled: when S grows (Megatron-LM) or, with MP_SCALER_REFILL_EACH_STEP, by every
   *  clean step (apex update_scale_hysteresis). */
  MP_SCALER_BACKOFF = 1,

  /** Models log2 of the largest unscaled gradient as normal, with running mean mu (decay
   *  beta1) and deviation sigma (decay beta2, at least sigma_floor), and sets
   *
   *      S = 2^floor(log2_max - mu - overflow_std_dev * sigma)
   *  so that overflow has a fixed small probability.  An overflowing step leaves mu and
   *  sigma alone, backs off once, and raises a head-room h (bits) subtracted in the exponent
   *  above; every growth_interval clean steps h shrinks by one bit.  Without h the policy
   *  livelocks when an activation gradient, which no statistic sees, overflows first.  After
   *  overflows before the first statistics, these begin with an h that leaves S as it is.
   *  A step whose gradients are all zero changes nothing.
   *  @source OpenSeq2Seq LogMaxScaler, with its defects repaired (there an overflow feeds
   *  2^log_max into a mean of log2 values and pins S at its minimum for ~12,000 steps). */
  MP_SCALER_LOGNORMAL = 2,

  /** OpenSeq2Seq's LogMaxScaler as it was shipped; see mpcore/compat.h. */
  MP_SCALER_LOGMAX = 3
} mp_scaler_policy_t;

/** Bits of mp_scaler_config.flags. */
typedef enum mp_scaler_flags {
  MP_SCALER_REFILL_EACH_STEP = 1 << 0, /**< backoff; see there */
  /** Backoff: the first clean step, and the first after each overflow, does not count towards
   *  growth_interval.  Source: DeepSpeed FP16_Optimizer. */
  MP_SCALER_FIRST_STEP_UNCOUNTED = 1 << 1
} mp_scaler_flags_t;

/** Decimal fractions are double, so that 0.99 is the 0.99 of Python. */
typedef struct mp_scaler_config {
  uint32_t struct_size;
  mp_scaler_policy_t policy;
  uint32_t flags; /**< mp_scaler_flags_t, or-ed */
  float init_scale;
  /** S is clamped to these; both > 0, and may be below 1.  Backoff also takes 0 = no such limit.
   *  Without min_scale S may sink to 0; if 1/S is infinite, mp_scale_step updates nothing
   *  (MP_STEP_NO_SCALE) and the status is MP_SCALER_DIVERGED. */
  float min_scale, max_scale;
  double growth_factor;    /**< backoff; > 1 */
  double backoff_factor;   /**< backoff, lognormal; in (0, 1) */
  double beta1, beta2;     /**< lognormal, logmax; in [0, 1) */
  float log2_max;          /**< lognormal: log2 of the largest finite gradient; logmax: see there */
  float overflow_std_dev;  /**< lognormal, logmax; 3.09 = normal quantile of 0.999 */
  float sigma_floor;       /**< lognormal; bits */
  int32_t growth_interval; /**< >= 1; clean steps per growth, or per bit of h given back */
  int32_t hysteresis;      /**< backoff; overflows per backoff, >= 1 */
  /** After so many skipped steps in a row the state says MP_SCALER_DIVERGED and S stays, until a
   *  step is clean.  No S helps against a NaN of the forward pass, and a scaler that goes on
   *  lowering S ends at its minimum, or at 0.  0 = never. */
  int32_t diverged_after;
  int32_t history;    /**< updates that mp_scaler_get_history_sync can look back; at most 2^24 */
  uint32_t reserved0; /**< must be 0 */
} mp_scaler_config_t;

/** 65536 is where torch.amp.GradScaler begins; 24 overflows in a row take S from 2^24 to 1.
 *
 *      init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
 *      growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
 *      beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
 *      overflow_std_dev 3.0902      sigma_floor 0.5 */
MP_API mp_status_t mp_scaler_config_init(mp_scaler_config_t *config, size_t struct_size,
                                         mp_scaler_policy_t policy);
static inline mp_scaler_config_t mp_scaler_config_default(mp_scaler_policy_t policy) {
  mp_scaler_config_t config;
  mp_scaler_config_init(&config, sizeof config, policy);
  return config;
}

/** Whether a scaler still gets anywhere. */
typedef enum mp_scaler_status {
  MP_SCALER_OK = 0,
  MP_SCALER_DIVERGED = 1 /**< see mp_scaler_config.diverged_after; or S has no finite inverse */
} mp_scaler_status_t;

/** Everything a checkpoint needs; plain data, can be written to disk as it is (same byte
 *  order assumed). */
typedef struct mp_scaler_state {
  uint32_t struct_size;
  mp_scaler_policy_t policy;
  float scale;
  int32_t growth_tracker;  /**< clean steps that count towards growth_interval; -1: the next one
                                does not (MP_SCALER_FIRST_STEP_UNCOUNTED) */
  int32_t hysteresis_left; /**< overflows still forgiven */
  float log2_mean;         /**< lognormal, logmax: decay beta1, not bias-corrected */
  float log2_mean_slow;    /**< lognormal, logmax: decay beta2 */
  float log2_square_slow;  /**< lognormal, logmax: decay beta2 */
  float headroom;          /**< lognormal: h, bits */
  mp_scaler_status_t status;
  double beta1_power; /**< lognormal, logmax: beta1^steps, for bias correction */
  double beta2_power;
  int64_t steps;          /**< updates seen */
  int64_t skipped;        /**< steps that were not taken: overflows + out_of_range + no_scale */
  int64_t skipped_nan;    /**< overflows with a NaN among the gradients: amax was NaN */
  int64_t skipped_in_row; /**< since the last clean step */
  /** Skips by outcome: MP_STEP_OVERFLOW, MP_STEP_RANGE, MP_STEP_NO_SCALE. */
  int64_t overflows, out_of_range, no_scale;
} mp_scaler_state_t;

/** The state of a new scaler. */
MP_API mp_status_t mp_scaler_state_init(mp_scaler_state_t *state, size_t struct_size,
                                        const mp_scaler_config_t *config);
static inline mp_scaler_state_t mp_scaler_state_default(const mp_scaler_config_t *config) {
  mp_scaler_state_t state;
  mp_scaler_state_init(&state, sizeof state, config);
  return state;
}

/** The scaler allocates nothing after this.  A program may have several, one per loss; several
 *  optimizers may share one, see MP_STEP_KEEP_SCALER. */
MP_API mp_status_t mp_scaler_create(mp_scaler_t *scaler, mp_context_t context,
                                    const mp_scaler_config_t *config);
/** Optimizers do not keep it.  No effect on the scaler of mp_optimizer_get_scaler. */
MP_API void mp_scaler_destroy(mp_scaler_t scaler);

/** Device address of S, constant for the life of the scaler. */
MP_API const float *mp_scaler_scale(mp_scaler_t scaler);
/** Device address of 1/S, constant for the life of the scaler. */
MP_API const float *mp_scaler_inv_scale(mp_scaler_t scaler);
/** Device address of the scaler's own sticky overflow flag, which mp_scaler_update clears; constant
 *  for the life of the scaler. */
MP_API float *mp_scaler_found_inf(mp_scaler_t scaler);

/** out[i] = loss[i] * S, before the backward pass.  out == loss is allowed. */
MP_API mp_status_t mp_scale_loss(mp_scaler_t scaler, const void *loss, void *out, mp_dtype_t dtype,
                                 int64_t count, mp_stream_t stream);

/** Apply the policy once, from mp_scaler_found_inf and *amax; then clear the flag.
 *  mp_scale_step does this itself.
 *  @param amax  device, 1 float: largest gradient as measured, still multiplied by S and
 *               before any clipping; infinity or NaN counts as an overflow even where the
 *               flag is 0.  Taken together with what steps with MP_STEP_KEEP_SCALER and
 *               mp_grads_accumulate have measured.  Lognormal and logmax learn from it, and need it
 *               unless there were such calls.  Else optional: it tells NaN from infinity. */
MP_API mp_status_t mp_scaler_update(mp_scaler_t scaler, const float *amax, mp_stream_t stream);

/** Copy the state to the host; waits for `stream`. */
MP_API mp_status_t mp_scaler_get_state_sync(mp_scaler_t scaler, mp_scaler_state_t *state,
                                            mp_stream_t stream);
/** Copy a state from the host; waits for `stream`.  Restoring a saved state and repeating the steps
 *  gives bitwise the same scales.  Restoring empties the history, clears the flag, and forgets what amax
 *  has been kept since the last update: they are of steps that are given up.
 *  @retval MP_ERROR_INVALID_ARGUMENT no scaler of this config can be in that state.  In particular:
 *          another policy; a scale outside [min_scale, max_scale], which NaN is (logmax);
 *          growth_tracker >= growth_interval or hysteresis_left > hysteresis, as after lowering
 *          those: then set growth_tracker to 0 and hysteresis_left to hysteresis; a head-room below
 *          0; statistics that are not finite, or of lognormal no means of log2 of a float; more
 *          steps skipped than taken, more of them with a NaN or in a row than at all, skips that
 *          are not the sum of their causes; counts beyond 2^52 */
MP_API mp_status_t mp_scaler_set_state_sync(mp_scaler_t scaler, const mp_scaler_state_t *state,
                                            mp_stream_t stream);

/** The last updates, oldest first, for a plot; waits for `stream`.
 *  @param capacity  elements of the arrays; where fewer than there are, the newest are given
 *  @param scales    host, optional: S with which the step was taken
 *  @param skipped   host, optional: 0 = taken, 1 = overflowed, 2 = overflowed with amax = NaN,
 *                   MP_STEP_RANGE, MP_STEP_NO_SCALE; not values of mp_step_outcome_t otherwise
 *  @param count     host: elements written, at most config.history */
MP_API mp_status_t mp_scaler_get_history_sync(mp_scaler_t scaler, int64_t capacity, float *scales,
                                              int32_t *skipped, int64_t *count, mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_SCALER_H */

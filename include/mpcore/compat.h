/* mpcore/compat.h: loss scalers of other systems: presets and conversion of checkpoints. */
#ifndef MPCORE_COMPAT_H
#define MPCORE_COMPAT_H

#include "scaler.h"

MP_BEGIN_C

/** @defgroup compat 19. Loss scalers of other systems
 *
 *  Presets for comparing policies, and conversions of checkpoints for resuming training runs.
 *
 *  MP_SCALER_POLICY_LOGMAX reproduces OpenSeq2Seq's LogMaxScaler with its defects; for training use
 *  MP_SCALER_POLICY_LOGNORMAL.  Both estimate mu and sigma the same way; MP_SCALER_POLICY_LOGMAX
 *  uses fp32 and differs as follows:
 *
 *  - S = 2^(16 - mu - overflow_std_dev * sigma), not rounded to a power of two.
 *  - sigma has no minimum, and S no headroom.
 *  - An overflow counts as a sample of 2^log2_max.
 *  - Gradients that are all zero count as a sample of -infinity.  mu and S are NaN from then on,
 *    and every step is skipped.
 *
 *  (OpenSeq2Seq measures the gradients after clipping, this library before.)
 *
 *  @{ */

/** Policies of other systems, with their defaults.  S equals theirs after every step as long as S
 *  is a finite fp32 number.  All are MP_SCALER_POLICY_BACKOFF except the first and the last; the
 *  returned configuration can be modified.
 *
 *  Differences at the limits: Megatron, DeepSpeed and Keras 3 let S grow beyond the finite numbers,
 *  after which every step is lost; here S stops growing.  Apex raises an error at S = 0, and
 *  DeepSpeed's DynamicLossScaler at an overflow with S = 1; here S is unchanged. */
typedef enum mp_scaler_preset {
  /** This library's lognormal policy: mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL). */
  MP_SCALER_PRESET_LOGNORMAL = 1,
  /** torch.amp.GradScaler.  Initial S 2^16, interval 2000, no limits. */
  MP_SCALER_PRESET_TORCH = 2,
  /** apex.amp LossScaler, apex/amp/scaler.py (removed from Apex in 2025).  Initial S 2^16, interval
   *  2000, no minimum, maximum 2^24. */
  MP_SCALER_PRESET_APEX_AMP = 3,
  /** Apex csrc/update_scale_hysteresis.cu: torch's rule, but S backs off only after 2 overflows
   *  without a clean step between them.  The kernel has no defaults; the preset uses torch's, and
   *  Megatron's hysteresis of 2. */
  MP_SCALER_PRESET_APEX_HYSTERESIS = 4,
  /** Megatron-LM DynamicGradScaler, core/optimizer/grad_scaler.py.  Initial S 2^32, interval 1000,
   *  minimum 1, hysteresis 2, refilled when S grows. */
  MP_SCALER_PRESET_MEGATRON = 5,
  /** DeepSpeed DynamicLossScaler, runtime/fp16/loss_scaler.py (ZeRO), with the defaults of the
   *  "fp16" section of its configuration: initial S 2^16, interval 1000, minimum 1, hysteresis 2.
   *  For consecutive_hysteresis set MP_SCALER_FLAG_REFILL_EACH_STEP. */
  MP_SCALER_PRESET_DEEPSPEED = 6,
  /** DeepSpeed FP16_Optimizer, runtime/fp16/fused_optimizer.py (without ZeRO).  Like
   *  MP_SCALER_PRESET_DEEPSPEED without hysteresis, but the first growth takes 1001 clean steps. */
  MP_SCALER_PRESET_DEEPSPEED_FUSED = 7,
  /** tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  Initial S 2^15, interval
   *  2000, minimum 1. */
  MP_SCALER_PRESET_KERAS = 8,
  /** keras.optimizers.LossScaleOptimizer of Keras 3.  Initial S 2^15, interval 2000, no limits. */
  MP_SCALER_PRESET_KERAS_3 = 9,
  /** OpenSeq2Seq BackoffScaler, optimizers/automatic_loss_scaler.py.  Initial S 2^14, interval
   *  2000, minimum 1, maximum 2^14. */
  MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF = 10,
  /** OpenSeq2Seq LogMaxScaler: MP_SCALER_POLICY_LOGMAX.  Initial S 1, minimum 1, maximum 2^14. */
  MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX = 11
} mp_scaler_preset_t;

/** Initializes the configuration of a preset.  In presets of other systems, unlisted fields have
 *  the defaults of MP_SCALER_POLICY_BACKOFF, except that max_scale and max_consecutive_skips are 0.
 *  @retval MP_ERROR_INVALID_ARGUMENT unknown preset */
MP_API mp_status_t mp_scaler_config_init_preset(mp_scaler_config_t *config, size_t struct_size,
                                                mp_scaler_preset_t preset);
static inline mp_scaler_config_t mp_scaler_config_preset(mp_scaler_preset_t preset) {
  mp_scaler_config_t config;
  mp_scaler_config_init_preset(&config, sizeof config, preset);
  return config;
}

/** Initializes a configuration from a name, as used on command lines and in other systems'
 *  configuration files.  Case is ignored.
 *
 *      "Backoff"    MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF (OpenSeq2Seq's name)
 *      "LogMax"     MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX (OpenSeq2Seq's name)
 *      "lognormal"  MP_SCALER_PRESET_LOGNORMAL
 *      "dynamic"    MP_SCALER_PRESET_APEX_AMP (Apex's name); the initial S is that of GradScaler
 *      "none"       MP_SCALER_POLICY_STATIC with S = 1
 *      "128"        MP_SCALER_POLICY_STATIC with S = 128, and likewise for every other valid S
 *
 *  If a static S is outside [1, 2^24], min_scale or max_scale is set to it.
 *  @param name    host.
 *  @param config  host, out; zeroed on error.
 *  @retval MP_ERROR_NOT_FOUND unknown name
 *  @retval MP_ERROR_INVALID_ARGUMENT a number <= 0, not finite, or without a finite reciprocal */
MP_API mp_status_t mp_scaler_config_from_name(const char *name, mp_scaler_config_t *config,
                                              size_t struct_size);

/** Checkpoint of torch.amp.GradScaler, from state_dict().  Fields are named like its keys, except
 *  "_growth_tracker".  Frozen, like the keys of that checkpoint. */
typedef struct mp_torch_scaler {
  double scale;
  double growth_factor;
  double backoff_factor;
  int32_t growth_interval;
  int32_t growth_tracker;
} mp_torch_scaler_t;

/** Converts a checkpoint of torch into the configuration and state of a scaler that continues it.
 *  @param saved   host.
 *  @param config  host, out, for mp_scaler_create; initialize it with MP_INIT_STRUCT.
 *  @param state   host, out, for mp_scaler_set_state_sync; initialize it with MP_INIT_STRUCT.
 *  @retval MP_ERROR_INVALID_ARGUMENT a scale without a finite reciprocal; a factor or interval out
 *          of range; or growth_tracker >= growth_interval, which torch's set_growth_interval can
 *          cause. torch compares the two for equality, so S would not grow there before the next
 *          overflow; here it would grow at once.  Set growth_tracker to 0 */
MP_API mp_status_t mp_scaler_from_torch(const mp_torch_scaler_t *saved, mp_scaler_config_t *config,
                                        mp_scaler_state_t *state);

/** Converts a configuration and state for GradScaler.load_state_dict.  Hysteresis, limits of S and
 *  counts of skips are lost: torch has none.
 *  @param saved  host, out. */
MP_API mp_status_t mp_scaler_to_torch(const mp_scaler_config_t *config,
                                      const mp_scaler_state_t *state, mp_torch_scaler_t *saved);

/** Checkpoint of Megatron-LM's DynamicGradScaler, from state_dict().  Fields are named like its
 *  keys.  Frozen, like the keys of that checkpoint. */
typedef struct mp_megatron_scaler {
  float scale;
  int32_t growth_tracker;
  int32_t hysteresis_tracker; /**< negative after more overflows than hysteresis */
} mp_megatron_scaler_t;

/** Converts a checkpoint of Megatron-LM into a state, for a scaler with MP_SCALER_PRESET_MEGATRON.
 *  @param saved  host.
 *  @param state  host, out; initialize it with MP_INIT_STRUCT.
 *  @retval MP_ERROR_INVALID_ARGUMENT a scale without a finite reciprocal, or a growth_tracker < 0;
 *          mp_scaler_set_state_sync checks the limits that depend on the scaler */
MP_API mp_status_t mp_scaler_from_megatron(const mp_megatron_scaler_t *saved,
                                           mp_scaler_state_t *state);

/** Converts a state for DynamicGradScaler.load_state_dict.
 *  @param saved  host, out. */
MP_API mp_status_t mp_scaler_to_megatron(const mp_scaler_state_t *state,
                                         mp_megatron_scaler_t *saved);

/** @} */

MP_END_C

#endif /* MPCORE_COMPAT_H */

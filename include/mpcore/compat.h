/* mpcore/compat.h: loss scalers of other systems. */
#ifndef MPCORE_COMPAT_H
#define MPCORE_COMPAT_H

#include "scaler.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup compat Loss scalers of other systems
 *
 *  Checkpoints of training runs that go on here, and policies to compare with.
 *
 *  MP_SCALER_LOGMAX is OpenSeq2Seq's LogMaxScaler as it was shipped, defects included: train with
 *  MP_SCALER_LOGNORMAL.  mu, sigma and S as there, but in fp32, without floor of sigma, head-room or
 *  rounding to a power of two:  S = 2^(16 - mu - overflow_std_dev * sigma).  An overflow is a sample
 *  of 2^log2_max, gradients that are all zero one of -infinity, after which mu and S are NaN for
 *  good and every step is skipped.  (Upstream measures the gradients after clipping, this library
 *  before.)
 *
 *  @{ */

/** Policies of other systems: S after every step is theirs, exactly, with their defaults, while S
 *  is a finite fp32 number.  (Megatron, DeepSpeed and Keras 3 let S grow past that, and every
 *  later step is lost; here S stops.  apex amp raises at S = 0, DeepSpeed's DynamicLossScaler at
 *  an overflow with S = 1; here S stays there.)  All are MP_SCALER_BACKOFF but for the first and
 *  the last; change what you like in the config returned. */
typedef enum mp_scaler_preset {
  /** mp_scaler_config_default(MP_SCALER_LOGNORMAL) */
  MP_SCALER_PRESET_LOGNORMAL = 0,
  /** torch.amp.GradScaler.  2^16, interval 2000, no limits. */
  MP_SCALER_PRESET_TORCH = 1,
  /** apex.amp LossScaler, apex/amp/scaler.py (removed from apex in 2025).  2^16, interval 2000, no
   *  minimum, maximum 2^24. */
  MP_SCALER_PRESET_APEX_AMP = 2,
  /** apex csrc/update_scale_hysteresis.cu: torch's rule, but it takes 2 overflows without a clean
   *  step between them to back off.  The kernel has no defaults: torch's, and Megatron's
   *  hysteresis of 2. */
  MP_SCALER_PRESET_APEX_HYSTERESIS = 3,
  /** Megatron-LM DynamicGradScaler, core/optimizer/grad_scaler.py.  2^32, interval 1000, minimum
   *  1, hysteresis 2, refilled when S grows. */
  MP_SCALER_PRESET_MEGATRON = 4,
  /** DeepSpeed DynamicLossScaler, runtime/fp16/loss_scaler.py (ZeRO), with the defaults of the
   *  "fp16" section of its configuration: 2^16, interval 1000, minimum 1, hysteresis 2.  For
   *  consecutive_hysteresis set MP_SCALER_REFILL_EACH_STEP. */
  MP_SCALER_PRESET_DEEPSPEED = 5,
  /** DeepSpeed FP16_Optimizer, runtime/fp16/fused_optimizer.py (without ZeRO), which has a rule of
   *  its own: no hysteresis, and the first growth takes 1001 clean steps. */
  MP_SCALER_PRESET_DEEPSPEED_FUSED = 6,
  /** tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  2^15, interval 2000,
   *  minimum 1. */
  MP_SCALER_PRESET_KERAS = 7,
  /** keras.optimizers.LossScaleOptimizer of Keras 3: the same without minimum. */
  MP_SCALER_PRESET_KERAS_3 = 8,
  /** OpenSeq2Seq BackoffScaler, optimizers/automatic_loss_scaler.py.  2^14, which is also the
   *  maximum, interval 2000, minimum 1. */
  MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF = 9,
  /** OpenSeq2Seq LogMaxScaler as shipped: MP_SCALER_LOGMAX.  1, in [1, 2^14]. */
  MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX = 10
} mp_scaler_preset_t;

/** mp_scaler_config_init(MP_SCALER_BACKOFF), with max_scale and diverged_after 0 and what `preset`
 *  says.
 *  @retval MP_ERROR_INVALID_ARGUMENT if there is no such preset */
MP_API mp_status_t mp_scaler_config_init_preset(mp_scaler_config_t *config, size_t struct_size,
                                                mp_scaler_preset_t preset);
static inline mp_scaler_config_t mp_scaler_config_preset(mp_scaler_preset_t preset) {
  mp_scaler_config_t config;
  mp_scaler_config_init_preset(&config, sizeof config, preset);
  return config;
}

/** What a word of a command line or of another system's configuration stands for:
 *
 *      "Backoff"    OpenSeq2Seq's: MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF
 *      "LogMax"     OpenSeq2Seq's: MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX, as it was shipped
 *      "lognormal"  MP_SCALER_PRESET_LOGNORMAL
 *      "dynamic"    Apex's: MP_SCALER_PRESET_APEX_AMP, which begins where torch's GradScaler does
 *      "none"       MP_SCALER_STATIC with S = 1
 *      "128"        MP_SCALER_STATIC with S = 128; so every other number that S may be
 *
 *  Capital letters do not matter.  A static S may lie outside [1, 2^24]: min_scale or max_scale goes
 *  with it.
 *  @param name    host.
 *  @param config  host, out; zeros after an error.
 *  @retval MP_ERROR_NOT_FOUND the word is unknown
 *  @retval MP_ERROR_INVALID_ARGUMENT the number is not positive and finite with a finite reciprocal */
MP_API mp_status_t mp_scaler_config_from_name(const char *name, mp_scaler_config_t *config,
                                              size_t struct_size);

/** torch.amp.GradScaler.state_dict(); the keys are the names here, but for "_growth_tracker". */
typedef struct mp_torch_scaler {
  double scale;
  double growth_factor;
  double backoff_factor;
  int32_t growth_interval;
  int32_t growth_tracker;
} mp_torch_scaler_t;

/** What makes a scaler that goes on where torch's stopped.
 *  @param saved   host.
 *  @param config  host, out: for mp_scaler_create; MP_INIT_STRUCT it before the call.
 *  @param state   host, out: for mp_scaler_set_state_sync; MP_INIT_STRUCT it before the call.
 *  @retval MP_ERROR_INVALID_ARGUMENT a scale without finite reciprocal, or a factor or interval that
 *          no scaler has.  Also a growth_tracker that is not below growth_interval, as
 *          set_growth_interval can leave it behind: torch compares the two for equality, so there S
 *          would not grow again before an overflow, and here it would grow at once.  Set
 *          growth_tracker to 0 */
MP_API mp_status_t mp_scaler_from_torch(const mp_torch_scaler_t *saved, mp_scaler_config_t *config,
                                        mp_scaler_state_t *state);

/** For GradScaler.load_state_dict.  Hysteresis, limits and the counts of skips are not torch's.
 *  @param saved  host, out. */
MP_API mp_status_t mp_scaler_to_torch(const mp_scaler_config_t *config,
                                      const mp_scaler_state_t *state, mp_torch_scaler_t *saved);

/** DynamicGradScaler.state_dict() of Megatron-LM; the keys are the names here. */
typedef struct mp_megatron_scaler {
  float scale;
  int32_t growth_tracker;
  int32_t hysteresis_tracker; /**< below 0 after more overflows than hysteresis */
} mp_megatron_scaler_t;

/** The state, for a scaler made from MP_SCALER_PRESET_MEGATRON.
 *  @param saved  host.
 *  @param state  host, out; MP_INIT_STRUCT it before the call.
 *  @retval MP_ERROR_INVALID_ARGUMENT a scale without finite reciprocal, a growth_tracker below 0.
 *          What depends on the scaler, mp_scaler_set_state_sync refuses */
MP_API mp_status_t mp_scaler_from_megatron(const mp_megatron_scaler_t *saved,
                                           mp_scaler_state_t *state);

/** For DynamicGradScaler.load_state_dict.
 *  @param saved  host, out. */
MP_API mp_status_t mp_scaler_to_megatron(const mp_scaler_state_t *state,
                                         mp_megatron_scaler_t *saved);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_COMPAT_H */

/* mpcore/step.h: everything between backward and the next forward. */
#ifndef MPCORE_STEP_H
#define MPCORE_STEP_H

#include "comm.h"
#include "optimizer.h"
#include "scaler.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup step 10. The fused step
 *  @{ */

/** Bits of mp_step_options.flags. */
typedef enum mp_step_flags {
  /** Leave the scaler and its flag to a later step, for optimizers that share a scaler: all but
   *  the last have this flag (or all, and mp_scaler_update(scaler, NULL, stream) follows).
   *  An optimizer skips for its own gradients and those before it.  For all to skip together
   *  the lists of the later ones are checked first:
   *
   *      mp_check_nonfinite(grads_of_b, mp_scaler_found_inf(scaler), stream);
   *      options.flags = MP_STEP_KEEP_SCALER;
   *      mp_scale_step(a, scaler, &options, stream);
   *      mp_scale_step(b, scaler, NULL, stream);     // S follows its policy */
  MP_STEP_KEEP_SCALER = 1 << 0,
  /** The gradients are those of mp_grads_accumulate or mp_grads_to_fp32: 1/S is in them already,
   *  and the scaler learns from the amax that was noted there.  Lognormal and logmax need one.
   *  With MP_STEP_CHECKED too where the last call had MP_ACCUMULATE_LAST. */
  MP_STEP_UNSCALED = 1 << 1,
  /** Whoever produced the gradients has inspected them: the epilogues of GEMMs and convolutions raise
   *  mp_scaler_found_inf and measure amax.  Pass 1 falls away, which saves a launch and one of the two
   *  readings of every gradient.  Without a scaler the flag is that of mp_optimizer_get_scaler.
   *  Not with what only pass 1 can tell: max_grad_norm, grad_norm, tensor_norms, reports, and the
   *  max_tensor_norm of a group. */
  MP_STEP_CHECKED = 1 << 2,
  /** With comm: every rank has tensors of its own, each of them whole (a sharded optimizer, perhaps
   *  without tensors), and the norm is that of all of them.  Without this flag all ranks have the
   *  same gradients. */
  MP_STEP_SHARDED = 1 << 3
} mp_step_flags_t;

/** What else a step does and reports. */
typedef struct mp_step_options {
  uint32_t struct_size;
  uint32_t flags;      /**< mp_step_flags_t, or-ed */
  float max_grad_norm; /**< clip the unscaled global norm to this; 0 = no clipping */
  uint32_t reserved0;  /**< must be 0 */
  float *grad_norm;    /**< device, 1 float, optional: unscaled norm before clipping */
  float *found_inf;    /**< device, 1 float, optional: 1 if this step was skipped, else 0 */
  float *tensor_norms; /**< device, 1 float per tensor, optional: as grad_norm, of each */
  /** MP_STEP_CHECKED: device, 1 float: the largest gradient as it was measured, with the meaning of
   *  `amax` in mp_scaler_update, and needed by the same policies.  Infinity or NaN skips the step.
   *  Read, not cleared: what the epilogues fill is for the caller to clear before the next one. */
  const float *amax;
  /** Device, 1 report and 1 per tensor, optional: of the gradients as they are, multiplied by S
   *  (mp_inspect).  Also of a step that is skipped; of several ranks, each reports on its own. */
  mp_tensor_report_t *report, *tensor_reports;
  /** Device, 1 integer, optional: increased by the number of weights whose 16-bit copy was beyond the
   *  largest finite number after rounding, whether it was clamped or became infinite; clear it
   *  first.  NaN is none of them. */
  int64_t *model_overflows;
  /** Host, optional: the step is one of several ranks that take the same decision and, if their
   *  scalers began alike, have the same S ever after.  A collective call (mp_comm_t), with the same
   *  flags on every rank. */
  const mp_comm_t *comm;
  /** Device, 1 integer, optional: the outcome of this step, a mp_step_outcome_t. */
  int32_t *outcome;
  /** Device, 1 integer, optional: increased by the number of elements that kept their old weight
   *  and moments because a new one was not finite (see mp_scale_step); clear it first. */
  int64_t *rejected_updates;
} mp_step_options_t;

/** No clipping, no reports, one rank. */
MP_API mp_status_t mp_step_options_init(mp_step_options_t *options, size_t struct_size);
static inline mp_step_options_t mp_step_options_default(void) {
  mp_step_options_t options;
  mp_step_options_init(&options, sizeof options);
  return options;
}

/** Everything between backward and the next forward:
 *
 *      1. found_inf |= any non-finite gradient;  norm, amax  one pass over the gradients
 *      2. found_inf, NaN and amax become those of all ranks, with MP_STEP_SHARDED also the
 *         norm                                                       only with comm
 *      3. if the outcome is MP_STEP_TAKEN:
 *             g = gradient / S, clipped;  optimizer update of master;
 *             model = round(master);  t += 1                         second pass
 *      4. S follows its policy;  found_inf is cleared;  not with MP_STEP_KEEP_SCALER
 *
 *  Finite gradients, weights and moments stay finite.  Norms do not overflow.  A step in which a
 *  square of a gradient could overflow is skipped (MP_STEP_RANGE).  An element of which the new
 *  weight or moment is not finite keeps its old weight and moments, as it does for an infinite
 *  extra gradient; mp_step_options.rejected_updates counts it.
 *
 *  found_inf is the scaler's own flag (mp_scaler_found_inf): a GEMM epilogue that saw an
 *  overflowing activation gradient may have set it before.
 *
 *  All on the device, with no host synchronisation.  Bitwise equal to calling
 *  mp_check_nonfinite, mp_l2norm, mp_amax, mp_clip_factor, mp_optimizer_step,
 *  mp_scaler_update in that order; it only saves launches and memory traffic.  Two passes
 *  are the minimum: no weight may change before the last gradient has been inspected
 *  (MP_STEP_CHECKED: it has been).
 *
 *  With MP_SCALER_STATIC an overflowing step is skipped too.
 *
 *  Ranks: gradients that went through mp_grad_all_reduce are the same everywhere, but a flag
 *  raised by an epilogue is not, nor is the amax of a sharded optimizer.  2 is one all_reduce of 3
 *  floats (max) and, with MP_STEP_SHARDED, one of 3 floats (sum), in one batch, between two small
 *  kernels.  Causes of a skip travel as a code, so that no maximum meets a NaN.  The sums are
 *  those of squares in fp32: large, small and other ones apart, each with a power of two as factor.
 *
 *  @param scaler   optional; NULL = the optimizer's own static scaler, S = 1 (bf16):
 *                  mp_optimizer_get_scaler.
 *  @param options  host, optional; NULL = no clipping, one rank.
 *  @retval MP_ERROR_INVALID_ARGUMENT if optimizer and scaler belong to different contexts
 *  @retval MP_ERROR_COMM a callback of options->comm failed: nothing has been updated, S
 *          included, but the scaler's flag is up if a gradient is not
 *          finite.  Other ranks may have taken the step */
MP_API mp_status_t mp_scale_step(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                 const mp_step_options_t *options, mp_stream_t stream);

/** Bits of the `flags` of mp_grads_accumulate. */
typedef enum mp_accumulate_flags {
  /** The first gradients of a window: sums are overwritten, and not read. */
  MP_ACCUMULATE_FIRST = 1 << 0,
  /** The last ones before the update, by an optimizer of the host program: the sums are inspected
   *  as well, and mp_step_query learns the outcome here already.  Of several lists only the last one
   *  has this flag; nothing may raise the scaler's flag between here and mp_scaler_update.  The
   *  outcome is of this rank's gradients: with several ranks mp_grad_all_reduce comes before. */
  MP_ACCUMULATE_LAST = 1 << 1
} mp_accumulate_flags_t;

/** sums += weight / S * grads, or with MP_ACCUMULATE_FIRST  sums = weight / S * grads; in fp32, with
 *  the S of the moment, one rounding of weight / S and one of each sum.  In one pass.
 *
 *  Raises the scaler's flag for a gradient that is not finite, or whose product with weight / S is
 *  not, and keeps the largest |gradient|,
 *  still multiplied by S and without the weight, for the scaler's next update.  The overflow
 *  stays in the sums too, as infinity or NaN, until the next MP_ACCUMULATE_FIRST: one bad
 *  micro-batch discards its window whatever becomes of the flag.
 *
 *  Accumulation over k micro-batches; `sums` are the optimizer's grads:
 *
 *      for (int i = 0; i < k; i++) {
 *        const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
 *        forward_and_backward(i);
 *        mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
 *      }
 *      options.flags = MP_STEP_UNSCALED;
 *      mp_scale_step(optimizer, scaler, &options, stream);
 *
 *  (With several ranks, mp_grad_all_reduce of the sums comes before the step, which has options.comm.)
 *  S stays as it is within such a window.  It may also follow its policy after each micro-batch, so
 *  that the rest of a discarded window has a smaller S already.  mp_scaler_state and mp_step_query
 *  count micro-batches then; that the window was discarded, options.found_inf says in both forms:
 *
 *      for (int i = 0; i < k; i++) {
 *        const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
 *        forward_and_backward(i);
 *        mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
 *        mp_scaler_update(scaler, NULL, stream);
 *      }
 *      mp_scale_step(optimizer, NULL, &options, stream);
 *
 *  @param grads   any types; sums == grads is allowed for MP_FP32 gradients.
 *  @param sums    MP_FP32, parallel to grads.
 *  @param weight  finite; 1, 1/k, a task weight.  0 adds nothing, but an overflow is still noticed.
 *  @param flags   mp_accumulate_flags_t, or-ed. */
MP_API mp_status_t mp_grads_accumulate(mp_scaler_t scaler, mp_tensor_list_t grads,
                                       mp_tensor_list_t sums, float weight, uint32_t flags,
                                       mp_stream_t stream);

/** out = grads / S in fp32, checked for overflow, in one pass: mp_grads_accumulate of weight 1 with
 *  both flags.  The first half of a step with an optimizer of the host program, which updates
 *  fp32 master weights however it likes:
 *
 *      const float *found_inf = mp_scaler_found_inf(scaler);
 *      mp_grads_to_fp32(scaler, grads, grads32, stream);
 *      my_optimizer(found_inf); // masters and grads32; does nothing where *found_inf is not 0
 *      mp_masters_to_model(masters, models, found_inf, NULL, stream);
 *      mp_scaler_update(scaler, NULL, stream);
 *
 *  That optimizer runs on the device and reads the flag there.  An optimizer on the host, or one that knows
 *  of no flag, is started by the host, which polls mp_step_query; what else has been enqueued goes
 *  on meanwhile.  n is mp_scaler_state.steps + 1:
 *
 *      mp_step_outcome_t outcome = MP_STEP_PENDING;
 *      mp_grads_to_fp32(scaler, grads, grads32, stream);
 *      while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n, &outcome);
 *      if (outcome == MP_STEP_TAKEN) {
 *        my_host_optimizer();
 *        mp_masters_to_model(masters, models, NULL, NULL, stream);
 *      }
 *      mp_scaler_update(scaler, NULL, stream);
 *
 *  @param grads  any types; out == grads is allowed for MP_FP32 gradients.
 *  @param out    MP_FP32, parallel to grads. */
MP_API mp_status_t mp_grads_to_fp32(mp_scaler_t scaler, mp_tensor_list_t grads,
                                    mp_tensor_list_t out, mp_stream_t stream);

/** Outcome of a step.  If several causes apply: OVERFLOW, then NO_SCALE, then RANGE.  Queries, the
 *  state of the scaler and mp_step_options report the same outcome; mp_scaler_get_history_sync has
 *  its own codes. */
typedef enum mp_step_outcome {
  MP_STEP_PENDING = 0, /**< the device has not come to it yet */
  MP_STEP_TAKEN = 1,
  /** Bound for comparisons, never reported: from here on (>=) nothing was updated. */
  MP_STEP_SKIPPED = 2,
  /** The largest |gradient| times the factor that unscales and clips is not below 2^63, or that
   *  factor is not finite.  S stays: no other S helps. */
  MP_STEP_RANGE = 3,
  /** (4 is reserved.)  S is 0, or 1/S is not a finite number.  The scaler's status becomes
   *  MP_SCALER_DIVERGED. */
  MP_STEP_NO_SCALE = 5,
  MP_STEP_OVERFLOW =
      6 /**< the flag was up, or a gradient or amax was not finite; S follows its policy */
} mp_step_outcome_t;

/** Steps that mp_step_query remembers. */
#define MP_STEP_QUERY_DEPTH 1024

/** What became of a step, from what the device has written into memory of the host.  Neither waits
 *  nor enqueues; any thread may ask at any time, also while another one works with the scaler.
 *
 *  The queue does not run dry if a step is asked for while it still holds work of the next one:
 *
 *      for (int64_t n = 1; n <= steps; n++) {
 *        mp_step_outcome_t outcome = n > 1 ? MP_STEP_PENDING : MP_STEP_SKIPPED;
 *        forward_and_backward(n); // enqueued; step n - 1 is done long before this is
 *        while (outcome == MP_STEP_PENDING) mp_step_query(scaler, n - 1, &outcome);
 *        if (outcome == MP_STEP_TAKEN) my_learning_rate_advances();
 *        mp_scale_step(optimizer, scaler, NULL, stream);
 *      }
 *
 *  A skipped step is logged at MP_LOG_INFO with its cause, once; not if a later one was logged
 *  before.  The line has S before it and, unless the query comes before the update, after it.
 *
 *  @param step     >= 1, counted as in mp_scaler_state.steps: the update that makes steps n is step
 *                  n, also after restoring a state and in a replayed graph.  Its outcome is known
 *                  at the end of the mp_scale_step or mp_scaler_update that counts it (those with
 *                  MP_STEP_KEEP_SCALER do not), or after MP_ACCUMULATE_LAST.
 *  @param outcome  host, out.
 *  @retval MP_ERROR_NOT_FOUND the step lies MP_STEP_QUERY_DEPTH or more back, or before the state
 *          that was restored */
MP_API mp_status_t mp_step_query(mp_scaler_t scaler, int64_t step, mp_step_outcome_t *outcome);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_STEP_H */

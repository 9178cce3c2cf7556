/* mpcore/step.h: the training step between backward and the next forward pass. */
#ifndef MPCORE_STEP_H
#define MPCORE_STEP_H

#include "comm.h"
#include "optimizer.h"
#include "scaler.h"

MP_BEGIN_C

/** @defgroup step 15. Fused training step
 *  @{ */

/** Bits of mp_step_options_t.flags. */
typedef enum mp_step_flags {
  /** Leaves the scaler and its flag to a later step, for optimizers that share a scaler.  All
   *  optimizers except the last use this flag (or all do, and mp_scaler_update(scaler, NULL,
   *  stream) follows).  An optimizer skips its step for overflows in its own gradients and in those
   *  of previous steps.  To skip all steps together, check the later lists first:
   *
   *      mp_check_nonfinite(grads_of_b, mp_scaler_get_found_inf_address(scaler), stream);
   *      options.flags = MP_STEP_FLAG_KEEP_SCALER;
   *      mp_scale_step(a, scaler, &options, stream);
   *      mp_scale_step(b, scaler, NULL, stream);     // S follows its policy */
  MP_STEP_FLAG_KEEP_SCALER = 1 << 0,
  /** The gradients come from mp_grads_accumulate or mp_grads_to_fp32: they already include 1/S, and
   *  the scaler uses the amax recorded there, which lognormal and logmax require.  Add
   *  MP_STEP_FLAG_CHECKED if the last call had MP_ACCUMULATE_FLAG_LAST. */
  MP_STEP_FLAG_UNSCALED = 1 << 1,
  /** The producers of the gradients have checked them: every call of the backward pass updates amax
   *  and, at mp_scaler_get_found_inf_address, found_inf (without a scaler: that of
   *  mp_optimizer_get_scaler), both by its `stats`.  mp_rnn_backward_data and mp_gemm_grouped have
   *  found_inf only.  The step omits pass 1, which saves a launch and one of two reads of every
   *  gradient.
   *
   *  Not supported with outputs and limits that need pass 1: max_grad_norm, grad_norm,
   *  tensor_norms, reports, and a group's max_tensor_norm. */
  MP_STEP_FLAG_CHECKED = 1 << 2,
  /** Sharded optimizer, with comm: every tensor belongs to one rank, and a rank may have none.  The
   *  norm is that of the tensors of all ranks.  Without this flag all ranks have the same
   *  gradients. */
  MP_STEP_FLAG_SHARDED = 1 << 3,
  /** The denominator is the sum of mp_step_options.denominator over all ranks.  Not supported by
   *  this version. */
  MP_STEP_FLAG_SUM_DENOMINATOR = 1 << 4
} mp_step_flags_t;

/** Options and additional outputs of a step. */
typedef struct mp_step_options {
  uint32_t struct_size;
  uint32_t flags;      /**< bitwise or of mp_step_flags_t */
  float max_grad_norm; /**< limit of the unscaled global norm; 0 = no clipping */
  uint32_t reserved0;  /**< must be 0 */
  float *grad_norm;    /**< device, 1 float, optional: unscaled norm before clipping */
  float *found_inf; /**< device, 1 float, not that of the scaler, optional: 1 if skipped, else 0 */
  float *tensor_norms; /**< device, 1 float per tensor, optional: like grad_norm */
  /** Device, 1 float, for MP_STEP_FLAG_CHECKED: largest |gradient| as measured, like `amax` of
   *  mp_scaler_update and required by the same policies.  Infinity or NaN skips the step.  Read but
   *  not cleared: clear it before the epilogues of the next step update it. */
  const float *amax;
  /** Device, 1 report and 1 per tensor, optional: mp_inspect of the gradients, still multiplied by
   *  S.  Also written if the step is skipped.  Every rank reports on its own gradients. */
  mp_tensor_report_t *report, *tensor_reports;
  /** Device, 1 integer, optional: increased by the number of weights whose 16-bit copy exceeded the
   *  largest finite value after rounding, whether clamped or infinite; clear it first.  NaN is not
   *  counted. */
  int64_t *model_overflows;
  /** Host, optional: the step is taken by several ranks, with the same decision on all.  If their
   *  scalers have equal initial states, S stays equal.  The call is collective (mp_comm_t), with
   *  the same flags on every rank. */
  const mp_comm_t *comm;
  /** Device, 1 integer, optional: outcome of this step, an mp_step_outcome_t. */
  int32_t *outcome;
  /** Device, 1 integer, optional: increased by the number of elements that kept their old weight
   *  and moments because a new one was not finite (see mp_scale_step); clear it first. */
  int64_t *rejected_updates;
  /** Device, 1 float each, optional.  Not supported by this version: must be NULL.
   *
   *  The step is skipped (MP_STEP_OUTCOME_SPIKE) if *skip is not 0, or if the unscaled norm exceeds
   *  *norm_limit.  Gradients are divided by *denominator, e.g. the number of tokens, before norms
   *  and clipping. */
  const float *skip, *norm_limit, *denominator;
} mp_step_options_t;

/** Initializes options without clipping or reports, for one rank. */
MP_API mp_status_t mp_step_options_init(mp_step_options_t *options, size_t struct_size);
static inline mp_step_options_t mp_step_options_default(void) {
  mp_step_options_t options;
  mp_step_options_init(&options, sizeof options);
  return options;
}

/** Checks, unscales and clips the gradients, updates the weights, and adapts the loss scale:
 *
 *      1. found_inf |= any non-finite gradient;  norm, amax  one pass over the gradients
 *      2. found_inf, NaN and amax (MP_STEP_FLAG_SHARDED: and the norm)
 *         are combined over all ranks                                only with comm
 *      3. if the outcome is MP_STEP_OUTCOME_TAKEN:
 *             g = gradient / S, clipped;  optimizer update of master;
 *             model = round(master);  t += 1                         second pass
 *      4. S follows its policy;  found_inf is cleared
 *         (MP_STEP_FLAG_KEEP_SCALER: left to a later step)
 *
 *  Everything runs on the device, without host synchronization.  The result is bitwise identical
 *  to mp_check_nonfinite, mp_l2norm, mp_amax, mp_clip_factor, mp_optimizer_step and
 *  mp_scaler_update in this order, with fewer launches and less memory traffic.  Two passes are the
 *  minimum, because no weight may change before the last gradient has been checked; with
 *  MP_STEP_FLAG_CHECKED, one is enough.
 *
 *  found_inf is the scaler's flag (mp_scaler_get_found_inf_address), which a GEMM epilogue may
 *  already have set for an activation gradient.  An overflow skips the step with
 *  MP_SCALER_POLICY_STATIC too.
 *
 *  Finite gradients, weights and moments stay finite.  Norms do not overflow.  A step in which the
 *  square of a gradient could overflow is skipped (MP_STEP_OUTCOME_OUT_OF_RANGE).  An element whose
 *  new weight or moment is not finite, e.g. because of an infinite extra gradient, keeps its old
 *  weight and moments; mp_step_options.rejected_updates counts it.
 *
 *  Ranks: after mp_grads_all_reduce the gradients are equal on all ranks, but a flag set by an
 *  epilogue is not, nor is the amax of a sharded optimizer.  Phase 2 is one all_reduce of 3 floats
 *  (max) and, with MP_STEP_FLAG_SHARDED, one of 3 floats (sum), in one batch, between two small
 *  kernels.  Causes of a skip are sent as a code, so that no maximum involves NaN.  The sums are
 *  sums of squares in fp32, separate for large, small and other values, each scaled by a power of
 *  two.
 *
 *  @param scaler   optional; NULL = mp_optimizer_get_scaler: static, S = 1 (bf16).
 *  @param options  host, optional; NULL = no clipping, one rank.
 *  @retval MP_ERROR_INVALID_ARGUMENT e.g. optimizer and scaler belong to different contexts
 *  @retval MP_ERROR_COMM a callback of options->comm failed: neither weights nor S have been
 *          updated, but the scaler's flag is set if a gradient is not finite.  Other ranks may have
 *          taken the step */
MP_API mp_status_t mp_scale_step(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                 const mp_step_options_t *options, mp_stream_t stream);

/** Flags of mp_grads_accumulate. */
typedef enum mp_accumulate_flags {
  /** First gradients of a window: sums are overwritten, not read. */
  MP_ACCUMULATE_FLAG_FIRST = 1 << 0,
  /** Last gradients before an update by the application's own optimizer: the sums are checked too,
   *  and mp_scaler_query_step returns the outcome after this call.  If there are several lists,
   *  only the last one has this flag.  Nothing may set the scaler's flag between this call and
   *  mp_scaler_update.  The outcome is that of this rank's gradients; with several ranks, call
   *  mp_grads_all_reduce first. */
  MP_ACCUMULATE_FLAG_LAST = 1 << 1
} mp_accumulate_flags_t;

/** Accumulates unscaled gradients in fp32: sums += weight / S * grads or, with
 *  MP_ACCUMULATE_FLAG_FIRST, sums = weight / S * grads.  One pass, with the current S; weight / S
 *  is rounded once, and so is each sum.
 *
 *  Sets the scaler's flag if a gradient or its product with weight / S is not finite.  Records the
 *  largest |gradient|, still multiplied by S and without the weight, for the scaler's next update.
 *  An overflow also remains in the sums, as infinity or NaN, until the next
 *  MP_ACCUMULATE_FLAG_FIRST: one bad micro-batch discards its window even if the flag is cleared.
 *
 *  Accumulation over k micro-batches; `sums` are the optimizer's gradients:
 *
 *      for (int i = 0; i < k; i++) {
 *        const uint32_t flags = i == 0 ? MP_ACCUMULATE_FLAG_FIRST : 0;
 *        forward_and_backward(i);
 *        mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
 *      }
 *      options.flags = MP_STEP_FLAG_UNSCALED;
 *      mp_scale_step(optimizer, scaler, &options, stream);
 *
 *  With several ranks, call mp_grads_all_reduce on the sums before the step, and set options.comm.
 *
 *  S is constant within such a window.  Alternatively, call mp_scaler_update(scaler, NULL, stream)
 *  after each micro-batch, and mp_scale_step(optimizer, NULL, &options, stream) without
 *  MP_STEP_FLAG_UNSCALED after the last one.  S then follows its policy within the window, so the
 *  rest of a discarded window uses a smaller S; mp_scaler_state_t and mp_scaler_query_step count
 *  micro-batches.  In both forms options.found_inf reports a discarded window.
 *
 *  @param grads   any types; sums may be grads if all are MP_FP32.
 *  @param sums    MP_FP32, parallel to grads.
 *  @param weight  finite: 1, 1/k or a task weight.  0 adds nothing, but overflows are still
 *                 detected.
 *  @param flags   bitwise or of mp_accumulate_flags_t. */
MP_API mp_status_t mp_grads_accumulate(mp_scaler_t scaler, mp_tensor_list_t grads,
                                       mp_tensor_list_t sums, float weight, uint32_t flags,
                                       mp_stream_t stream);

/** Computes out = grads / S in fp32 and checks for overflow, in one pass: mp_grads_accumulate with
 *  weight 1 and both flags.  The first half of a step with the application's own optimizer, which
 *  updates fp32 master weights by any rule:
 *
 *      const float *found_inf = mp_scaler_get_found_inf_address(scaler);
 *      mp_grads_to_fp32(scaler, grads, grads32, stream);
 *      my_optimizer(found_inf); // masters and grads32; does nothing if *found_inf is not 0
 *      mp_masters_to_model(masters, models, found_inf, NULL, stream);
 *      mp_scaler_update(scaler, NULL, stream);
 *
 *  This optimizer runs on the device and reads the flag there.  If the optimizer runs on the host
 *  or cannot read the flag, the host polls mp_scaler_query_step and then starts it; other enqueued
 *  work continues meanwhile.  n is mp_scaler_state.steps + 1:
 *
 *      mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
 *      mp_grads_to_fp32(scaler, grads, grads32, stream);
 *      while (outcome == MP_STEP_OUTCOME_PENDING) mp_scaler_query_step(scaler, n, &outcome);
 *      if (outcome == MP_STEP_OUTCOME_TAKEN) {
 *        my_host_optimizer();
 *        mp_masters_to_model(masters, models, NULL, NULL, stream);
 *      }
 *      mp_scaler_update(scaler, NULL, stream);
 *
 *  @param grads  any types; out may be grads if all are MP_FP32.
 *  @param out    MP_FP32, parallel to grads. */
MP_API mp_status_t mp_grads_to_fp32(mp_scaler_t scaler, mp_tensor_list_t grads,
                                    mp_tensor_list_t out, mp_stream_t stream);

/** Outcome of a step.  Causes of a skip are ordered by precedence: if several apply, the greatest
 *  is reported, on all ranks.  Queries, the state of the scaler and mp_step_options report the same
 *  outcome; mp_scaler_get_history_sync has its own codes. */
typedef enum mp_step_outcome {
  MP_STEP_OUTCOME_PENDING = 0, /**< the device has not finished the step */
  MP_STEP_OUTCOME_TAKEN = 1,
  /** Lower bound of all skips, for comparisons (outcome >= MP_STEP_OUTCOME_SKIPPED); never
   *  reported.  A skipped step updates neither weights nor moments. */
  MP_STEP_OUTCOME_SKIPPED = 2,
  /** Skipped: the largest |gradient| times the factor that unscales and clips is not below 2^63, or
   *  that factor is not finite.  S is unchanged, because no other S would help. */
  MP_STEP_OUTCOME_OUT_OF_RANGE = 3,
  /** Skipped: see mp_step_options.skip and norm_limit.  Reserved: this version never reports it. */
  MP_STEP_OUTCOME_SPIKE = 4,
  /** Skipped: S is 0, or 1/S is not finite.  The scaler's status becomes
   *  MP_SCALER_STATUS_DIVERGED. */
  MP_STEP_OUTCOME_NO_SCALE = 5,
  /** Skipped: the flag was set, or a gradient or amax is not finite.  S follows its policy. */
  MP_STEP_OUTCOME_OVERFLOW = 6
} mp_step_outcome_t;

/** Number of steps whose outcome mp_scaler_query_step can return. */
#define MP_SCALER_QUERY_DEPTH 1024

/** Returns the outcome of a step, which the device has written to host memory.  Neither waits nor
 *  enqueues work.  Any thread may call it at any time, even while another one uses the scaler.
 *
 *  The device never idles if the host queries a step while work of the next one is enqueued:
 *
 *      for (int64_t n = 1; n <= steps; n++) {
 *        mp_step_outcome_t outcome = n > 1 ? MP_STEP_OUTCOME_PENDING : MP_STEP_OUTCOME_SKIPPED;
 *        forward_and_backward(n); // enqueued; step n - 1 is done long before this is
 *        while (outcome == MP_STEP_OUTCOME_PENDING) mp_scaler_query_step(scaler, n - 1, &outcome);
 *        if (outcome == MP_STEP_OUTCOME_TAKEN) advance_lr_schedule();
 *        mp_scale_step(optimizer, scaler, NULL, stream);
 *      }
 *
 *  A skipped step is logged once at MP_LOG_INFO with its cause, unless a later one has already been
 *  logged.  The line contains the old S and, unless the query precedes the update, the new S.
 *
 *  @param step     >= 1, counted like mp_scaler_state.steps: step n is the update after which steps
 *                  is n, also after restoring a state and in a replayed graph.  Its outcome is
 *                  available at the end of the mp_scale_step or mp_scaler_update that counts it
 *                  (steps with MP_STEP_FLAG_KEEP_SCALER do not count), or after
 *                  MP_ACCUMULATE_FLAG_LAST.
 *  @param outcome  host, out.
 *  @retval MP_ERROR_NOT_FOUND the step is MP_SCALER_QUERY_DEPTH or more steps old, or precedes a
 *          restored state */
MP_API mp_status_t mp_scaler_query_step(mp_scaler_t scaler, int64_t step,
                                        mp_step_outcome_t *outcome);

/** @} */

MP_END_C

#endif /* MPCORE_STEP_H */

// Arguments of the training step's kernels: loss scaler, gradient accumulation, reduction over
// ranks, optimizer.
#pragma once

#include <cstdint>

#include "kernels/simt/compiler.h"
#include "kernels/tensors/lists.h"
#include "mpcore/optimizer.h"
#include "mpcore/scaler.h"
#include "mpcore/step.h"

namespace mp {

/// History entry of one update; see mp_scaler_get_history_sync.
struct ScalerRecord {
  float scale;  ///< scale before the update
  int32_t skipped;
};

/// Number of steps that mp_scaler_query_step can look back.  Step n has slot n % kOutcomes of a
/// ring in mapped memory.
constexpr uint64_t kOutcomes = MP_SCALER_QUERY_DEPTH;

/// Outcome of a step, read by the host.  The device may overwrite it during the read, so each word
/// contains the number of its step.
struct StepOutcome {
  uint64_t verdict;  ///< 8 n + mp_step_outcome_t of step n; 0: none yet
  /// S before the step and, written by the update, S after it; only for a skipped step.  The low 32
  /// bits of n are above the bits of the float.
  uint64_t scale, next_scale;
};

/// Parameters and state of a loss-scale policy, in device memory.  See kernels/step/loss_scale.h.
struct ScalerDevice {
  float scale;
  float inv_scale;
  float found_inf;
  float amax;             ///< maximum of the steps since the last update
  uint32_t out_of_range;  ///< 1 if one of these steps had the outcome MP_STEP_OUTCOME_OUT_OF_RANGE
  mp_scaler_config_t config;
  mp_scaler_state_t state;
  ScalerRecord *history;  ///< ring of config.history_length records; NULL if that is 0
  int64_t num_recorded;   ///< total; the next one goes to num_recorded % config.history_length
  StepOutcome *outcomes;  ///< ring of kOutcomes, in mapped memory
};

/// Arguments of out = [out +] weight * *inv_scale * in.
struct AccumulateArgs {
  TensorList in, out;
  const float *inv_scale;
  float weight;
  bool first;        ///< out is not read
  bool last;         ///< end of a window: the sums are checked too, and the outcome is published
  float *found_inf;  ///< sticky: set to 1 if `in`, or its product with the factor, is not finite
  ScalerDevice *scaler;   ///< optional, unless `last`: receives the amax of `in`
  uint32_t *blocks_done;  ///< 1, zero between launches; used if `last` is set
};

/// Message of a rank, in device memory: maxima, then sums.  The ranks reduce their messages, and
/// the update reads the result.
struct RankMessage {
  float code;       ///< kRankFinite to kRankFoundNan
  float amax;       ///< largest finite amax for the scaler; after the reduction NaN if any is NaN
  float grad_amax;  ///< largest finite gradient of this step
  /// Sum of squares, in one of three slots by magnitude (rank_reduction.cu).
  float sum_squares[3];
};
constexpr int kRankMaxima = 3, kRankSums = 3;

/// Codes in order of precedence.
constexpr float kRankFinite = 0.0f, kRankNoScale = 1.0f, kRankFoundInf = 2.0f, kRankFoundNan = 3.0f;

/// Arguments of the kernels before and after the reduction over ranks
/// (kernels/step/rank_reduction.cu).
struct RankReductionArgs {
  RankMessage *message;
  float *found_inf;            ///< in: set by this rank; out: set if it was set by any rank
  const float *scaler_amax;    ///< optional: amax of this step for the scaler
  const float *grad_amax;      ///< optional
  const ScalerDevice *scaler;  ///< source of the amax of earlier steps
  const double *sum_squares;   ///< NULL: the norm is not reduced
  ClipArgs clip;               ///< applied last, with sum_squares, if clip.grad_scale is set
};

/// True if a step begins with a pass that computes the norm of every tensor.
MP_HD constexpr bool has_ratios(mp_optimizer_kind_t kind, uint32_t flags) {
  return kind == MP_OPT_LAMB || kind == MP_OPT_NOVOGRAD ||
         (kind == MP_OPT_SGD && (flags & (MP_OPT_FLAG_LARC | MP_OPT_FLAG_LARS)) != 0);
}

/// Scratch memory of the rules with tensor norms; NULL for other rules.
struct RatioScratch {
  double *w_squares;  ///< num_chunks: sums of squares of the weights
  double *u_squares;  ///< num_chunks: sums of squares of the gradient or the direction
  float *ratio;       ///< count: resulting factors (update_rules.h)
};

/// Conversion of a master weight to its 16-bit copy (kernels/step/model_copy.h).
struct CopyPolicy {
  uint32_t
      flags;  ///< MP_OPT_FLAG_MODEL_OVERFLOW, MP_OPT_FLAG_STOCHASTIC_ROUNDING; others are ignored
  uint64_t rounding_seed;
};

struct ModelCopyArgs {
  TensorList master, model;  ///< model.data[t] may be NULL
  CopyPolicy policy;
  const float *found_inf;  ///< skip if != 0; NULL = never
  const int64_t *t;        ///< device; for stochastic rounding, else NULL
  int64_t *overflows;      ///< optional, incremented
};

/// Values derived from a group's hyperparameters for one step, with powers in fp64.
struct StepFactors {
  int64_t t;           ///< number of the applied step that they are for; 0: none
  float lr;            ///< scheduled; before lr_multipliers
  float m_correction;  ///< Adam, LAMB: 1 / (1 - beta1^t)
  float v_correction;  ///< Adam, LAMB: 1 / (1 - beta2^t)
};

/// Parameter group, in device memory.
struct ParamGroup {
  mp_param_group_t hyper;
  /// Written by each step for the next one.  A step computes its own if t differs, because the host
  /// has set t or rewritten the group.
  StepFactors factors;
};

/// Optimizer state and tensors on the device.
struct OptimizerArgs {
  mp_optimizer_kind_t kind;
  uint32_t flags;
  TensorList grads, master;
  TensorList model, m, v, extra;  ///< .data may be NULL
  CopyPolicy copy;                ///< conversion of the weights to model
  const uint32_t *tensor_group;   ///< device, count
  uint32_t num_groups;
  ParamGroup *groups;              ///< device
  const float *lr_multipliers;     ///< device, count; NULL = 1
  const float *decay_multipliers;  ///< device, count; NULL = 1
  RatioScratch ratios;             ///< device
  float *lr;                       ///< device, num_groups; out: rates of an applied step
  int64_t *t;                      ///< device, applied steps
  uint32_t *blocks_done;           ///< device, 1, zero between launches
};

/// Inputs and outputs of one step.  mp_optimizer_step sets only the first three.  Pass 2 of
/// mp_scale_step also sets the others, which the last block processes after all updates.
struct UpdateArgs {
  const float *grad_scale;     ///< multiplied into every gradient; NULL = 1
  const float *found_inf;      ///< skip if != 0; NULL = never
  const double *tensor_norms;  ///< count: norms before unscaling; NULL = no clipping by tensor
  float *skipped;              ///< out, optional: 1 if this step was skipped, else 0
  int32_t *outcome;            ///< out, optional: a mp_step_outcome_t
  ScalerDevice *scaler;        ///< optional: the policy is applied and the flag cleared
  const float *scaler_amax;    ///< amax of mp_scaler_update; skip if not finite
  const float *grad_amax;      ///< largest |gradient| before grad_scale; NULL: not measured
  const float *rank_code;      ///< optional: RankMessage::code after the reduction
  bool keep_scaler;            ///< MP_STEP_FLAG_KEEP_SCALER: only amax and range are recorded
  int64_t *model_overflows;    ///< optional, incremented: copies that overflowed
  int64_t *rejected_updates;   ///< optional, incremented: elements that kept their old values
};

}  // namespace mp

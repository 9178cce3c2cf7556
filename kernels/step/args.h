// What the kernels of the training step are launched with: the loss scaler, gradient accumulation,
// the reduction over ranks, the optimizer.
#pragma once

#include <cstdint>

#include "kernels/simt/compiler.h"
#include "kernels/tensors/lists.h"
#include "mpcore/optimizer.h"
#include "mpcore/scaler.h"
#include "mpcore/step.h"

namespace mp {

/// One update, as mp_scaler_get_history_sync reports it.
struct ScalerRecord {
  float scale;  ///< before the update
  int32_t skipped;
};

/// Steps that mp_step_query can look back.  Step n has slot n % kOutcomes of a ring in mapped memory.
constexpr uint64_t kOutcomes = MP_STEP_QUERY_DEPTH;

/// What the host is told of a step.  The device may overwrite it while the host reads, so each word
/// says which step it is of.
struct StepOutcome {
  uint64_t verdict;  ///< 8 n, plus the mp_step_outcome_t of step n; 0: none yet
  /// S before and, once the update has been, after a step that was skipped: the low half of n above
  /// the bits of the float.
  uint64_t scale, next_scale;
};

/// The policy's parameters and state; the rules are in kernels/step/loss_scale.h.  Lives in device
/// memory.
struct ScalerDevice {
  float scale;
  float inv_scale;
  float found_inf;
  float amax;             ///< of the steps since the last update
  uint32_t out_of_range;  ///< 1: one of these steps had the outcome MP_STEP_RANGE
  mp_scaler_config_t config;
  mp_scaler_state_t state;
  ScalerRecord *history;  ///< ring of config.history; NULL where that is 0
  int64_t num_recorded;   ///< ever, so the next one goes to num_recorded % config.history
  StepOutcome *outcomes;  ///< ring of kOutcomes, in mapped memory
};

/// out = [out +] weight * *inv_scale * in.
struct AccumulateArgs {
  TensorList in, out;
  const float *inv_scale;
  float weight;
  bool first;        ///< out is not read
  bool last;         ///< of a window: the sums are checked too, and the outcome is published
  float *found_inf;  ///< sticky: set to 1 where `in`, or its product with the factor, is not finite
  ScalerDevice *scaler;   ///< optional, unless `last`: notes the amax of `in`
  uint32_t *blocks_done;  ///< 1, zero between launches; looked at where `last` is set
};

/// Message of a rank to the others, in device memory: maxima, then sums.  After the reduction the
/// update reads it.
struct RankMessage {
  float code;  ///< kRankFinite to kRankFoundNan
  float amax;  ///< for the scaler: the largest that is finite; after the reduction NaN if any is
  float grad_amax;  ///< the largest finite gradient of this step
  /// The sum of squares, in one of three places by its magnitude (rank_reduction.cu).
  float sum_squares[3];
};
constexpr int kRankMaxima = 3, kRankSums = 3;

/// Codes in order of precedence.
constexpr float kRankFinite = 0.0f, kRankNoScale = 1.0f, kRankFoundInf = 2.0f, kRankFoundNan = 3.0f;

/// Before the ranks combine their messages, and after it (kernels/step/rank_reduction.cu).
struct RankReductionArgs {
  RankMessage *message;
  float *found_inf;            ///< what this rank has found; out: raised if any rank has
  const float *scaler_amax;    ///< optional: what the scaler will note of this step
  const float *grad_amax;      ///< optional
  const ScalerDevice *scaler;  ///< notes of earlier steps count too
  const double *sum_squares;   ///< NULL: no norm to agree on
  ClipArgs clip;               ///< done last, with sum_squares and if clip.grad_scale is set
};

/// Whether a step begins with a pass that measures the norms of every tensor.
MP_HD constexpr bool has_ratios(mp_optimizer_kind_t kind, uint32_t flags) {
  return kind == MP_OPT_LAMB || kind == MP_OPT_NOVOGRAD ||
         (kind == MP_OPT_SGD && (flags & (MP_OPT_LARC | MP_OPT_LARS)) != 0);
}

/// What the rules with norms of a tensor measure before they update; NULL for the others.
struct RatioScratch {
  double *w_squares;  ///< num_chunks: of the weights
  double *u_squares;  ///< num_chunks: of the gradient or of the direction
  float *ratio;       ///< count: what comes of them (update_rules.h)
};

/// How a master weight becomes its 16-bit copy (kernels/step/model_copy.h).
struct CopyPolicy {
  uint32_t flags;  ///< MP_OPT_MODEL_OVERFLOW, MP_OPT_STOCHASTIC_ROUNDING; others are not looked at
  uint64_t rounding_seed;
};

struct ModelCopyArgs {
  TensorList master, model;  ///< model.data[t] may be NULL
  CopyPolicy policy;
  const float *found_inf;  ///< nothing is written when != 0; NULL = never
  const int64_t *t;        ///< device; for stochastic rounding, else NULL
  int64_t *overflows;      ///< optional, increased
};

/// What a step makes of the hyperparameters of a group, as far as it takes powers in fp64.
struct StepFactors {
  int64_t t;           ///< the number of the applied step that they are for; 0: of none
  float lr;            ///< scheduled; before lr_multipliers
  float m_correction;  ///< Adam, LAMB: 1 / (1 - beta1^t)
  float v_correction;  ///< Adam, LAMB: 1 / (1 - beta2^t)
};

/// A parameter group, in device memory.
struct ParamGroup {
  mp_hyper_t hyper;
  /// Left by each step for the next.  A step that finds those of another t, because the host has set t or
  /// has written the group anew, computes its own.
  StepFactors factors;
};

/// An optimizer in device terms.
struct OptimizerArgs {
  mp_optimizer_kind_t kind;
  uint32_t flags;
  TensorList grads, master;
  TensorList model, m, v, extra;  ///< .data may be NULL
  CopyPolicy copy;                ///< of the weights into model
  const uint32_t *tensor_group;   ///< device, count
  uint32_t num_groups;
  ParamGroup *groups;              ///< device
  const float *lr_multipliers;     ///< device, count; NULL = 1
  const float *decay_multipliers;  ///< device, count; NULL = 1
  RatioScratch ratios;             ///< device
  float *lr;                       ///< device, num_groups: out, of an applied step
  int64_t *t;                      ///< device, applied steps
  uint32_t *blocks_done;           ///< device, 1, zero between launches
};

/// mp_optimizer_step when only the first three are set; pass 2 of mp_scale_step with the rest, which
/// the last block to finish does once everything is updated.
struct UpdateArgs {
  const float *grad_scale;  ///< multiplied into every gradient; NULL = 1
  const float *found_inf;   ///< skip when != 0; NULL = never
  const double
      *tensor_norms;     ///< count: of the gradients before unscaling; NULL = do not clip by them
  float *skipped;        ///< out, optional: 1 if this step was skipped, else 0
  int32_t *outcome;      ///< out, optional: a mp_step_outcome_t
  ScalerDevice *scaler;  ///< optional: its policy is applied, its flag cleared
  const float *scaler_amax;   ///< what mp_scaler_update gets as amax; skip when not finite
  const float *grad_amax;     ///< largest |gradient| before grad_scale; NULL: not measured
  const float *rank_code;     ///< optional: RankMessage::code after the reduction
  bool keep_scaler;           ///< MP_STEP_KEEP_SCALER: amax and range are noted
  int64_t *model_overflows;   ///< optional, increased: copies that overflowed
  int64_t *rejected_updates;  ///< optional, increased: elements that kept their old values
};

}  // namespace mp
